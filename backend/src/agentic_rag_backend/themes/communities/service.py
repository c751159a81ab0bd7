"""Communities of a tenant: request a rebuild, run it, read the current generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.jobs.base import PATIENCE_S
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.runner import Runner
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.stores.catalogue.base import Catalogue, Page
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.themes.communities.detection.hierarchy import DetectionOptions
from agentic_rag_backend.themes.communities.generations import Publisher, Restorer
from agentic_rag_backend.themes.communities.rebuilds.basis import UpToDateCheck
from agentic_rag_backend.themes.communities.rebuilds.rebuild import Rebuilder, public_details
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.communities.rebuilds.schedule import Deliver
from agentic_rag_backend.themes.communities.summaries.summary_writing import Summariser
from agentic_rag_backend.themes.communities.theme_index import (
    CommunityReader,
    CommunityView,
    ListSlice,
    RebuildProgress,
    Rebuilds,
)

WORKFLOW = "rebuild_v1"


class CommunityService:
    """Builds and reads communities; the container registers `rebuild` as the workflow ``rebuild_v1``.

    Args:
        deliver: delivers the outbox entries of a tenant.
        detection: how finely graphs are divided, unless a rebuild asks otherwise.
        model_name: the model that writes summaries; None: the model's own default.
        retire_after_s: seconds the old generation stays after the flip, for readers that have begun with it.
        patience_s: seconds without progress for which a rebuild waits for stores and models that do not answer.
    """

    def __init__(  # noqa: PLR0913 - the container hands in every collaborator by name
        self,
        *,
        catalogue: Catalogue,
        graph: GraphStore,
        vectors: VectorStore,
        embedder: Embedder,
        model: LanguageModel,
        queue: JobQueue,
        deliver: Deliver,
        detection: DetectionOptions | None = None,
        model_name: str | None = None,
        retire_after_s: float = 1.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        communities = self._communities = catalogue.communities
        self._rebuilds = Rebuilds(
            catalogue=catalogue,
            queue=queue,
            kind=JobKind.REBUILD,
            tenant_lock=TenantLock.REBUILD,
            workflow=WORKFLOW,
            runner=Runner(catalogue.jobs, patience_s),
            deliver=deliver,
        )
        self._reader = CommunityReader(documents=catalogue.documents, communities=communities, graph=graph)
        restorer = Restorer(communities=communities, vectors=vectors, embedder=embedder)
        publisher = Publisher(
            communities=communities, graph=graph, vectors=vectors, embedder=embedder, retire_after_s=retire_after_s
        )
        self._rebuilder = Rebuilder(
            catalogue=catalogue,
            graph=graph,
            reader=self._reader,
            summariser=Summariser(model, model_name=model_name),
            publisher=publisher,
            up_to_date=UpToDateCheck(reader=self._reader, restorer=restorer),
            detection=detection or DetectionOptions(),
            vectors=vectors,
        )

    async def request_rebuild(self, tenant: TenantId, options: RebuildOptions | None = None) -> Job:
        """Queue a rebuild, or join the unfinished one; a dry run is always a separate job."""
        return await self._rebuilds.request_rebuild(tenant, (options or RebuildOptions()).to_arguments())

    async def rebuild(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Run a rebuild job: the workflow ``rebuild_v1``. Repeatable: summaries that were written are found again."""

        async def run_rebuild(arguments: Mapping[str, Any], report: RebuildProgress) -> dict[str, Any]:
            return await self._rebuilder.run(tenant, RebuildOptions.from_arguments(arguments), report)

        await self._rebuilds.run(tenant, job_id, attempt, run_rebuild)

    async def list(
        self, tenant: TenantId, *, level: int | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[CommunityView]:
        """List communities by level and falling size.

        Raises:
            InvalidRequest: ``limit`` is not 1–1,000, ``level`` is negative, or the cursor is none of this list's.
        """
        section = ListSlice.from_cursor(limit, cursor)
        if level is not None and level < 0:
            raise InvalidRequest(f"level must be 0 or more; got {level}")
        pointer, communities = await self._reader.read(tenant, level=level)
        if tenant.access is not None:  # a cursor is a position, which must not count communities that are not shown
            shown_ids = {view.id for view in await self._reader.make_views(tenant, pointer, communities)}
            communities = [community for community in communities if community.id in shown_ids]
        return await section.make_page(communities, partial(self._reader.make_views, tenant, pointer))

    async def get(self, tenant: TenantId, id: str) -> CommunityView:
        """Return one community.

        Raises:
            NotFound: the current generation has none of that id, or nothing behind it is visible.
        """
        views = await self.views(tenant, [id])
        if id not in views:
            raise NotFound(f"there is no community {id[:64]!r}")
        return views[id]

    async def views(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, CommunityView]:
        """Return the communities among ``ids`` that exist in the current generation and may be shown."""
        pointer, communities = await self._reader.read(tenant, ids=ids)
        return {view.id: view for view in await self._reader.make_views(tenant, pointer, communities)}

    async def read_status(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the current generation's figures and the last rebuild job."""
        pointer = await self._communities.pointer(tenant)
        return await self._rebuilds.read_status(tenant, pointer, public_details(pointer.details))
