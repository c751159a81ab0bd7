"""Cancels and retries the jobs of a tenant."""

from __future__ import annotations

from collections.abc import Mapping

from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import JobCatalogue


class JobService:
    """Operations on a tenant's jobs.

    Args:
        workflows: name of the first workflow by kind of job, as registered with the queue.
    """

    def __init__(self, jobs: JobCatalogue, queue: JobQueue, workflows: Mapping[JobKind, str]) -> None:
        self._jobs = jobs
        self._queue = queue
        self._workflows = dict(workflows)

    async def cancel(self, tenant: TenantId, job_id: str) -> Job:
        """Ask a job to stop.

        Raises:
            NotFound: the tenant has no such job.
            Conflict: the job has ended.
        """
        return await self._jobs.request_cancel(tenant, job_id)

    async def retry(self, tenant: TenantId, job_id: str) -> Job:
        """Queue a failed, partial or cancelled job again with the next attempt number.

        Raises:
            Conflict: the job is in another state.
        """
        job = await self._jobs.job(tenant, job_id)
        return await self._jobs.retry(tenant, job_id, self._queue.enqueuer(self._workflows[job.kind]))
