"""What goes on behind the requests: comparing the stores, and removing what nobody needs any more."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime

import structlog

from agentic_rag_backend.communities.changes import Changes
from agentic_rag_backend.communities.options import RebuildOptions
from agentic_rag_backend.communities.schedule import RebuildSchedule
from agentic_rag_backend.communities.service import WORKFLOW as REBUILD
from agentic_rag_backend.communities.service import CommunityService
from agentic_rag_backend.container.adapters import Adapters
from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.computation import Computation
from agentic_rag_backend.ingestion.reconciliation.rounds import Services as ReconciledServices
from agentic_rag_backend.ingestion.reconciliation.rounds import Stores as ReconciledStores
from agentic_rag_backend.ingestion.reconciliation.schedule import Schedule
from agentic_rag_backend.ingestion.reconciliation.service import WORKFLOW as RECONCILE
from agentic_rag_backend.ingestion.reconciliation.service import Reconciler
from agentic_rag_backend.ingestion.reconciliation.tenants import TenantsRound
from agentic_rag_backend.ingestion.service import DELETE, INGEST, IngestionService
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.jobs.outbox import Relay
from agentic_rag_backend.jobs.runner import Runner
from agentic_rag_backend.jobs.service import JobService
from agentic_rag_backend.knowledge.resolution import Resolver
from agentic_rag_backend.raptor.schedule import TreeSchedule
from agentic_rag_backend.raptor.service import WORKFLOW as RAPTOR
from agentic_rag_backend.raptor.service import RaptorService
from agentic_rag_backend.retrieval.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.tenancy.features import COMMUNITY_AUTO_REBUILD, RAPTOR_AUTO_UPDATE, Features
from agentic_rag_backend.tenancy.service import Erase, TenantService
from agentic_rag_backend.transfer.service import WORKFLOW as IMPORT

FIRST_WORKFLOW = {
    JobKind.INGEST: INGEST,
    JobKind.DELETE: DELETE,
    JobKind.REBUILD: REBUILD,
    JobKind.RECONCILE: RECONCILE,
    JobKind.IMPORT: IMPORT,
    JobKind.RAPTOR: RAPTOR,
}
"""The workflow that a job of each kind begins with."""
_KEYS_SWEPT_EVERY_S = 600.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The services that the reconciler asks to mend what is theirs."""

    queue: JobQueue
    jobs: JobService
    tenants: TenantService
    ingestion: IngestionService
    communities: CommunityService
    graphs: TenantGraphs
    erase: Erase


def make_reconciler(adapters: Adapters, parts: Served, *, started_at: datetime, patience_s: float) -> Reconciler:
    """Return what compares the stores with one another."""
    catalogue, queue, ingestion = adapters.catalogue, parts.queue, parts.ingestion
    stores = ReconciledStores(
        catalogue=catalogue,
        graph=adapters.graph,
        vectors=adapters.vectors,
        blobs=adapters.blobs,
        embedder=adapters.embedder,
        computation=Computation(embedder=adapters.embedder, extractor=adapters.extractor),
        resolver=Resolver(adapters.graph),
    )

    async def rebuild(tenant: TenantId) -> Job:
        return await parts.communities.request_rebuild(tenant, RebuildOptions(mode="full"))

    services = ReconciledServices(
        queue=queue,
        enqueue=lambda kind: queue.enqueuer(FIRST_WORKFLOW[kind]),
        give_up=ingestion.given_up,
        retry=parts.jobs.retry,
        rebuild=rebuild,
        on_mended=parts.graphs.read_anew,
    )
    tenants = TenantsRound(stores=stores, erase=parts.erase, delete=parts.tenants.finish_deleting)
    runner = Runner(catalogue.jobs, patience_s)
    return Reconciler(stores, services, tenants, runner=runner, started_at=started_at)


async def sweep_originals(reconciler: Reconciler) -> None:
    """Remove what processes that were killed left in the blob store: housekeeping, which nothing waits for."""
    try:
        await reconciler.sweep()
    except AgenticRagError as error:
        _log.warning("sweep_failed", code=error.code, reason=error.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Household:
    """What goes on by itself in a process that works; of several such processes, in one of them.

    Args:
        reconcile_interval_s: seconds between two comparisons of a tenant's stores; 0: never.
        rebuild_delay_s: quiet seconds between a change of documents and the rebuild of communities.
        rebuild_threshold: see `RebuildSchedule`.
        update_delay_s: likewise, until the tree over passages takes it in.
    """

    reconciler: Reconciler
    communities: CommunityService
    raptor: RaptorService
    catalogue: Catalogue
    graph: GraphStore
    queue: JobQueue
    relay: Relay
    features: Features
    reconcile_interval_s: float
    rebuild_delay_s: float
    rebuild_threshold: float
    update_delay_s: float

    def begin(self, stack: AsyncExitStack) -> None:
        """Begin all of it; it ends when ``stack`` is left."""
        running = {
            "idempotency-keys": self._sweep_keys(),
            "outbox": self.relay.run(self.queue.leads),
            "community-rebuilds": self._rebuilds().run(self.queue.leads),
            "raptor-updates": self._updates().run(self.queue.leads),
        }
        if self.reconcile_interval_s:
            comparisons = Schedule(self.reconciler, self.catalogue.tenants, interval_s=self.reconcile_interval_s)
            running["reconciliation"] = comparisons.run(self.queue.leads)
        tasks = [asyncio.create_task(work, name=name) for name, work in running.items()]
        stack.push_async_callback(asyncio.wait, tasks)
        for task in tasks:
            stack.callback(task.cancel)

    def _rebuilds(self) -> RebuildSchedule:
        return RebuildSchedule(
            self.catalogue,
            self.communities.request_rebuild,
            delay_s=self.rebuild_delay_s,
            wanted=lambda flags: self.features.enabled(COMMUNITY_AUTO_REBUILD, flags),
            changes=Changes(documents=self.catalogue.documents, graph=self.graph),
            threshold=self.rebuild_threshold,
        )

    def _updates(self) -> TreeSchedule:
        return TreeSchedule(
            self.catalogue,
            self.raptor.request_build,
            delay_s=self.update_delay_s,
            wanted=lambda flags: self.features.enabled(RAPTOR_AUTO_UPDATE, flags),
        )

    async def _sweep_keys(self) -> None:
        """Remove answers under idempotency keys whose time is over."""
        while True:
            try:
                if await self.queue.leads():
                    await self.catalogue.idempotency.sweep()
            except AgenticRagError as error:
                _log.warning("idempotency_keys_not_swept", code=error.code, reason=error.message)
            await asyncio.sleep(_KEYS_SWEPT_EVERY_S)
