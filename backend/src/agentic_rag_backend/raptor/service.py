"""The tree over a tenant's passages: ask for a build, run it, read what is current."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from agentic_rag_backend.communities.writing import Summariser
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.jobs.turns import Turn
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.raptor.build import TreeBuilder, public_details
from agentic_rag_backend.raptor.options import BuildOptions, TreeOptions
from agentic_rag_backend.raptor.publication import NodePoints, TreePublisher
from agentic_rag_backend.raptor.reading import PassageReader
from agentic_rag_backend.raptor.views import NodeView, TreeReader
from agentic_rag_backend.raptor.writing import NodeWriter
from agentic_rag_backend.stores.catalogue.base import Catalogue, Page
from agentic_rag_backend.stores.vector.base import VectorStore

_log = structlog.get_logger(__name__)

WORKFLOW = "raptor_v1"
MAX_LIMIT = 1_000


class Cancelled(Exception):
    """The job was asked to stop: what happened, not an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaptorStores:
    """What trees are read from and written to."""

    catalogue: Catalogue
    vectors: VectorStore
    embedder: Embedder
    queue: JobQueue


class RaptorService:
    """Builds and reads trees; the container registers `build` as the workflow ``raptor_v1``.

    Args:
        summariser: writes what nodes say.
        options: the shape of trees, unless a build asks otherwise.
        retire_after_s: seconds the old tree stays after the flip, for readers that have begun with it.
    """

    def __init__(
        self, stores: RaptorStores, *, summariser: Summariser, options: TreeOptions | None = None, retire_after_s: float = 1.0
    ) -> None:
        catalogue, vectors, embedder = stores.catalogue, stores.vectors, stores.embedder
        self._catalogue = catalogue
        self._queue = stores.queue
        self._reader = TreeReader(documents=catalogue.documents, trees=catalogue.trees)
        passages = PassageReader(catalogue.documents, vectors, embedder.dimensions)
        self._builder = TreeBuilder(
            catalogue=catalogue,
            passages=passages,
            writer=NodeWriter(catalogue.trees, passages, summariser),
            publisher=TreePublisher(catalogue.trees, NodePoints(vectors, embedder), retire_after_s),
            options=options or TreeOptions(),
        )

    async def request_build(self, tenant: TenantId, options: BuildOptions | None = None) -> Job:
        """Queue a build, or join the one that has not ended; a dry run is always a job of its own."""
        asked = options or BuildOptions()
        enqueue = self._queue.enqueuer(WORKFLOW)
        jobs = self._catalogue.jobs
        job = await jobs.create(tenant, JobKind.RAPTOR, asked.arguments(), enqueue, join=not asked.dry_run)
        if job.arguments.get("dry_run") and not asked.dry_run:
            job = await jobs.create(tenant, JobKind.RAPTOR, asked.arguments(), enqueue)
        return job

    async def build(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Run a build job: the workflow ``raptor_v1``. Repeatable: summaries that were written are found again."""
        async with self._queue.turn(Turn.RAPTOR, tenant):
            job = await self._catalogue.jobs.start(tenant, job_id)
            if job.state.ended or job.attempt > attempt:
                return
            await self._run(tenant, job)

    async def list(
        self, tenant: TenantId, *, level: int | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[NodeView]:
        """List nodes by level and falling size.

        Raises:
            InvalidRequest: ``limit`` is not 1–1,000, ``level`` is below 1, or the cursor is none of this list's.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidRequest(f"limit must be between 1 and {MAX_LIMIT}; got {limit}")
        if level is not None and level < 1:
            raise InvalidRequest(f"level must be 1 or more; got {level}")
        start = _position(cursor)
        pointer, nodes = await self._reader.read(tenant, level=level)
        shown: list[NodeView] = []
        while start < len(nodes) and len(shown) < limit:
            taken = nodes[start : start + limit - len(shown)]
            shown += await self._reader.views(tenant, pointer, taken)
            start += len(taken)
        return Page(tuple(shown), str(start) if start < len(nodes) else None)

    async def get(self, tenant: TenantId, id: str) -> NodeView:
        """Return one node.

        Raises:
            NotFound: the current tree has none of that id, or nothing behind it is visible.
        """
        pointer, nodes = await self._reader.read(tenant, ids=[id])
        views = await self._reader.views(tenant, pointer, nodes)
        if not views:
            raise NotFound(f"there is no node {id[:64]!r}")
        return views[0]

    async def status(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the current tree's figures and the last build job."""
        pointer = await self._catalogue.trees.pointer(tenant)
        return {
            "generation": pointer.generation,
            "stale": pointer.stale,
            "built_at": pointer.built_at,
            **public_details(pointer.details),
            "last_job": await self._catalogue.jobs.last(tenant, JobKind.RAPTOR),
        }

    async def _run(self, tenant: TenantId, job: Job) -> None:
        """Run the job and record how it ended: the boundary where any exception is caught."""
        jobs = self._catalogue.jobs

        async def report(stage: str, done: int, total: int) -> None:
            if await jobs.progress(tenant, job.id, stage=stage, done=done, total=total):
                raise Cancelled

        try:
            result = await self._builder.run(tenant, BuildOptions.from_arguments(job.arguments), report)
        except Cancelled:
            await jobs.finish(tenant, job.id, JobState.CANCELLED)
        except AgenticRagError as error:
            _log.warning("raptor_build_failed", tenant=str(tenant), job_id=job.id, code=error.code, reason=error.message)
            await jobs.finish(tenant, job.id, JobState.FAILED, error={"code": error.code, "message": error.message})
        except Exception:  # noqa: BLE001
            _log.exception("raptor_build_failed", tenant=str(tenant), job_id=job.id)
            error_of = {"code": AgenticRagError.code, "message": "the build failed by an error of this program; see its log"}
            await jobs.finish(tenant, job.id, JobState.FAILED, error=error_of)
        else:
            await jobs.finish(tenant, job.id, JobState.SUCCEEDED, result=result)


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InvalidRequest(f"cursor is not one that this list returned; got {cursor[:60]!r}")
    return int(cursor)
