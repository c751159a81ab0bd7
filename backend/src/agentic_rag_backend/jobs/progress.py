"""How a running job tells its owner how far it is, and hears that it should stop."""

from __future__ import annotations

import time
from collections.abc import Callable

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import JobCatalogue

_INTERVAL_S = 0.25


class JobCancelled(Exception):
    """Cancelling was requested: clean up and end. Never shown to a user."""


class JobProgress:
    """Records progress at most four times a second, and at every change of stage.

    ``clock`` returns seconds and only ever grows.
    """

    def __init__(self, jobs: JobCatalogue, tenant: TenantId, job_id: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._tenant = tenant
        self._job_id = job_id
        self._clock = clock
        self._stage: str | None = None
        self._next = 0.0

    async def report(self, stage: str, done: int, total: int, message: str = "") -> None:
        """Record that ``done`` of ``total`` units of ``stage`` are done, unless that was done a moment ago.

        The last unit of a stage is always recorded.

        Raises:
            JobCancelled: cancelling was requested.
        """
        now = self._clock()
        if stage == self._stage and done < total and now < self._next:
            return
        self._stage = stage
        self._next = now + _INTERVAL_S
        if await self._jobs.progress(self._tenant, self._job_id, stage=stage, done=done, total=total, message=message):
            raise JobCancelled(f"job {self._job_id} was asked to stop")
