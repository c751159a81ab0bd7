"""What the parts of a round share: the stores, the report, and the tenant's turn, in which nothing else is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.computation import Computation
from agentic_rag_backend.ingestion.nodes import KnowledgeNodes
from agentic_rag_backend.ingestion.reconciliation.report import Report
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.jobs.runner import Unfinished
from agentic_rag_backend.jobs.turns import Turn
from agentic_rag_backend.knowledge.resolution import Resolver
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import Catalogue, Enqueue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore

TURN_S = 60.0
"""A commit takes seconds. What waits longer may wait for this very job to end."""

Progress = Callable[[str, int, int], Awaitable[None]]
"""Records stage, done and total; raises where the job was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What is compared, and what computes again what none of it holds."""

    catalogue: Catalogue
    graph: GraphStore
    vectors: VectorStore
    blobs: BlobStore
    embedder: Embedder
    computation: Computation
    resolver: Resolver

    @property
    def nodes(self) -> KnowledgeNodes:
        """The points of facts, in step with the graph."""
        return KnowledgeNodes(self.graph, self.vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What a round asks of the services whose data it mends.

    Args:
        enqueue: what queues a document's job of a kind.
        give_up: ends a job, and its document with it, that the queue will not run.
        retry: queues an ended job again.
        rebuild: queues a rebuild of the communities.
        on_mended: told that what was read of a tenant's graph is not what there is now.
    """

    queue: JobQueue
    enqueue: Callable[[JobKind], Enqueue]
    give_up: Callable[[TenantId, str, int, Exception], Awaitable[None]]
    retry: Callable[[TenantId, str], Awaitable[Job]]
    rebuild: Callable[[TenantId], Awaitable[Job]]
    on_mended: Callable[[TenantId], None]


@dataclass(slots=True, kw_only=True)
class Round:
    """One comparison of a tenant's stores.

    Args:
        originals_before: originals stored later may belong to a document that is being recorded right now.
    """

    tenant: TenantId
    stores: Stores
    services: Services
    report: Report
    progress: Progress
    originals_before: datetime
    changed: bool = False

    @property
    def repair(self) -> bool:
        """Whether differences are mended, or only told."""
        return self.report.repair

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the place of the tenant's commits and deletes: while it is held, none of them writes to any store.

        Raises:
            Unfinished: it was not to be had.
        """
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(TURN_S):
                    await held.enter_async_context(self.services.queue.turn(Turn.COMMIT, self.tenant))
            except TimeoutError:
                raise Unfinished(f"the tenant's commits did not pause for {TURN_S:g} s; nothing was lost, try again") from None
            yield

    async def mended(self, document_id: str, *, knowledge: bool) -> None:
        """Let readers see what was mended of a document."""
        self.changed = True
        await self.stores.catalogue.documents.mended(self.tenant, document_id, knowledge=knowledge)
        self.services.on_mended(self.tenant)
