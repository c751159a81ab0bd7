"""Jobs as their owner handles them: look, stop, try again."""

from __future__ import annotations

from collections.abc import Mapping

from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.stores.catalogue.base import JobCatalogue


class JobService:
    """Knows with which workflow each kind of job begins.

    Args:
        workflows: name of the first workflow by kind, as registered with the queue.
    """

    def __init__(self, jobs: JobCatalogue, queue: JobQueue, workflows: Mapping[JobKind, str]) -> None:
        self._jobs = jobs
        self._queue = queue
        self._workflows = dict(workflows)

    async def cancel(self, tenant: TenantId, job_id: str) -> Job:
        """Ask a job to stop; `NotFound` if there is none, `Conflict` if it has ended."""
        return await self._jobs.request_cancel(tenant, job_id)

    async def retry(self, tenant: TenantId, job_id: str) -> Job:
        """Queue a failed, partial or cancelled job again under the next attempt number; `Conflict` otherwise."""
        job = await self._jobs.job(tenant, job_id)
        return await self._jobs.retry(tenant, job_id, self._queue.enqueuer(self._workflows[job.kind]))
