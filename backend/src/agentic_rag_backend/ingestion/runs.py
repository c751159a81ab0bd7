"""The boundary around a job's work: started, waited with where stores or models are away, and always ended with a reason."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import structlog

from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, ModelUnavailable, StoreUnavailable
from agentic_rag_backend.ingestion.waiting import PATIENCE_S, Waiting
from agentic_rag_backend.stores.catalogue.base import JobCatalogue

PROGRESS_EVERY_S = 1.0
"""Progress is written (and a request to cancel read) at most this often: a write a chunk would cost more than the chunk."""
LOOK_EVERY_S = 0.5
"""While nothing is written, the job's row is read this often for a request to cancel."""

CANCELLED = "cancelled"
"""The code of a job that its owner stopped."""
START = "start"
"""The stage of a job of which nothing is done."""

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
    stage: str = START
    done: int = 0
    total: int = 0
    gained: int = 0
    """Counts what will not be done again, such as groups of results on record: waiting is not in vain while it grows."""
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

    async def progress(self, stage: str, done: int, total: int, *, at_once: bool = False) -> None:
        """Note how far the job is, now and then (or ``at_once``) in its row.

        Raises:
            Stopped: cancelling was requested.
        """
        self.stage, self.done, self.total = stage, done, total
        now = time.monotonic()
        if at_once or self._message or now - self._written >= PROGRESS_EVERY_S:
            self._written = now
            await self.say("")

    async def say(self, message: str) -> None:
        """Write a message beside how far the job is.

        Raises:
            Stopped: cancelling was requested.
        """
        stop = await self.jobs.progress(
            self.tenant, self.job.id, stage=self.stage, done=self.done, total=self.total, message=message
        )
        self._message = message
        if stop:
            raise cancelled()

    async def look(self) -> None:
        """Read whether the job is still wanted.

        Raises:
            Stopped: cancelling was requested.
        """
        with contextlib.suppress(StoreUnavailable):
            if (await self.jobs.job(self.tenant, self.job.id)).cancel_requested:
                raise cancelled()

    async def wait(self, pause_s: float, error: AgenticRagError) -> None:
        """Pause before another attempt; the job's row tells what is waited for, and until when.

        Raises:
            Stopped: cancelling was requested.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + pause_s
        clock = datetime.now(UTC) + timedelta(seconds=pause_s)
        with contextlib.suppress(StoreUnavailable):
            await self.say(f"waiting until {clock:%Y-%m-%dT%H:%M:%SZ} to try again: {error.message}")
        while (left_s := until - loop.time()) > 0:
            await asyncio.sleep(min(LOOK_EVERY_S, left_s))
            await self.look()

    async def watched(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what ``work`` returns; it is cancelled, calls of models with it, once the job is not wanted any more.

        Raises:
            Stopped: cancelling was requested.
        """
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=LOOK_EVERY_S))[0]:
                await self.look()
            return task.result()
        finally:
            # The work may have failed while the job was looked at: that error gives way, and must be taken note of.
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def cancelled() -> Stopped:
    """Return what ends a job whose cancelling was requested."""
    return Stopped(CANCELLED, "cancelling was requested")


Step = Callable[[Run], Awaitable[None]]
"""A part of a job's work, repeatable."""
Failed = Callable[[Run, AgenticRagError | Stopped], Awaitable[None]]
"""Notes with the document that the job ends by an error."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Begins jobs, runs their steps and ends them.

    Args:
        patience_s: seconds without progress that a job waits for stores and models that do not answer.
    """

    jobs: JobCatalogue
    patience_s: float = PATIENCE_S

    async def begin(self, tenant: TenantId, job_id: str, attempt: int, *, started: bool = False) -> Run | None:
        """Mark the job running, unless an earlier workflow ``started`` it; None if it has ended, or is at another attempt."""
        jobs = self.jobs
        job = await self._persistently(lambda: jobs.job(tenant, job_id) if started else jobs.start(tenant, job_id))
        if started and job.state is JobState.QUEUED:  # handed back by a process that had begun it
            job = await self._persistently(lambda: jobs.start(tenant, job_id))
        if job.state.ended or job.attempt != attempt:
            return None
        return Run(tenant, job, jobs, _written=time.monotonic())

    async def guarded(self, run: Run, step: Step, failed: Failed) -> bool:
        """Tell whether ``step`` went well; an error ends the job and becomes its ``error {code, message, stage}``.

        Stores and models that do not answer are waited for. Being cancelled as a task (shutdown) leaves the job as it is:
        it is taken up at the next start.
        """
        job_id, tenant = run.job.id, str(run.tenant)
        try:
            if run.job.cancel_requested:
                raise cancelled()
            await self._persistently(lambda: step(run), run)
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
        await self._persistently(lambda: end(run, failed, ending))
        return False

    async def _persistently(self, work: Callable[[], Awaitable[T]], run: Run | None = None) -> T:
        """Return what ``work`` returns, trying again while a store or model does not answer; ``run`` tells of it."""
        waiting = Waiting(self.patience_s)
        while True:
            try:
                return await work()
            except (StoreUnavailable, ModelUnavailable) as error:
                now = asyncio.get_running_loop().time()
                pause_s = waiting.after(error, now=now, progress=run.gained if run is not None else 0)
                if pause_s is None:
                    raise
                reason = error
            _log.info("job_waits", pause_s=pause_s, code=reason.code, reason=reason.message, job=run and run.job.id)
            await (run.wait(pause_s, reason) if run is not None else asyncio.sleep(pause_s))


async def end(run: Run, failed: Failed, error: AgenticRagError | Stopped) -> None:
    """Note with the document why its job ends, then with the job."""
    await failed(run, error)
    stopped = isinstance(error, Stopped)
    await run.jobs.progress(
        run.tenant, run.job.id, stage=run.stage, done=run.done, total=run.total, message=error.message if stopped else ""
    )
    reason = {"code": error.code, "message": error.message, "stage": run.stage}
    await run.jobs.finish(run.tenant, run.job.id, JobState.CANCELLED if stopped else JobState.FAILED, error=reason)
