"""The reconciler: compares catalogue, graph, vectors and blobs of a tenant, and repairs differences."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId, TenantState, require_tenant
from agentic_rag_backend.ingestion.reconciliation.communities_round import CommunitiesRound
from agentic_rag_backend.ingestion.reconciliation.documents_round import DocumentsRound
from agentic_rag_backend.ingestion.reconciliation.jobs_round import JobsRound
from agentic_rag_backend.ingestion.reconciliation.originals_round import OriginalsRound
from agentic_rag_backend.ingestion.reconciliation.orphans_round import FactsRound, OrphansRound
from agentic_rag_backend.ingestion.reconciliation.report import Report
from agentic_rag_backend.ingestion.reconciliation.rounds import Progress, ReconciledStores, Round, Services
from agentic_rag_backend.ingestion.reconciliation.tenants_round import TenantsRound
from agentic_rag_backend.ingestion.reconciliation.trees_round import TreesRound
from agentic_rag_backend.jobs.runner import Run, Runner
from agentic_rag_backend.telemetry.logs import get_logger

WORKFLOW = "reconcile_v1"
RECORDED_WITHIN = timedelta(hours=1)
"""An original is stored shortly before its document is recorded, within one request."""
_PAGE = 200
_log = get_logger(__name__)


class Reconciler:
    """Compares a tenant's stores, on request (`run`) or as a job (`request_job`, `reconcile_v1`).

    Args:
        tenants: compares data that belongs to no tenant.
        runner: begins and ends jobs.
        started_at: start time of this process, aware. An original that was stored earlier and never recorded is an orphan.
    """

    def __init__(
        self, stores: ReconciledStores, services: Services, tenants: TenantsRound, *, runner: Runner, started_at: datetime
    ) -> None:
        self._stores = stores
        self._services = services
        self._tenants = tenants
        self._runner = runner
        self._started_at = started_at

    async def request_job(self, tenant: TenantId, *, repair: bool, confirmed: bool = False) -> Job:
        """Enqueue a comparison, or return an unfinished one of the same kind."""
        enqueue = self._services.queue.enqueuer(WORKFLOW)
        jobs = self._stores.catalogue.jobs
        arguments = {"repair": repair, "confirm": confirmed}
        job = await jobs.create(require_tenant(tenant), JobKind.RECONCILE, arguments, enqueue, join=True)
        if any(bool(job.arguments.get(name)) != value for name, value in arguments.items()):
            job = await jobs.create(tenant, JobKind.RECONCILE, arguments, enqueue)
        return job

    async def find_last(self, tenant: TenantId) -> Job | None:
        """Return the newest comparison."""
        return await self._stores.catalogue.jobs.last(tenant, JobKind.RECONCILE)

    async def reconcile_v1(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow: compare, repair if the job requests it, and finish with the report. Idempotent."""
        await self._runner.run_job(tenant, job_id, attempt, self._run_job)

    async def run(self, tenant: TenantId, *, repair: bool, confirmed: bool = False, progress: Progress | None = None) -> Report:
        """Compare the tenant's stores and return the differences. With ``repair``, repair them.

        Args:
            confirmed: a person confirmed the removal of data that the catalogue does not have, whatever its amount.
        """
        report = Report(repair, confirmed)
        round = Round(
            tenant=require_tenant(tenant),
            stores=self._stores,
            services=self._services,
            report=report,
            progress=progress or _discard_progress,
            originals_before=max(self._started_at, datetime.now(UTC) - RECORDED_WITHIN),
        )
        await JobsRound(round).run()
        await DocumentsRound(round).run()
        await OrphansRound(round).run()
        await FactsRound(round).run()
        await CommunitiesRound(round).run()
        await TreesRound(round).run()
        await OriginalsRound(round).run()
        if round.changed:
            await self._stores.vectors.flush()
            await self._stores.catalogue.documents.record_repair(tenant, None, knowledge=False)
        if report.tallies:
            counts = {kind.value: asdict(tally) for kind, tally in report.tallies.items()}
            _log.info("stores_differed", tenant=tenant.value, repair=repair, confirmed=confirmed, kinds=counts)
        return report

    async def run_tenants(self, *, repair: bool, confirmed: bool = False) -> Report:
        """Compare the tenants that have data in stores with the existing tenants."""
        return await self._tenants.run(repair=repair, confirmed=confirmed)

    async def sweep(self) -> int:
        """Remove every tenant's originals that no document names, left by killed processes, and return their number.

        A tenant with more orphans than killed processes can leave is skipped (`removals`).
        """
        removed, cursor = 0, None
        while True:
            page = await self._stores.catalogue.tenants.tenants(limit=_PAGE, cursor=cursor)
            for tenant in page.items:
                if tenant.state is TenantState.IMPORTING:
                    continue  # the recorded documents are incomplete during an import
                report = Report(repair=True)
                round = Round(
                    tenant=tenant.id,
                    stores=self._stores,
                    services=self._services,
                    report=report,
                    progress=_discard_progress,
                    originals_before=self._started_at,
                )
                await OriginalsRound(round).run()
                removed += report.differences - report.left
            cursor = page.next_cursor
            if cursor is None:
                return removed

    async def _run_job(self, run: Run) -> None:
        repair = bool(run.job.arguments.get("repair"))
        confirmed = bool(run.job.arguments.get("confirm"))
        report = await run.run_until_cancellation(
            self.run(run.tenant, repair=repair, confirmed=confirmed, progress=run.report_progress)
        )
        await run.finish(JobState.SUCCEEDED, result=report.as_result())


async def _discard_progress(stage: str, done: int, total: int) -> None:
    """Discard the progress."""
