"""Cancels and retries the jobs of a tenant, and waits for their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.jobs.job_catalogue import JobCatalogue


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
        job = await self._jobs.request_cancel(tenant, job_id)
        await self._queue.end_waits(tenant, job_id)
        return job

    async def retry(self, tenant: TenantId, job_id: str) -> Job:
        """Queue a failed, partial or cancelled job again with the next attempt number.

        Raises:
            Conflict: the job is in another state.
        """
        job = await self._jobs.job(tenant, job_id)
        return await self._jobs.retry(tenant, job_id, self._queue.enqueuer(self._workflows[job.kind]))


_POLL_INTERVAL_S = 0.05


class JobEndings:
    """Returns jobs when they have ended. It belongs to the loop of the first call."""

    def __init__(self, jobs: JobCatalogue, tenant: TenantId) -> None:
        self._jobs = jobs
        self._tenant = tenant
        self._awaited: dict[asyncio.Future[Job], str] = {}
        self._polling: asyncio.Task[None] | None = None

    async def wait_for_end(self, job_id: str) -> Job:
        """Wait for a job's end and return the job.

        Raises:
            NotFound: the tenant has no such job.
            StoreUnavailable: the catalogue fails.
        """
        ending: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._awaited[ending] = job_id
        ending.add_done_callback(self._awaited.pop)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll_jobs(), name="job-endings")
        return await ending

    async def _poll_jobs(self) -> None:
        while self._awaited:
            try:
                ended_jobs = {job.id: job for job in await self._jobs.ended(self._tenant, list(self._awaited.values()))}
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
                for ending in [ending for ending in self._awaited if not ending.done()]:
                    ending.set_exception(error)
            else:
                for ending, job_id in self._awaited.items():
                    if job_id in ended_jobs and not ending.done():
                        ending.set_result(ended_jobs[job_id])
            await asyncio.sleep(_POLL_INTERVAL_S)
