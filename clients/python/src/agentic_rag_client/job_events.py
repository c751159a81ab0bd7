"""Progress and ends of jobs."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from agentic_rag_client import models
from agentic_rag_client.answer_events import OtherEvent, read_events
from agentic_rag_client.errors import ConnectionFailed, JobFailed, JobUnfinished, create_problem
from agentic_rag_client.methods import Mode, Resource, operation
from agentic_rag_client.requests import Call, fill_path
from agentic_rag_client.session import Session

_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_ENDED = frozenset({"succeeded", "partial", "failed", "cancelled"})


class Started(Protocol):
    """A result that names the job that it started, such as a `Submission`."""

    @property
    def job_id(self) -> str | None:
        """Return the id of the job, or None if there is nothing to do."""


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """A job's stage, and the number of steps done in it."""

    stage: str
    done: int
    total: int
    message: str


@dataclass(frozen=True, slots=True)
class JobEndEvent:
    """The job at its end. It is the last event."""

    job: models.Job


JobEvent: TypeAlias = ProgressEvent | JobEndEvent | OtherEvent


class JobEvents(Resource[Mode]):
    """Waits for jobs."""

    @operation
    async def wait(
        self,
        job: str | Started | models.Job,
        *,
        timeout_s: float | None = None,
        progress: Callable[[models.Job], None] | None = None,
        check: bool = True,
    ) -> models.Job:
        """Wait for the end of a job, and return it. Its state is requested every two seconds, and more often at first.

        Args:
            job: a job, its id, or a result with ``job_id``.
            timeout_s: seconds to wait; None: no limit.
            progress: called with the job whenever it has changed.
            check: raise `JobFailed` if the job failed or was cancelled.

        Raises:
            JobFailed: the job failed or was cancelled.
            JobUnfinished: the job had not ended after ``timeout_s``. It continues.
            ValueError: there is no job, because there was nothing to do.
        """
        return await wait_for_end(self._session, id_of(job), Waiting(timeout_s, progress, check=check))


@dataclass(frozen=True, slots=True)
class Waiting:
    """How to wait for a job: see `JobEvents.wait`."""

    timeout_s: float | None = None
    progress: Callable[[models.Job], None] | None = None
    check: bool = True


def id_of(job: str | Started | models.Job) -> str:
    """Return the id of a job.

    Raises:
        ValueError: there is no job.
    """
    if isinstance(job, str):
        return job
    number = job.id if isinstance(job, models.Job) else job.job_id
    if number is None:
        raise ValueError("there is no job to wait for: the request had nothing to do (job_id is None)")
    return number


async def wait_for_end(session: Session, job_id: str, waiting: Waiting) -> models.Job:
    """Return a job at its end."""
    began, previous = time.monotonic(), None
    while True:
        job = await session.read(Call("GET", fill_path("/api/v1/jobs/{job_id}", job_id)), models.Job)
        if waiting.progress is not None and job != previous:
            waiting.progress(job)
        previous = job
        if job.state in _ENDED:
            if waiting.check and job.state in ("failed", "cancelled"):
                raise JobFailed(job)
            return job
        spent_s = time.monotonic() - began
        if waiting.timeout_s is not None and spent_s >= waiting.timeout_s:
            raise JobUnfinished(job, waiting.timeout_s)
        pause = min(max(spent_s / 8, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
        remaining_s = pause if waiting.timeout_s is None else waiting.timeout_s - spent_s
        await session.transport.sleep(max(min(pause, remaining_s), 0.0))


async def read_job(session: Session, call: Call) -> AsyncGenerator[JobEvent, None]:
    """Yield the events of a job until its end. If the connection breaks, the current state is read again."""
    failures = 0
    while True:
        try:
            response = await session.open(call)
            async with aclosing(read_events(session, response)) as events:
                async for event in events:
                    failures = 0
                    data = {name: value for name, value in event.data.items() if name != "v"}
                    if event.name == "error":
                        raise create_problem(data)
                    if event.name == "done":
                        yield JobEndEvent(models.Job.model_validate(data))
                        return
                    if event.name in ("stage", "progress"):
                        yield ProgressEvent(*(data.get(name, default) for name, default in _PROGRESS))
                    else:
                        yield OtherEvent(event.name, data)
            raise ConnectionFailed(f"{session.options.origin} ended the stream before the job had ended")
        except ConnectionFailed:
            if failures >= session.options.max_retries:
                raise
            await session.transport.sleep(2.0**failures / 4)
            failures += 1


_PROGRESS = (("stage", ""), ("done", 0), ("total", 0), ("message", ""))
