"""``jobs retry|watch``, and the table of jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.following import finish_job
from agentic_rag_backend.cli.output import fields, format_time
from agentic_rag_backend.cli.resources import Resource

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="Id of the job, from 'jobs list'.")]
JOBS = Resource(
    path="/jobs",
    columns={
        "id": "id",
        "kind": "kind",
        "state": "state",
        "stage": "stage",
        "#done": lambda job: f"{job['done']}/{job['total']}",
        "updated": lambda job: format_time(job["updated_at"]),
    },
    droppable=("updated", "stage"),
    argument=JobId,
)


async def retry_job(
    session: Session,
    job_id: JobId,
    watch: Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until it has ended.")] = True,
) -> None:
    """Retry a failed, partial or cancelled job. Finished work is not repeated."""
    accepted = await session.client.post(f"{JOBS.path}/{job_id}/retry")
    if watch:
        await watch_job(session, job_id)
    else:
        session.output.present(accepted)


async def watch_job(session: Session, job_id: JobId) -> None:
    """Follow a job to its end. The command fails if the job fails."""
    await finish_job(session, job_id, title="job", render=lambda output, job: output.show(fields(job)))
