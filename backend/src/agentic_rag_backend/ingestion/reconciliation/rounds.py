"""Shared parts of a reconciliation round: the stores, the report, and the tenant's lock, which excludes other writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.ingestion.reconciliation.report import Report
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.runner import Unfinished
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import Catalogue, Enqueue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore

TURN_S = 60.0
"""A commit takes seconds. A longer wait may mean that the other job waits for this one."""

Progress = Callable[[str, int, int], Awaitable[None]]
"""Records stage, done and total. Raises if the job was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledStores:
    """The stores to compare, and the models that compute missing results."""

    catalogue: Catalogue
    graph: GraphStore
    vectors: VectorStore
    blobs: BlobStore
    embedder: Embedder
    computation: Computation
    resolver: Resolver

    @property
    def facts(self) -> FactPoints:
        """The points of facts, kept consistent with the graph."""
        return FactPoints(self.graph, self.vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Services that a round uses to repair data.

    Args:
        enqueue: returns a function that enqueues a document's job of a kind.
        give_up: fails a job, and its document, that the queue will not run.
        retry: enqueues an ended job again.
        rebuild: enqueues a rebuild of the communities.
        on_mended: called with a tenant whose cached graph is out of date.
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
        originals_before: originals stored later are ignored: their document may not be recorded yet.
    """

    tenant: TenantId
    stores: ReconciledStores
    services: Services
    report: Report
    progress: Progress
    originals_before: datetime
    changed: bool = False

    @property
    def repair(self) -> bool:
        """Whether differences are repaired, or only reported."""
        return self.report.repair

    @asynccontextmanager
    async def tenant_lock(self) -> AsyncIterator[None]:
        """Hold the tenant's commit lock. No commit or delete writes to any store meanwhile.

        Raises:
            Unfinished: the lock was not free in time.
        """
        async with AsyncExitStack() as locks:
            try:
                async with asyncio.timeout(TURN_S):
                    await locks.enter_async_context(self.services.queue.tenant_lock(TenantLock.COMMIT, self.tenant))
            except TimeoutError:
                raise Unfinished(f"the tenant's commits did not pause for {TURN_S:g} s; nothing was lost, try again") from None
            yield

    async def publish_repair(self, document_id: str, *, knowledge: bool) -> None:
        """Make a document's repair visible to readers."""
        self.changed = True
        await self.stores.catalogue.documents.record_repair(self.tenant, document_id, knowledge=knowledge)
        self.services.on_mended(self.tenant)
