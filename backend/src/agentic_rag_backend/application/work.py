"""Jobs of a caller's tenant."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.stores.catalogue.base import Page


@dataclass(frozen=True, slots=True)
class WorkService:
    """Reads, cancels and retries jobs. A job of another tenant does not exist: `NotFound`."""

    container: Container

    @requires(Scope.READ)
    async def list_jobs(
        self,
        caller: Principal,
        *,
        limit: int,
        cursor: str | None = None,
        state: JobState | None = None,
        kind: JobKind | None = None,
        document_id: str | None = None,
    ) -> Page[Job]:
        """List jobs, newest first."""
        jobs = self.container.catalogue.jobs
        return await jobs.jobs(caller.tenant.id, limit=limit, cursor=cursor, state=state, kind=kind, document_id=document_id)

    @requires(Scope.READ)
    async def get_job(self, caller: Principal, job_id: str) -> Job:
        """Return a job."""
        return await self.container.catalogue.jobs.job(caller.tenant.id, job_id)

    @requires(Scope.WRITE)
    async def cancel_job(self, caller: Principal, job_id: str) -> Job:
        """Request the cancellation of a job."""
        return await self.container.jobs.cancel(caller.tenant.id, job_id)

    @requires(Scope.WRITE)
    async def retry_job(self, caller: Principal, job_id: str) -> Job:
        """Queue a failed, partial or cancelled job again."""
        return await self.container.jobs.retry(caller.tenant.id, job_id)
