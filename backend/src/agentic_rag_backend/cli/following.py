"""Following jobs to their end: many jobs with one request per poll, or one job with its progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import typer

from agentic_rag_backend.cli.command import join_path
from agentic_rag_backend.cli.output import fields
from agentic_rag_backend.cli.progress import ProgressDisplay, describe_left_job, leaving

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


def is_successful(job: Job) -> bool:
    """Return whether a job did all of its work."""
    return bool(job["state"] == "succeeded")


def explain_failure(job: Job) -> str:
    """Return why a job did not succeed."""
    error, reasons = job.get("error") or {}, (job.get("result") or {}).get("reasons")
    if reasons:  # a partial result
        return "; ".join(reasons)
    return str(error.get("message") or error.get("detail") or error.get("code") or job.get("message") or job["state"])


class JobFollower:
    """Polls the newest page of jobs and delivers finished jobs to `wait_for`. Open it with `poll_jobs`.

    Args:
        on_poll: called at each poll with every unfinished job that is awaited.
    """

    def __init__(self, client: Client, on_poll: Callable[[Job], None] = lambda _: None) -> None:
        self._client = client
        self._on_poll = on_poll
        self._waiting: dict[str, asyncio.Future[Job]] = {}

    async def wait_for(self, job_id: str) -> Job:
        """Wait for a job's end and return it."""
        return await self._waiting.setdefault(job_id, asyncio.get_running_loop().create_future())

    async def poll_forever(self) -> None:
        """Poll until the task is cancelled. An error is raised by every `wait_for`."""
        try:
            while True:
                await asyncio.sleep(POLL_INTERVAL_S)
                if self._waiting:
                    await self._poll_once()
        except Exception as error:  # noqa: BLE001 - every error goes to the callers that wait
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)

    async def _poll_once(self) -> None:
        newest = {job["id"]: job for job in await self._client.every("/jobs", limit=NEWEST)}
        job_ids = list(self._waiting)
        for job_id in [job_id for job_id in job_ids if job_id not in newest][:ALONE]:
            newest[job_id] = await self._client.get(f"/jobs/{job_id}")
            self._waiting[job_id] = self._waiting.pop(job_id)  # to the end of the queue
        for job in (newest[job_id] for job_id in job_ids if job_id in newest):
            if job["state"] in ENDED:
                self._waiting.pop(job["id"]).set_result(job)
            else:
                self._on_poll(job)


@asynccontextmanager
async def poll_jobs(client: Client, on_poll: Callable[[Job], None] = lambda _: None) -> AsyncIterator[JobFollower]:
    """Yield a `JobFollower` that polls while the context is open."""
    follower = JobFollower(client, on_poll)
    task = asyncio.create_task(follower.poll_forever())
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def follow_job(client: Client, job_id: str, *, title: str) -> Job:
    """Show a job's progress on stderr until it ends, and return it.

    Raises:
        Interrupted: Ctrl-C. The job continues where it runs.
    """
    client.wait_for_restarts()
    with leaving(describe_left_job(client, job_id)), ProgressDisplay(title) as display:
        while True:
            job: Job = await client.get(join_path("/jobs", job_id))
            if job["state"] in ENDED:
                return job
            display.update(f"{title}: {job['stage'] or job['state']}", completed=job["done"], total=job["total"])
            await asyncio.sleep(POLL_INTERVAL_S)


async def finish_job(session: Session, job_id: str, *, title: str, render: Callable[[Output, Job], None] | None = None) -> None:
    """Follow a job to its end, and print it: whole as JSON, otherwise by ``render``, or its result.

    Raises:
        Exit: the job failed; the reason is on stderr.
    """
    output, job = session.output, await follow_job(session.client, job_id, title=title)
    if output.as_json or render is not None:
        output.present(job, render)
    elif is_successful(job):
        output.show(fields(job["result"] or {}))
    require_success(output, job)


def require_success(output: Output, job: Job) -> None:
    """Return if the job succeeded.

    Raises:
        Exit: it failed; the reason is on stderr, unless JSON is printed.
    """
    if is_successful(job):
        return
    if not output.as_json:
        output.note(f"error: {explain_failure(job)}")
    raise typer.Exit(1)
