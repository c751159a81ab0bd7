"""``jobs list|show|cancel|retry|watch``."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.documents import Most
from agentic_rag_backend.cli.following import Job, failure_reason, follow, succeeded
from agentic_rag_backend.cli.output import fields, table, when

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="Id of the job, from 'jobs list'.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="jobs", help="Show, cancel and retry jobs.", no_args_is_help=True)
    command(group, "list")(list_jobs)
    command(group, "show")(show)
    command(group, "cancel")(cancel)
    command(group, "retry", work=True)(retry)
    command(group, "watch", work=True)(watch)
    app.add_typer(group)


async def list_jobs(
    session: Session,
    limit: Most = 50,
    state: Annotated[
        str | None, typer.Option("--state", help="queued, running, succeeded, partial, failed or cancelled.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="ingest, delete, rebuild, reconcile or import.")] = None,
) -> None:
    """List jobs, newest first."""
    found = await session.client.every("/jobs", limit=limit, state=state, kind=kind)
    if session.output.as_json:
        session.output.result(found)
        return
    rows = [
        [job["id"], job["kind"], job["state"], job["stage"], f"{job['done']}/{job['total']}", when(job["updated_at"])]
        for job in found
    ]
    session.output.show(table(["id", "kind", "state", "stage", "#done", "updated"], rows, droppable=("updated", "stage")))


async def show(session: Session, job_id: JobId) -> None:
    """Show a job."""
    _show(session, await session.client.get(f"/jobs/{job_id}"))


async def cancel(session: Session, job_id: JobId) -> None:
    """Request the cancellation of a job."""
    _show(session, await session.client.post(f"/jobs/{job_id}/cancel"))


async def retry(
    session: Session,
    job_id: JobId,
    watch_job: Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until it has ended.")] = True,
) -> None:
    """Retry a failed, partial or cancelled job. Finished work is not repeated."""
    accepted = await session.client.post(f"/jobs/{job_id}/retry")
    if watch_job:
        await watch(session, job_id)
    else:
        _show(session, accepted)


async def watch(session: Session, job_id: JobId) -> None:
    """Follow a job to its end. The command fails if the job fails."""
    job = await follow(session.client, job_id, title="job")
    _show(session, job)
    if not succeeded(job):
        if not session.output.as_json:
            session.output.note(f"error: {failure_reason(job)}")
        raise typer.Exit(1)


def _show(session: Session, job: Job) -> None:
    if session.output.as_json:
        session.output.result(job)
    else:
        session.output.show(fields(job))
