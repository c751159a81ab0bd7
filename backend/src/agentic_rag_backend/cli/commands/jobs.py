"""``jobs list|show|cancel|retry|watch``."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.following import Job, finish_job
from agentic_rag_backend.cli.output import Output, fields, when
from agentic_rag_backend.cli.resources import Resource, list_command, show_command

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="Id of the job, from 'jobs list'.")]
JOBS = Resource(
    path="/jobs",
    columns={
        "id": "id",
        "kind": "kind",
        "state": "state",
        "stage": "stage",
        "#done": lambda job: f"{job['done']}/{job['total']}",
        "updated": lambda job: when(job["updated_at"]),
    },
    droppable=("updated", "stage"),
)
State = Annotated[str | None, typer.Option("--state", help="queued, running, succeeded, partial, failed or cancelled.")]
Kind = Annotated[str | None, typer.Option("--kind", help="ingest, delete, rebuild, reconcile or import.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="jobs", help="Show, cancel and retry jobs.", no_args_is_help=True)
    command(group, "list")(list_command(JOBS, "List jobs, newest first.", state=State, kind=Kind))
    command(group, "show")(show_command(JOBS, JobId, "Show a job."))
    command(group, "cancel")(cancel_job)
    command(group, "retry", work=True)(retry_job)
    command(group, "watch", work=True)(watch_job)
    app.add_typer(group)


async def cancel_job(session: Session, job_id: JobId) -> None:
    """Request the cancellation of a job."""
    session.output.present(await session.client.post(f"/jobs/{job_id}/cancel"))


async def retry_job(
    session: Session,
    job_id: JobId,
    watch: Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until it has ended.")] = True,
) -> None:
    """Retry a failed, partial or cancelled job. Finished work is not repeated."""
    accepted = await session.client.post(f"/jobs/{job_id}/retry")
    if watch:
        await watch_job(session, job_id)
    else:
        session.output.present(accepted)


async def watch_job(session: Session, job_id: JobId) -> None:
    """Follow a job to its end. The command fails if the job fails."""
    await finish_job(session, job_id, title="job", render=_show_job)


def _show_job(output: Output, job: Job) -> None:
    output.show(fields(job))
