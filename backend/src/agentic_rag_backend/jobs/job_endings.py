"""Waits for the ends of a tenant's jobs. One poll serves every job that is awaited."""

from __future__ import annotations

import asyncio

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import JobCatalogue

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
