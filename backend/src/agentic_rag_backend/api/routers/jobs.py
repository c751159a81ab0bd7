"""Jobs: progress, results, cancellation and retries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from agentic_rag_backend.api.dependencies import Reader, Services, Writer
from agentic_rag_backend.api.requests.bodies import works_on_full_disk
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.responses.streaming import VERSION, event, event_content, event_stream
from agentic_rag_backend.api.schemas.jobs import JobAccepted, JobView
from agentic_rag_backend.application import Application
from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import Principal

router = APIRouter(tags=["jobs"], route_class=IdempotentRoute)
POLL_S = 0.25
SLOWEST_POLL_S = 2.0
JOB_EVENTS = event_content(
    ("stage", {"v": VERSION, "stage": "embed", "done": 0, "total": 3, "message": ""}),
    ("done", {"v": VERSION, "id": "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9", "state": "succeeded"}),
)


@router.get("/jobs", response_model=ListEnvelope[JobView], summary="List jobs, newest first")
async def list_jobs(
    request: Request,
    services: Services,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    state: JobState | None = None,
    kind: JobKind | None = None,
    document_id: str | None = None,
) -> dict[str, Any]:
    """List the tenant's jobs."""
    page = await services.work.list_jobs(caller, limit=limit, cursor=cursor, state=state, kind=kind, document_id=document_id)
    return wrap_page(request, [JobView.of(job) for job in page.items], page.next_cursor)


@router.get("/jobs/{job_id}", response_model=Envelope[JobView], summary="Get a job")
async def get_job(request: Request, services: Services, caller: Reader, job_id: str) -> dict[str, Any]:
    """Return a job."""
    return wrap_data(request, JobView.of(await services.work.get_job(caller, job_id)))


@router.get(
    "/jobs/{job_id}/events",
    summary="Follow a job as server-sent events",
    response_class=EventSourceResponse,
    responses={200: {"content": JOB_EVENTS, "description": "events `stage` and `progress`, and at the end `done` or `error`"}},
)
async def job_events(request: Request, services: Services, caller: Reader, job_id: str) -> EventSourceResponse:
    """Send `stage` and `progress` when they change, and `done` with the job at the end.

    If the key is revoked or the tenant is deleted, the stream ends with `error`.
    """
    await services.work.get_job(caller, job_id)
    return event_stream(request, _events(services, caller, job_id))


async def _events(services: Application, caller: Principal, job_id: str) -> AsyncGenerator[ServerSentEvent, None]:
    progress, clock = ("", -1, -1), asyncio.get_running_loop().time
    changed_at = clock()
    while True:
        job = await services.work.get_job(caller, job_id)
        now = (job.stage, job.done, job.total)
        if now != progress:
            data = {"v": VERSION, "stage": job.stage, "done": job.done, "total": job.total, "message": job.message}
            yield event("stage" if job.stage != progress[0] else "progress", data)
            progress, changed_at = now, clock()
        if job.state.ended:
            yield event("done", {"v": VERSION, **JobView.of(job).model_dump(mode="json")})
            return
        await asyncio.sleep(_pause_s(clock() - changed_at))


def _pause_s(quiet_s: float) -> float:
    """Return the seconds until the next poll of a job: an eighth of the time since its last change, within bounds.

    Otherwise a job that waits for long would cost four reads per second for each listener.
    """
    return min(max(POLL_S, quiet_s / 8), SLOWEST_POLL_S)


@router.post("/jobs/{job_id}/cancel", status_code=202, response_model=Envelope[JobAccepted], summary="Cancel a job")
@works_on_full_disk
async def cancel_job(request: Request, services: Services, caller: Writer, job_id: str) -> dict[str, Any]:
    """Request the cancellation of a job. It becomes `cancelled` after its clean-up."""
    job = await services.work.cancel_job(caller, job_id)
    return wrap_data(request, JobAccepted(job_id=job.id, state=job.state))


@router.post("/jobs/{job_id}/retry", status_code=202, response_model=Envelope[JobAccepted], summary="Retry a job")
@works_on_full_disk
async def retry_job(request: Request, services: Services, caller: Writer, job_id: str) -> dict[str, Any]:
    """Queue a failed, partial or cancelled job again. Finished work is not repeated.

    A partial ingestion gets a new version of the same content, for which only the failed chunks are processed again.
    The document stays unchanged until that version is ready.
    """
    job = await services.work.retry_job(caller, job_id)
    return wrap_data(request, JobAccepted(job_id=job.id, state=job.state))
