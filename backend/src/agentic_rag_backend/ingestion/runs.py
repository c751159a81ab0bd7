"""The boundary around a job's work: started, tried again where that helps, and always ended with a reason."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, ModelUnavailable, StoreLocked, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import JobCatalogue

ATTEMPTS = 5
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
PROGRESS_EVERY_S = 0.25
"""Progress is written (and a request to cancel read) at most this often: a write a chunk would cost more than the chunk."""

_log = structlog.get_logger(__name__)
T = TypeVar("T")


class Stopped(Exception):
    """The work is of no use any more: cancelled, overtaken by a newer version, or the document was deleted."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Unfinished(AgenticRagError):
    """The job did its work and found that something is left."""

    code = "unfinished"
    title = "Unfinished"


@dataclass(slots=True)
class Run:
    """One attempt at a job. Where it is, is kept for the error that may end it."""

    tenant: TenantId
    job: Job
    jobs: JobCatalogue
    stage: str = "start"
    done: int = 0
    total: int = 0
    _written: float = field(default=-1e9)

    @property
    def document_id(self) -> str:
        """The document the job is about."""
        return self.job.document_id or ""

    @property
    def version(self) -> int:
        """The version the job is about."""
        return self.job.version or 0

    async def progress(self, stage: str, done: int, total: int, *, at_once: bool = False) -> None:
        """Note how far the job is, now and then (or ``at_once``) in its row.

        Raises:
            Stopped: cancelling was requested.
        """
        self.stage, self.done, self.total = stage, done, total
        now = time.monotonic()
        if at_once or now - self._written >= PROGRESS_EVERY_S:
            self._written = now
            if await self.jobs.progress(self.tenant, self.job.id, stage=stage, done=done, total=total):
                raise cancelled()


def cancelled() -> Stopped:
    """Return what ends a job whose cancelling was requested."""
    return Stopped("cancelled", "cancelling was requested")


Step = Callable[[Run], Awaitable[None]]
"""A part of a job's work, repeatable."""
Failed = Callable[[Run, AgenticRagError | Stopped], Awaitable[None]]
"""Notes with the document that the job ends by an error."""


async def begin(jobs: JobCatalogue, tenant: TenantId, job_id: str, attempt: int, *, started: bool = False) -> Run | None:
    """Mark the job running, unless it was ``started`` by an earlier workflow; None if it has ended, or is at another attempt."""
    job = await persistently(lambda: jobs.job(tenant, job_id) if started else jobs.start(tenant, job_id))
    if job.state.ended or job.attempt != attempt:
        return None
    return Run(tenant, job, jobs, _written=time.monotonic())


async def guarded(run: Run, step: Step, failed: Failed) -> bool:
    """Tell whether ``step`` went well; an error ends the job and becomes its ``error {code, message, stage}``.

    Stores and models that do not answer are tried again with growing pauses. Being cancelled as a task (shutdown)
    leaves the job as it is: it is taken up at the next start.
    """
    job_id, tenant = run.job.id, str(run.tenant)
    try:
        if run.job.cancel_requested:
            raise cancelled()
        await persistently(lambda: step(run))
    except Stopped as stop:
        ending: AgenticRagError | Stopped = stop
    except AgenticRagError as error:
        _log.warning("job failed", job=job_id, tenant=tenant, stage=run.stage, code=error.code, reason=error.message)
        ending = error
    except Exception as error:  # noqa: BLE001
        # The boundary of a job: whatever went wrong in one document must not stop the others, nor go unseen.
        _log.exception("job failed unexpectedly", job=job_id, tenant=tenant, stage=run.stage)
        ending = AgenticRagError(f"unexpected {type(error).__name__} while at {run.stage!r}; the log has the details")
    else:
        return True
    await persistently(lambda: end(run, failed, ending))
    return False


async def end(run: Run, failed: Failed, error: AgenticRagError | Stopped) -> None:
    """Note with the document why its job ends, then with the job."""
    await failed(run, error)
    state = JobState.CANCELLED if isinstance(error, Stopped) else JobState.FAILED
    if state is JobState.CANCELLED:
        await run.jobs.progress(run.tenant, run.job.id, stage=run.stage, done=run.done, total=run.total, message=error.message)
    reason = {"code": error.code, "message": error.message, "stage": run.stage}
    await run.jobs.finish(run.tenant, run.job.id, state, error=reason)


async def persistently(work: Callable[[], Awaitable[T]]) -> T:
    """Return what ``work`` returns, trying again while a store or model does not answer."""

    retrying = AsyncRetrying(retry=retry_if_exception(_passes), stop=stop_after_attempt(ATTEMPTS), wait=_pause_s, reraise=True)

    async def attempt() -> T:
        # A coroutine function: tenacity awaits nothing that a plain function returns.
        return await work()

    return await retrying(attempt)


def _passes(error: BaseException) -> bool:
    return isinstance(error, StoreUnavailable | ModelUnavailable) and not isinstance(error, StoreLocked)


def _pause_s(state: RetryCallState) -> float:
    """Return how long to wait: twice as long each time, or what the model asked for."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = getattr(error, "retry_after_s", None) or 0.0
    return float(min(LONGEST_PAUSE_S, max(asked, FIRST_PAUSE_S * 2 ** (state.attempt_number - 1))))
