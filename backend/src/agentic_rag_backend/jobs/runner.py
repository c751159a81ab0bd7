"""Runs the work of a job: starts it, retries it while stores or models are unavailable, and always records its end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, ModelUnavailable, NotFound, StoreUnavailable
from agentic_rag_backend.fairness import charge_to
from agentic_rag_backend.jobs.base import PATIENCE_S, Backoff
from agentic_rag_backend.jobs.coordination.recovery import forgive_kills
from agentic_rag_backend.stores.catalogue.base import JobCatalogue
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.metrics import count_ended_job

PROGRESS_EVERY_S = 1.0
"""Seconds between two writes of progress, which also read cancel requests. Writing for each chunk would cost more than the chunk.
"""
CANCEL_CHECK_S = 0.5
"""Seconds between two reads of the job's row for a request to cancel, while no progress is written."""

CANCELLED = "cancelled"
"""Error code of a job that its owner stopped."""
START = "start"
"""Stage of a job that has not started any work."""

_log = get_logger(__name__)
T = TypeVar("T")


class JobStopped(Exception):
    """The job's work is not needed any more: it was cancelled, a newer version replaced it, or its document was deleted."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Unfinished(AgenticRagError):
    """The job ended, but a part of its work remains."""

    code = "unfinished"
    title = "Unfinished"


@dataclass(slots=True)
class Run:
    """One attempt at a job. It knows the current stage, which an error report names."""

    tenant: TenantId
    job: Job
    jobs: JobCatalogue
    stage: str = START
    done: int = 0
    total: int = 0
    results_saved: int = 0
    """Number of recorded results, which a later attempt reuses. Each increase restarts the job's patience; see `count_save`."""
    _written: float = field(default=-1e9)
    _message: str = ""

    @property
    def document_id(self) -> str:
        """The document the job is about."""
        return self.job.document_id or ""

    @property
    def version(self) -> int:
        """The version the job is about."""
        return self.job.version or 0

    def next_part(self) -> Run:
        """Return a run of the same attempt that has not started any work."""
        return Run(self.tenant, self.job, self.jobs, _written=self._written)

    async def count_save(self) -> None:
        """Count a recorded result. Earlier kills of the process no longer count against the job."""
        self.results_saved += 1
        await forgive_kills()

    async def report_progress(self, stage: str, done: int, total: int, *, at_once: bool = False) -> None:
        """Record the progress of the job. Its row is updated periodically, or immediately if ``at_once``.

        Raises:
            Stopped: cancelling was requested.
        """
        self.stage, self.done, self.total = stage, done, total
        now = time.monotonic()
        if at_once or self._message or now - self._written >= PROGRESS_EVERY_S:
            self._written = now
            await self.announce_message("")

    async def announce_message(self, message: str) -> None:
        """Write a message and the progress to the job's row.

        Raises:
            Stopped: cancelling was requested.
        """
        stop = await self.jobs.progress(
            self.tenant, self.job.id, stage=self.stage, done=self.done, total=self.total, message=message
        )
        self._message = message
        if stop:
            raise cancellation()

    async def finish(
        self,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        progress: tuple[str, int, int] | None = None,
    ) -> None:
        """End the job. See `JobCatalogue.finish`."""
        await self.jobs.finish(self.tenant, self.job.id, state, result=result, error=error, progress=progress)
        self.count_end(state)

    def count_end(self, state: JobState) -> None:
        """Count the end of the job, which `finish` or another transaction has recorded."""
        count_ended_job(self.job.kind.value, state.value, (datetime.now(UTC) - self.job.created_at).total_seconds())

    async def check_cancellation(self) -> None:
        """Read whether cancelling was requested.

        Raises:
            Stopped: cancelling was requested.
        """
        with contextlib.suppress(StoreUnavailable):
            if (await self.jobs.job(self.tenant, self.job.id)).cancel_requested:
                raise cancellation()

    async def pause_attempts(self, pause_s: float, error: AgenticRagError) -> None:
        """Wait before another attempt. The job's row shows the reason and the end of the pause.

        Raises:
            Stopped: cancelling was requested.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + pause_s
        clock = datetime.now(UTC) + timedelta(seconds=pause_s)
        with contextlib.suppress(StoreUnavailable):
            await self.announce_message(f"waiting until {clock:%Y-%m-%dT%H:%M:%SZ} to try again: {error.message}")
        while (left_s := until - loop.time()) > 0:
            await asyncio.sleep(min(CANCEL_CHECK_S, left_s))
            await self.check_cancellation()

    async def run_until_cancellation(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``work``. A request to cancel the job cancels ``work`` and its model calls.

        Raises:
            Stopped: cancelling was requested.
        """
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=CANCEL_CHECK_S))[0]:
                await self.check_cancellation()
            return task.result()
        finally:
            # The work may have failed while the row was read. The cancellation wins, and the error must be retrieved.
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def cancellation() -> JobStopped:
    """Return the exception that ends a cancelled job."""
    return JobStopped(CANCELLED, "cancelling was requested")


Step = Callable[[Run], Awaitable[None]]
"""A repeatable part of a job's work."""
Failed = Callable[[Run, AgenticRagError | JobStopped], Awaitable[None]]
"""Records the job's error with its subject, such as a document."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Starts jobs, runs their steps and ends them.

    Args:
        patience_s: seconds without progress for which a job waits for stores and models that do not answer.
    """

    jobs: JobCatalogue
    patience_s: float = PATIENCE_S

    async def begin_job(
        self,
        tenant: TenantId,
        job_id: str,
        attempt: int,
        *,
        started: bool = False,
        start: Callable[[], Awaitable[Job]] | None = None,
    ) -> Run | None:
        """Mark the job as running unless an earlier workflow ``started`` it. None if it ended or has another attempt.

        Args:
            start: marks it, and does more in the same transaction; or only reads it, so that it stays queued until its turn.
        """
        jobs = self.jobs
        if start is not None:
            job = await self._retry_step(start)
        else:
            job = await self._retry_step(lambda: jobs.job(tenant, job_id) if started else jobs.start(tenant, job_id))
        if started and job.state is JobState.QUEUED:  # handed back by a process that had begun it
            job = await self._retry_step(lambda: jobs.start(tenant, job_id))
        if job.state.ended or job.attempt != attempt:
            return None
        charge_to(job.key_id)
        return Run(tenant, job, jobs, _written=time.monotonic())

    async def run_job(self, tenant: TenantId, job_id: str, attempt: int, step: Step, failed: Failed | None = None) -> None:
        """Begin the job and run its only step; see `begin_job` and `run_step`."""
        run = await self.begin_job(tenant, job_id, attempt)
        if run is not None:
            await self.run_step(run, step, failed)

    async def record_success(self, run: Run, result: Mapping[str, Any]) -> None:
        """Record the result of a job whose work is done."""
        await self._retry_step(lambda: run.finish(JobState.SUCCEEDED, result=result))

    async def run_step(self, run: Run, step: Step, failed: Failed | None = None) -> bool:
        """Run ``step`` and return whether it succeeded. An error ends the job as its ``error {code, message, stage}``.

        While a store or model does not answer, the step is repeated from its beginning. Cancelling the task (shutdown)
        leaves the job as it is; the next start resumes it.
        """
        job_id, tenant = run.job.id, str(run.tenant)
        try:
            if run.job.cancel_requested:
                raise cancellation()
            await self._retry_step(lambda: _step_unless_deleted(step, run), run)
        except JobStopped as stop:
            ending: AgenticRagError | JobStopped = stop
        except AgenticRagError as error:
            _log.warning("job_failed", job=job_id, tenant=tenant, stage=run.stage, code=error.code, reason=error.message)
            ending = error
        except Exception as error:  # noqa: BLE001
            # The boundary of a job: a fault in one document must neither stop other jobs nor be hidden.
            _log.exception("job_crashed", job=job_id, tenant=tenant, stage=run.stage)
            ending = AgenticRagError(f"unexpected {type(error).__name__} in stage {run.stage!r}; the log has the details")
        else:
            return True
        await self._retry_step(lambda: end_with_error(run, failed, ending))
        return False

    async def _retry_step(self, work: Callable[[], Awaitable[T]], run: Run | None = None) -> T:
        """Return the result of ``work``. Repeat it while a store or model does not answer. The row of ``run`` shows the wait."""
        backoff = Backoff(self.patience_s)
        while True:
            try:
                return await work()
            except (StoreUnavailable, ModelUnavailable) as error:
                now = asyncio.get_running_loop().time()
                pause_s = backoff.pause_s(error, now=now, progress=run.results_saved if run is not None else 0)
                if pause_s is None:
                    raise
                reason = error
            _log.info("job_waits", pause_s=pause_s, code=reason.code, reason=reason.message, job=run and run.job.id)
            await (run.pause_attempts(pause_s, reason) if run is not None else asyncio.sleep(pause_s))


async def _step_unless_deleted(step: Step, run: Run) -> None:
    """Run the step. If its subject was deleted, which also cancels the job, then the job ends as cancelled."""
    try:
        await step(run)
    except NotFound:
        await run.check_cancellation()
        raise


async def end_with_error(run: Run, failed: Failed | None, error: AgenticRagError | JobStopped) -> None:
    """Record the error with the job's subject, then in the job's row."""
    if failed is not None:
        await failed(run, error)
    stopped = isinstance(error, JobStopped)
    await run.jobs.progress(
        run.tenant, run.job.id, stage=run.stage, done=run.done, total=run.total, message=error.message if stopped else ""
    )
    reason = {"code": error.code, "message": error.message, "stage": run.stage}
    await run.finish(JobState.CANCELLED if stopped else JobState.FAILED, error=reason)
