"""Communities of a tenant: ask for a rebuild, run it, read what is current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from agentic_rag_backend.communities.basis import Standing
from agentic_rag_backend.communities.detection import DetectionOptions
from agentic_rag_backend.communities.options import RebuildOptions
from agentic_rag_backend.communities.patience import Patience
from agentic_rag_backend.communities.publication import Publisher
from agentic_rag_backend.communities.rebuild import Cancelled, Rebuilder, public_details
from agentic_rag_backend.communities.restoration import Restorer
from agentic_rag_backend.communities.views import CommunityReader, CommunityView
from agentic_rag_backend.communities.writing import Summariser
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.jobs.turns import Turn
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.stores.catalogue.base import Catalogue, Page
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore

_log = structlog.get_logger(__name__)

WORKFLOW = "rebuild_v1"
MAX_LIMIT = 1_000


class CommunityService:
    """Builds and reads communities; the container registers `rebuild` as the workflow ``rebuild_v1``.

    Args:
        detection: how finely graphs are divided, unless a rebuild asks otherwise.
        model_name: the model that writes summaries; None: the model's own default.
        retire_after_s: seconds the old generation stays after the flip, for readers that have begun with it.
        patience_s: seconds for which a rebuild waits for a store that does not answer, before it fails.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        graph: GraphStore,
        vectors: VectorStore,
        embedder: Embedder,
        model: LanguageModel,
        queue: JobQueue,
        detection: DetectionOptions | None = None,
        model_name: str | None = None,
        retire_after_s: float = 1.0,
        patience_s: float = 0.0,
    ) -> None:
        self._catalogue = catalogue
        self._queue = queue
        self._patience = Patience(patience_s)
        self._reader = CommunityReader(documents=catalogue.documents, communities=catalogue.communities, graph=graph)
        self._rebuilder = Rebuilder(
            catalogue=catalogue,
            graph=graph,
            reader=self._reader,
            summariser=Summariser(model, model_name=model_name),
            publisher=Publisher(
                communities=catalogue.communities,
                graph=graph,
                vectors=vectors,
                embedder=embedder,
                retire_after_s=retire_after_s,
            ),
            standing=Standing(
                reader=self._reader,
                restorer=Restorer(communities=catalogue.communities, vectors=vectors, embedder=embedder),
            ),
            detection=detection or DetectionOptions(),
        )

    async def request_rebuild(self, tenant: TenantId, options: RebuildOptions | None = None) -> Job:
        """Queue a rebuild, or join the one that has not ended; a dry run is always a job of its own."""
        asked = options or RebuildOptions()
        enqueue = self._queue.enqueuer(WORKFLOW)
        jobs = self._catalogue.jobs
        job = await jobs.create(tenant, JobKind.REBUILD, asked.arguments(), enqueue, join=not asked.dry_run)
        if job.arguments.get("dry_run") and not asked.dry_run:
            job = await jobs.create(tenant, JobKind.REBUILD, asked.arguments(), enqueue)
        return job

    async def rebuild(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Run a rebuild job: the workflow ``rebuild_v1``. Repeatable: summaries that were written are found again."""
        async with self._queue.turn(Turn.REBUILD, tenant):
            job = await self._catalogue.jobs.start(tenant, job_id)
            if job.state.ended or job.attempt > attempt:
                return
            await self._run(tenant, job)

    async def list(
        self, tenant: TenantId, *, level: int | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[CommunityView]:
        """List communities by level and falling size.

        Raises:
            InvalidRequest: ``limit`` is not 1–1,000, ``level`` is negative, or the cursor is none of this list's.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidRequest(f"limit must be between 1 and {MAX_LIMIT}; got {limit}")
        if level is not None and level < 0:
            raise InvalidRequest(f"level must be 0 or more; got {level}")
        start = _position(cursor)
        pointer, communities = await self._reader.read(tenant, level=level)
        shown: list[CommunityView] = []
        while start < len(communities) and len(shown) < limit:
            taken = communities[start : start + limit - len(shown)]
            shown += await self._reader.views(tenant, pointer, taken)
            start += len(taken)
        return Page(tuple(shown), str(start) if start < len(communities) else None)

    async def get(self, tenant: TenantId, id: str) -> CommunityView:
        """Return one community.

        Raises:
            NotFound: the current generation has none of that id, or nothing behind it is visible.
        """
        found = await self.views(tenant, [id])
        if id not in found:
            raise NotFound(f"there is no community {id[:64]!r}")
        return found[id]

    async def views(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, CommunityView]:
        """Return those of ``ids`` that exist in the current generation and may be shown."""
        pointer, communities = await self._reader.read(tenant, ids=ids)
        return {view.id: view for view in await self._reader.views(tenant, pointer, communities)}

    async def status(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the current generation's figures and the last rebuild job."""
        pointer = await self._catalogue.communities.pointer(tenant)
        last = await self._catalogue.jobs.last(tenant, JobKind.REBUILD)
        return {
            "generation": pointer.generation,
            "stale": pointer.stale,
            "built_at": pointer.built_at,
            **public_details(pointer.details),
            "last_job": last,
        }

    async def _run(self, tenant: TenantId, job: Job) -> None:
        """Run the job and record how it ended: one of the three places where any exception is caught."""
        jobs = self._catalogue.jobs

        async def report(stage: str, done: int, total: int, message: str = "") -> None:
            if await jobs.progress(tenant, job.id, stage=stage, done=done, total=total, message=message):
                raise Cancelled

        async def say(message: str) -> None:
            await report("wait", 0, 1, message)

        async def finish(state: JobState, **outcome: Any) -> None:
            await self._patience.persist(lambda: jobs.finish(tenant, job.id, state, **outcome))

        try:
            options = RebuildOptions.from_arguments(job.arguments)
            result = await self._patience.persist(lambda: self._rebuilder.run(tenant, options, report), say)
        except Cancelled:
            await finish(JobState.CANCELLED)
        except AgenticRagError as error:
            _log.warning("rebuild_failed", tenant=str(tenant), job_id=job.id, code=error.code, reason=error.message)
            await finish(JobState.FAILED, error={"code": error.code, "message": error.message})
        except Exception:  # noqa: BLE001
            _log.exception("rebuild_failed", tenant=str(tenant), job_id=job.id)
            error_of = {"code": AgenticRagError.code, "message": "the rebuild failed by an error of this program; see its log"}
            await finish(JobState.FAILED, error=error_of)
        else:
            await finish(JobState.SUCCEEDED, result=result)


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InvalidRequest(f"cursor is not one that this list returned; got {cursor[:60]!r}")
    return int(cursor)
