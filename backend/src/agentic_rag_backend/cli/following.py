"""Following jobs to their end: many jobs with one request per poll, or one job with its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from agentic_rag_backend.cli.interruption import job_goes_on, leaving
from agentic_rag_backend.cli.output import fields
from agentic_rag_backend.cli.progress import ProgressDisplay

if TYPE_CHECKING:
    from agentic_rag_backend.cli.command import Session
    from agentic_rag_backend.cli.output import Output
    from agentic_rag_backend.cli.session.client import Client

POLL_INTERVAL_S = 0.2
"""Seconds between two polls."""
NEWEST = 100
"""Jobs per poll: one page. It has all jobs of one command unless other clients submit documents meanwhile."""
ALONE = 8
"""Maximum jobs per poll that are read one by one because the page lacks them. The next poll reads others."""
ENDED = frozenset({"succeeded", "partial", "failed", "cancelled"})
Job = dict[str, Any]


def succeeded(job: Job) -> bool:
    """Return whether a job did all of its work."""
    return bool(job["state"] == "succeeded")


def failure_reason(job: Job) -> str:
    """Return why a job did not succeed."""
    error, reasons = job.get("error") or {}, (job.get("result") or {}).get("reasons")
    if reasons:  # a partial result
        return "; ".join(reasons)
    return str(error.get("message") or error.get("detail") or error.get("code") or job.get("message") or job["state"])


class JobFollower:
    """Polls the newest page of jobs and delivers finished jobs to `ended`.

    Args:
        on_poll: called at each poll with every unfinished job that is awaited.
    """

    def __init__(self, client: Client, on_poll: Callable[[Job], None] = lambda _: None) -> None:
        self._client = client
        self._on_poll = on_poll
        self._waiting: dict[str, asyncio.Future[Job]] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> JobFollower:
        self._task = asyncio.create_task(self._poll_forever())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def ended(self, job_id: str) -> Job:
        """Wait for a job's end and return it."""
        return await self._waiting.setdefault(job_id, asyncio.get_running_loop().create_future())

    async def _poll_forever(self) -> None:
        try:
            while True:
                await asyncio.sleep(POLL_INTERVAL_S)
                if self._waiting:
                    await self._look()
        except Exception as error:  # noqa: BLE001 - every error goes to the callers that wait
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(error)

    async def _look(self) -> None:
        newest = {job["id"]: job for job in await self._client.every("/jobs", limit=NEWEST)}
        waiting = list(self._waiting)
        for job_id in [job for job in waiting if job not in newest][:ALONE]:
            newest[job_id] = await self._client.get(f"/jobs/{job_id}")
            self._waiting[job_id] = self._waiting.pop(job_id)  # to the end of the queue
        for job_id in waiting:
            job = newest.get(job_id)
            if job is None:
                continue
            if job["state"] in ENDED:
                self._waiting.pop(job_id).set_result(job)
            else:
                self._on_poll(job)


async def follow(client: Client, job_id: str, *, title: str) -> Job:
    """Show a job's progress on stderr until it ends, and return it.

    Raises:
        Interrupted: Ctrl-C. The job continues where it runs.
    """
    with leaving(job_goes_on(client, job_id)):
        return await _show_until_end(client, job_id, title)


async def finish_job(session: Session, job_id: str, *, title: str, render: Callable[[Output, Job], None] | None = None) -> None:
    """Follow a job to its end, and print it: whole as JSON, otherwise by ``render``, or its result.

    Raises:
        Exit: the job failed; the reason is on stderr.
    """
    output, job = session.output, await follow(session.client, job_id, title=title)
    if output.as_json or render is not None:
        output.present(job, render)
    elif succeeded(job):
        output.show(fields(job["result"] or {}))
    if not succeeded(job):
        if not output.as_json:
            output.note(f"error: {failure_reason(job)}")
        raise typer.Exit(1)


async def _show_until_end(client: Client, job_id: str, title: str) -> Job:
    client.wait_for_restarts()
    with ProgressDisplay(title) as display:
        while True:
            job: Job = await client.get(f"/jobs/{job_id}")
            if job["state"] in ENDED:
                return job
            display.update(f"{title}: {job['stage'] or job['state']}", completed=job["done"], total=job["total"])
            await asyncio.sleep(POLL_INTERVAL_S)
