"""How an index of themes is rebuilt and read, whichever it is: the communities of the graph, or the tree over passages.

A rebuild is a job of its tenant. One runs at a time, and who asks meanwhile joins the one that waits or runs. It writes a
generation beside the current one, which readers keep, and makes it current in one transaction; whatever ends it before leaves the
old one. What it was asked stands in the job's row, so that a process that is killed leaves a job which another one finishes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import structlog

from agentic_rag_backend.communities.patience import Patience
from agentic_rag_backend.communities.visibility import further_chunks, supporting_chunks
from agentic_rag_backend.communities.waiting import wait_for_documents
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.jobs.turns import Turn
from agentic_rag_backend.stores.catalogue.base import Catalogue, DocumentCatalogue, Page

Report = Callable[[str, int, int], Awaitable[None]]
"""Records (stage, done, total); raises `Cancelled` where the job was asked to stop."""
Work = Callable[[Mapping[str, Any], Report], Awaitable[dict[str, Any]]]
"""A rebuild: told what the job was asked and where to report, returns the job's result."""

MAX_LIMIT = 1_000
_ATTEMPTS = 3

_log = structlog.get_logger(__name__)


class Cancelled(Exception):
    """The job was asked to stop: what happened, not an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilds:
    """The rebuild jobs of one index.

    Args:
        called: what users read a rebuild as.
        patience: how long a rebuild waits for a store that does not answer, before it fails.
    """

    catalogue: Catalogue
    queue: JobQueue
    kind: JobKind
    turn: Turn
    workflow: str
    called: str
    patience: Patience = field(default_factory=Patience)

    async def request(self, tenant: TenantId, asked: Mapping[str, Any]) -> Job:
        """Queue a rebuild, or join the one that has not ended; a dry run is always a job of its own."""
        enqueue, dry_run = self.queue.enqueuer(self.workflow), bool(asked.get("dry_run"))
        job = await self.catalogue.jobs.create(tenant, self.kind, asked, enqueue, join=not dry_run)
        if job.arguments.get("dry_run") and not dry_run:
            job = await self.catalogue.jobs.create(tenant, self.kind, asked, enqueue)
        return job

    async def run(self, tenant: TenantId, job_id: str, attempt: int, work: Work) -> None:
        """Run a job when its turn comes, unless it has ended or a newer attempt has taken it."""
        async with self.queue.turn(self.turn, tenant):
            job = await self.catalogue.jobs.start(tenant, job_id)
            if job.state.ended or job.attempt > attempt:
                return
            await self._run(tenant, job, work)

    async def status(self, tenant: TenantId, pointer: Pointer, details: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return where the index stands, with those ``details`` of its generation, and the last job."""
        return {
            "generation": pointer.generation,
            "stale": pointer.stale,
            "built_at": pointer.built_at,
            **details,
            "last_job": await self.catalogue.jobs.last(tenant, self.kind),
        }

    async def _run(self, tenant: TenantId, job: Job, work: Work) -> None:
        """Run the job and record how it ended: one of the three places where any exception is caught."""
        jobs = self.catalogue.jobs

        async def report(stage: str, done: int, total: int, message: str = "") -> None:
            if await jobs.progress(tenant, job.id, stage=stage, done=done, total=total, message=message):
                raise Cancelled

        async def say(message: str) -> None:
            await report("wait", 0, 1, message)

        async def finish(state: JobState, **outcome: Any) -> None:
            await self.patience.persist(lambda: jobs.finish(tenant, job.id, state, **outcome))

        async def wait(done: int, total: int) -> None:
            message = f"waiting for {total - done} documents that were handed in before"
            await report("wait", done, total, message)

        async def prepared(asked: Mapping[str, Any]) -> dict[str, Any]:
            # An estimate is for a person who waits; it says what it leaves out.
            if asked.get("dry_run"):
                left = await jobs.pending_documents(tenant, queued_before=datetime.now(UTC))
            else:
                left = await wait_for_documents(jobs, tenant, wait)
            return {**await work(asked, report), "documents_left_out": left}

        about = {"index": self.kind.value, "tenant": str(tenant), "job_id": job.id}
        try:
            result = await self.patience.persist(lambda: prepared(job.arguments), say)
        except Cancelled:
            await finish(JobState.CANCELLED)
        except AgenticRagError as error:
            _log.warning("rebuild_failed", **about, code=error.code, reason=error.message)
            await finish(JobState.FAILED, error={"code": error.code, "message": error.message})
        except Exception:  # noqa: BLE001
            _log.exception("rebuild_failed", **about)
            said = f"the {self.called} failed by an error of this program; see its log"
            await finish(JobState.FAILED, error={"code": AgenticRagError.code, "message": said})
        else:
            await finish(JobState.SUCCEEDED, result=result)


class Pointer(Protocol):
    """Says which generation of an index is current (0: none yet), and whether something changed since it was built."""

    @property
    def generation(self) -> int: ...
    @property
    def stale(self) -> bool: ...
    @property
    def built_at(self) -> datetime | None: ...


P = TypeVar("P", bound=Pointer)
T = TypeVar("T")
V = TypeVar("V")


async def of_one_generation(pointer: Callable[[], Awaitable[P]], read: Callable[[int], Awaitable[list[T]]]) -> tuple[P, list[T]]:
    """Return the pointer and what is read of its generation; read again if that was replaced in between."""
    now = await pointer()
    found: list[T] = []
    for _ in range(_ATTEMPTS):
        if now.generation == 0:
            return now, []
        found = await read(now.generation)
        again = await pointer()
        if again.generation == now.generation:
            return again, found
        now = again
    return now, found


async def passages_behind(
    documents: DocumentCatalogue,
    tenant: TenantId,
    summaries: Collection[CommunitySummary],
    passes: Callable[[VisibleChunk], bool] = lambda _: True,
) -> dict[str, VisibleChunk]:
    """Return the visible passages that summaries rest on, as far as it takes to tell what of them may be shown.

    A passage that does not pass counts as one that is not visible.
    """

    async def passing(ids: Sequence[str]) -> dict[str, VisibleChunk]:
        found = await documents.hydrate(tenant, ids) if ids else {}
        return {id: chunk for id, chunk in found.items() if passes(chunk)}

    visible = await passing(supporting_chunks(summaries))
    return visible | await passing(further_chunks(summaries, visible))


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a list that is asked for, by position."""

    start: int
    limit: int

    @classmethod
    def of(cls, limit: int, cursor: str | None) -> Section:
        """Return where ``cursor`` leads; None: to the beginning.

        Raises:
            InvalidRequest: ``limit`` is not 1–1,000, or the cursor is none of these lists'.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidRequest(f"limit must be between 1 and {MAX_LIMIT}; got {limit}")
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
            raise InvalidRequest(f"cursor is not one that this list returned; got {cursor[:60]!r}")
        return cls(0 if cursor is None else int(cursor), limit)

    async def page(self, held: Sequence[T], views: Callable[[Sequence[T]], Awaitable[list[V]]]) -> Page[V]:
        """Return a page of what may be shown, as full as there is that much: ``views`` leaves out what may not be."""
        shown: list[V] = []
        start = self.start
        while start < len(held) and len(shown) < self.limit:
            taken = held[start : start + self.limit - len(shown)]
            shown += await views(taken)
            start += len(taken)
        return Page(tuple(shown), str(start) if start < len(held) else None)
