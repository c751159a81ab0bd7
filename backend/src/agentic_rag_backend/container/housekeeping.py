"""What goes on behind the requests: comparing the stores, and removing what nobody needs any more."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime

import structlog

from agentic_rag_backend.communities.options import RebuildOptions
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
from agentic_rag_backend.ingestion.runs import Runner
from agentic_rag_backend.ingestion.service import DELETE, INGEST, IngestionService
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.jobs.service import JobService
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution import Resolver
from agentic_rag_backend.retrieval.graph_cache import TenantGraphs
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.tenancy.service import Erase, TenantService
from agentic_rag_backend.transfer.service import WORKFLOW as IMPORT

FIRST_WORKFLOW = {
    JobKind.INGEST: INGEST,
    JobKind.DELETE: DELETE,
    JobKind.REBUILD: REBUILD,
    JobKind.RECONCILE: RECONCILE,
    JobKind.IMPORT: IMPORT,
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


def make_reconciler(adapters: Adapters, parts: Served, started_at: datetime) -> Reconciler:
    """Return what compares the stores with one another."""
    catalogue, queue, ingestion = adapters.catalogue, parts.queue, parts.ingestion
    stores = ReconciledStores(
        catalogue=catalogue,
        graph=adapters.graph,
        vectors=adapters.vectors,
        blobs=adapters.blobs,
        embedder=adapters.embedder,
        computation=Computation(embedder=adapters.embedder, extractor=RuleExtractor()),
        resolver=Resolver(adapters.graph),
    )

    def on_mended(tenant: TenantId) -> None:
        parts.graphs.read_anew(tenant)
        parts.communities.on_documents_changed(tenant)

    async def rebuild(tenant: TenantId) -> Job:
        return await parts.communities.request_rebuild(tenant, RebuildOptions(mode="full"))

    services = ReconciledServices(
        queue=queue,
        enqueue=lambda kind: queue.enqueuer(FIRST_WORKFLOW[kind]),
        give_up=ingestion.given_up,
        retry=parts.jobs.retry,
        rebuild=rebuild,
        on_mended=on_mended,
    )
    tenants = TenantsRound(stores=stores, erase=parts.erase, delete=parts.tenants.delete)
    runner = Runner(catalogue.jobs)
    return Reconciler(stores, services, tenants, runner=runner, started_at=started_at)


async def sweep_originals(reconciler: Reconciler) -> None:
    """Remove what processes that were killed left in the blob store: housekeeping, which nothing waits for."""
    try:
        removed = await reconciler.sweep()
    except AgenticRagError as error:
        _log.warning("sweep_failed", code=error.code, reason=error.message)
    else:
        if removed:
            _log.info("originals_of_no_document_removed", count=removed)


def keep_sweeping_keys(catalogue: Catalogue, stack: AsyncExitStack) -> None:
    """Remove answers under idempotency keys whose time is over, until ``stack`` is left."""

    async def sweep() -> None:
        while True:
            try:
                await catalogue.idempotency.sweep()
            except AgenticRagError as error:
                _log.warning("idempotency_keys_not_swept", code=error.code, reason=error.message)
            await asyncio.sleep(_KEYS_SWEPT_EVERY_S)

    task = asyncio.create_task(sweep(), name="idempotency-keys")
    stack.push_async_callback(asyncio.wait, [task])
    stack.callback(task.cancel)


def keep_schedule(reconciler: Reconciler, catalogue: Catalogue, interval_s: float, stack: AsyncExitStack) -> None:
    """Compare the stores once an interval (0: never), until ``stack`` is left."""
    if interval_s:
        schedule = Schedule(reconciler, catalogue.tenants, interval_s=interval_s)
        task = asyncio.create_task(schedule.run(), name="reconciliation")
        stack.push_async_callback(asyncio.wait, [task])
        stack.callback(task.cancel)
