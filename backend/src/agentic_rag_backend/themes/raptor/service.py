"""The tree over a tenant's passages: request a build, run it, read the current tree.

Updates trees automatically some quiet seconds after documents changed, for tenants that enable it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from agentic_rag_backend.stores.catalogue.base import Catalogue, GenerationCatalogue
from agentic_rag_backend.stores.catalogue.pages import Page
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.themes.communities.rebuilds.schedule import Deliver, ThemeSchedule
from agentic_rag_backend.themes.communities.summaries.summary_writing import Summariser
from agentic_rag_backend.themes.communities.theme_index import ListSlice, RebuildProgress, Rebuilds
from agentic_rag_backend.themes.raptor.build import TreeBuilder, public_details
from agentic_rag_backend.themes.raptor.build_options import BuildOptions, TreeOptions
from agentic_rag_backend.themes.raptor.node_views import TreeNodeView, TreeReader
from agentic_rag_backend.themes.raptor.node_writing import NodeWriter
from agentic_rag_backend.themes.raptor.reading import PassageReader
from agentic_rag_backend.themes.raptor.tree_publication import NodePoints, TreePublisher

WORKFLOW = "raptor_v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaptorStores:
    """The stores of trees."""

    catalogue: Catalogue
    vectors: VectorStore
    embedder: Embedder
    queue: JobQueue


class RaptorService:
    """Builds and reads trees; the container registers `build` as the workflow ``raptor_v1``.

    Args:
        summariser: writes the nodes' summaries.
        deliver: delivers the outbox entries of a tenant.
        options: the shape of trees, unless a build requests another.
        retire_after_s: seconds the old tree stays after the flip, for readers that have begun with it.
        patience_s: seconds without progress for which a build waits for stores and models that do not answer.
    """

    def __init__(
        self,
        stores: RaptorStores,
        *,
        summariser: Summariser,
        deliver: Deliver,
        options: TreeOptions | None = None,
        retire_after_s: float = 1.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        catalogue, vectors, embedder = stores.catalogue, stores.vectors, stores.embedder
        self._trees = catalogue.trees
        self._builds = Rebuilds(
            catalogue=catalogue,
            queue=stores.queue,
            kind=JobKind.RAPTOR,
            tenant_lock=TenantLock.RAPTOR,
            workflow=WORKFLOW,
            runner=Runner(catalogue.jobs, patience_s),
            deliver=deliver,
        )
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
        """Queue a build, or join the unfinished one; a dry run is always a separate job."""
        return await self._builds.request_rebuild(tenant, (options or BuildOptions()).to_arguments())

    async def build(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Run a build job: the workflow ``raptor_v1``. Repeatable: summaries that were written are found again."""

        async def run_build(arguments: Mapping[str, Any], report: RebuildProgress) -> dict[str, Any]:
            return await self._builder.run(tenant, BuildOptions.from_arguments(arguments), report)

        await self._builds.run(tenant, job_id, attempt, run_build)

    async def list(
        self, tenant: TenantId, *, level: int | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[TreeNodeView]:
        """List nodes by level and falling size.

        Raises:
            InvalidRequest: ``limit`` is not 1–1,000, ``level`` is below 1, or the cursor is none of this list's.
        """
        section = ListSlice.from_cursor(limit, cursor)
        if level is not None and level < 1:
            raise InvalidRequest(f"level must be 1 or more; got {level}")
        pointer, nodes = await self._reader.read(tenant, level=level)
        return await section.make_page(nodes, partial(self._reader.make_views, tenant, pointer))

    async def get(self, tenant: TenantId, id: str) -> TreeNodeView:
        """Return one node.

        Raises:
            NotFound: the current tree has none of that id, or nothing behind it is visible.
        """
        pointer, nodes = await self._reader.read(tenant, ids=[id])
        views = await self._reader.make_views(tenant, pointer, nodes)
        if not views:
            raise NotFound(f"there is no node {id[:64]!r}")
        return views[0]

    async def read_status(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the current tree's figures and the last build job."""
        pointer = await self._trees.pointer(tenant)
        return await self._builds.read_status(tenant, pointer, public_details(pointer.details))


class TreeSchedule(ThemeSchedule):
    """Requests builds of trees. A tenant's first tree is built on request only."""

    @property
    def generations(self) -> GenerationCatalogue:
        """The generations of trees."""
        return self._catalogue.trees
