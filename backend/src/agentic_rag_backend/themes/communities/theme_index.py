"""Rebuilds and reads an index of themes: communities or a tree, joined with summaries and with what is visible now.

A rebuild is a job of its tenant. One runs at a time. A request during a queued or running rebuild joins it. The job writes a
new generation while readers keep the current one, and makes it current in one transaction. A failure before that keeps the
old one. The job's row holds its arguments, so that another process can finish the job of a killed process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Community, CommunitySummary, Finding, Support, placeholder_name
from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable
from agentic_rag_backend.jobs.base import Backoff
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.runner import Run, Runner
from agentic_rag_backend.knowledge.visible.summaries import (
    all_supports,
    is_complete,
    passages_behind,
    visible_sources,
    visible_summary,
)
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.pages import Page
from agentic_rag_backend.stores.catalogue.summaries.generations import CommunityCatalogue, GenerationPointer
from agentic_rag_backend.stores.graph.base import CommunityStore
from agentic_rag_backend.themes.communities.rebuilds.schedule import Deliver, wait_for_documents, wait_for_names

SUMMARISE = "summarise"
"""The stage that writes summaries."""
WAIT = "wait"
"""The stage of a rebuild that waits for earlier uploads."""


class RebuildProgress(Protocol):
    """Records the progress of a rebuild, and waits for unavailable models."""

    async def __call__(self, stage: str, done: int, total: int) -> None:
        """Record the progress; raise `jobs.runner.Stopped` if the job was asked to stop."""

    async def wait_for_model(self, error: ModelUnavailable) -> bool:
        """Wait before the next attempt to call the model. Return False, without waiting, once the job's patience is over."""


Work = Callable[[Mapping[str, Any], RebuildProgress], Awaitable[dict[str, Any]]]
"""A rebuild: takes the job's arguments and a report, returns the job's result."""

MAX_LIMIT = 1_000
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilds:
    """The rebuild jobs of one index.

    Args:
        runner: starts, retries and ends the jobs.
        deliver: delivers the outbox entries of a tenant, so that a rebuild reads settled names.
    """

    catalogue: Catalogue
    queue: JobQueue
    kind: JobKind
    tenant_lock: TenantLock
    workflow: str
    runner: Runner
    deliver: Deliver

    async def request_rebuild(self, tenant: TenantId, arguments: Mapping[str, Any]) -> Job:
        """Queue a rebuild, or join the unfinished one; a dry run is always a separate job."""
        enqueue, dry_run = self.queue.enqueuer(self.workflow), bool(arguments.get("dry_run"))
        job = await self.catalogue.jobs.create(tenant, self.kind, arguments, enqueue, join=not dry_run)
        if job.arguments.get("dry_run") and not dry_run:
            job = await self.catalogue.jobs.create(tenant, self.kind, arguments, enqueue)
        return job

    async def run(self, tenant: TenantId, job_id: str, attempt: int, work: Work) -> None:
        """Run a job when it holds its lock, unless it has ended or a newer attempt has taken it."""
        async with self.queue.tenant_lock(self.tenant_lock, tenant):
            run = await self.runner.begin_job(tenant, job_id, attempt)
            if run is None:
                return
            result: dict[str, Any] = {}
            if await self.runner.run_step(run, partial(self._run_work, work, result)):
                await self.runner.record_success(run, result)

    async def read_status(self, tenant: TenantId, pointer: GenerationPointer, details: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the state of the index, with the given ``details`` of its generation, and the last job."""
        return {
            "generation": pointer.generation,
            "stale": pointer.stale,
            "built_at": pointer.built_at,
            **details,
            "last_job": await self.catalogue.jobs.last(tenant, self.kind),
        }

    async def _run_work(self, work: Work, result: dict[str, Any], run: Run) -> None:
        """Do the work and leave its outcome in ``result``."""
        jobs, arguments = run.jobs, run.job.arguments

        async def announce_wait(finished: int, total: int) -> None:
            run.stage, run.done, run.total = WAIT, finished, total
            await run.announce_message(f"waiting for {total - finished} documents that were handed in before")

        # A person waits for an estimate, so it does not wait for documents. It reports the number of documents left out.
        if arguments.get("dry_run"):
            remaining = await jobs.pending_documents(run.tenant, queued_before=datetime.now(UTC))
        else:
            remaining = await wait_for_documents(jobs, run.tenant, announce_wait)
            result["names_settled"] = await wait_for_names(self.catalogue.outbox, run.tenant, self.deliver)
        report = _RunReport(run, Backoff(self.runner.patience_s))
        result.update(await work(arguments, report), documents_left_out=remaining)


@dataclass(slots=True)
class _RunReport:
    """The report of a job's run."""

    run: Run
    backoff: Backoff
    given_up: bool = False

    async def __call__(self, stage: str, done: int, total: int) -> None:
        # Summaries are recorded as soon as they are written. A later attempt reuses them.
        self.run.results_saved += stage == SUMMARISE and done > 0  # counts reused summaries, too, so it forgives no kills
        await self.run.report_progress(stage, done, total, at_once=stage != self.run.stage or done >= total)

    async def wait_for_model(self, error: ModelUnavailable) -> bool:
        now = asyncio.get_running_loop().time()
        pause_s = None if self.given_up else self.backoff.pause_s(error, now=now, progress=self.run.results_saved)
        if pause_s is None:
            self.given_up = True
            return False
        await self.run.pause_attempts(pause_s, error)
        return True


T = TypeVar("T")
V = TypeVar("V")


async def of_one_generation(
    pointer: Callable[[], Awaitable[GenerationPointer]], read_items: Callable[[int], Awaitable[list[T]]]
) -> tuple[GenerationPointer, list[T]]:
    """Return the pointer and the data of its generation; read again if the generation was replaced in between."""
    now = await pointer()
    items: list[T] = []
    for _ in range(_ATTEMPTS):
        if now.generation == 0:
            return now, []
        items = await read_items(now.generation)
        again = await pointer()
        if again.generation == now.generation:
            return again, items
        now = again
    return now, items


@dataclass(frozen=True, slots=True)
class ListSlice:
    """The requested part of a list, by position."""

    start: int
    limit: int

    @classmethod
    def from_cursor(cls, limit: int, cursor: str | None) -> ListSlice:
        """Return where ``cursor`` leads; None: to the beginning.

        Raises:
            InvalidRequest: ``limit`` is not 1–1,000, or the cursor is none of these lists'.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidRequest(f"limit must be between 1 and {MAX_LIMIT}; got {limit}")
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
            raise InvalidRequest(f"the cursor does not come from this list; got {cursor[:60]!r}")
        return cls(0 if cursor is None else int(cursor), limit)

    async def make_page(self, items: Sequence[T], views: Callable[[Sequence[T]], Awaitable[list[V]]]) -> Page[V]:
        """Return a page of visible items, as full as possible: ``views`` omits items that may not be shown."""
        page_items: list[V] = []
        start = self.start
        while start < len(items) and len(page_items) < self.limit:
            batch = items[start : start + self.limit - len(page_items)]
            page_items += await views(batch)
            start += len(batch)
        return Page(tuple(page_items), str(start) if start < len(items) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityView:
    """The visible part of a community.

    ``findings`` hold only statements whose passages are all visible. ``summary`` is empty and ``withheld`` is true while a
    passage behind the prose is not visible. ``name`` and ``keywords`` hold only words of visible passages. If no name is left,
    the name is the community's id. ``sources`` are the visible passages behind prose and findings. ``written_by`` is the model
    that wrote the summary.
    """

    id: str
    name: str
    summary: str
    keywords: tuple[str, ...]
    findings: tuple[Finding, ...]
    entity_count: int
    level: int
    parent_id: str | None
    generation: int
    rating: float
    sources: tuple[Support, ...]
    stale: bool
    withheld: bool
    written_by: str


def visible_view(
    community: Community, summary: CommunitySummary, visible: Mapping[str, VisibleChunk], *, stale: bool
) -> CommunityView | None:
    """Return the visible view of a community, or None if no passage behind it is visible any more.

    Args:
        visible: by id, the chunks that the catalogue shows now.
    """
    sources, complete = visible_sources(summary, visible)
    if not sources:
        return None
    visible_part = visible_summary(summary, visible)
    return CommunityView(
        id=community.id,
        name=visible_part.name or placeholder_name(community.id),
        summary=visible_part.summary,
        keywords=visible_part.keyword_texts,
        findings=visible_part.findings,
        entity_count=community.entity_count,
        level=community.level,
        parent_id=community.parent_id,
        generation=community.generation,
        rating=visible_part.rating,
        sources=sources,
        stale=stale or not complete,
        withheld=not visible_part.summary,
        written_by=visible_part.model,
    )


@dataclass(frozen=True, slots=True)
class JudgedCommunity:
    """The visible part of a community, with the passages that decide about it.

    Attributes:
        view: None if no passage behind the community is visible, or if it has no summary.
        chunk_ids: the passages on which any part of the summary rests, visible or not.
        versions: the versions of the visible ones, by document.
    """

    id: str
    view: CommunityView | None
    chunk_ids: frozenset[str] = frozenset()
    versions: Mapping[str, int] = field(default_factory=dict)


class CommunityReader:
    """Reads the current generation as a whole, never parts of two generations."""

    def __init__(self, *, documents: DocumentCatalogue, communities: CommunityCatalogue, graph: CommunityStore) -> None:
        self._documents = documents
        self._communities = communities
        self._graph = graph

    async def read(
        self, tenant: TenantId, *, level: int | None = None, ids: Sequence[str] | None = None
    ) -> tuple[GenerationPointer, list[Community]]:
        """Return the pointer and its communities; read again if the generation was replaced in between."""
        return await of_one_generation(
            lambda: self._communities.pointer(tenant),
            lambda generation: self._graph.communities(tenant, generation, level=level, ids=ids),
        )

    async def make_views(
        self, tenant: TenantId, pointer: GenerationPointer, communities: Sequence[Community]
    ) -> list[CommunityView]:
        """Return the visible views of ``communities``, in their order; communities without a visible passage are left out."""
        return [
            judged_community.view
            for judged_community in await self.judge_communities(tenant, pointer, communities)
            if judged_community.view is not None
        ]

    async def judge_communities(
        self,
        tenant: TenantId,
        pointer: GenerationPointer,
        communities: Sequence[Community],
        *,
        passes: Callable[[VisibleChunk], bool] = lambda _: True,
    ) -> list[JudgedCommunity]:
        """Return the visible part of every one of ``communities``, in their order.

        A passage that does not pass counts as invisible.
        """
        if not communities:
            return []
        summaries = await self._communities.summaries(tenant, [community.fingerprint for community in communities])
        visible = await passages_behind(self._documents, tenant, summaries.values(), passes)
        judged = [
            _judge_community(community, summaries.get(community.fingerprint), visible, stale=pointer.stale)
            for community in communities
        ]
        if tenant.access is None:
            return judged
        # The vector and the score of a theme are of its whole summary, so a restricted key sees all of it or nothing.
        complete = {
            community.id
            for community in communities
            if (summary := summaries.get(community.fingerprint)) is not None and is_complete(summary, visible)
        }
        return [item if item.id in complete else replace(item, view=None) for item in judged]


def _judge_community(
    community: Community, summary: CommunitySummary | None, visible: Mapping[str, VisibleChunk], *, stale: bool
) -> JudgedCommunity:
    if summary is None:
        return JudgedCommunity(community.id, None)
    chunk_ids = frozenset(support.chunk_id for support in all_supports(summary))
    chunks = [visible[id].chunk for id in chunk_ids & visible.keys()]
    versions = {chunk.document_id: chunk.version for chunk in chunks}
    return JudgedCommunity(community.id, visible_view(community, summary, visible, stale=stale), chunk_ids, versions)
