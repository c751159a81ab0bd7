"""Jobs: how far, how they ended, stop, try again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from agentic_rag_backend.api.dependencies import Reader, Services, Writer
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, ListEnvelope, enveloped
from agentic_rag_backend.api.responses.paging import Cursor, Limit, listed
from agentic_rag_backend.api.responses.streaming import VERSION, event, event_content, event_stream
from agentic_rag_backend.api.schemas.jobs import JobAccepted, JobView
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId

router = APIRouter(tags=["jobs"], route_class=IdempotentRoute)
POLL_S = 0.25
SLOWEST_POLL_S = 2.0
JOB_EVENTS = event_content(
    ("stage", {"v": VERSION, "stage": "embed", "done": 0, "total": 3, "message": ""}),
    ("done", {"v": VERSION, "id": "job_0a1b2c3d4e5f60718293a4b5c6d7e8f9", "state": "succeeded"}),
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
    page = await services.catalogue.jobs.jobs(
        caller.tenant.id, limit=limit, cursor=cursor, state=state, kind=kind, document_id=document_id
    )
    return listed(request, [JobView.of(job) for job in page.items], page.next_cursor)


@router.get("/jobs/{job_id}", response_model=Envelope[JobView], summary="Look at a job")
async def get_job(request: Request, services: Services, caller: Reader, job_id: str) -> dict[str, Any]:
    """Return a job."""
    return enveloped(request, JobView.of(await services.catalogue.jobs.job(caller.tenant.id, job_id)))


@router.get(
    "/jobs/{job_id}/events",
    summary="Follow a job as server-sent events",
    response_class=EventSourceResponse,
    responses={200: {"content": JOB_EVENTS, "description": "events stage, progress and, at the end, done or error"}},
)
async def job_events(request: Request, services: Services, caller: Reader, job_id: str) -> EventSourceResponse:
    """Send `stage` and `progress` as they change and one `done` with the job; then the stream ends.

    It ends with `error` where the key is revoked meanwhile, or the tenant deleted.
    """
    await services.catalogue.jobs.job(caller.tenant.id, job_id)
    return event_stream(request, _events(services, caller.tenant.id, job_id))


async def _events(services: Container, tenant: TenantId, job_id: str) -> AsyncGenerator[ServerSentEvent, None]:
    seen, clock = ("", -1, -1), asyncio.get_running_loop().time
    changed_at = clock()
    while True:
        job = await services.catalogue.jobs.job(tenant, job_id)
        now = (job.stage, job.done, job.total)
        if now != seen:
            data = {"v": VERSION, "stage": job.stage, "done": job.done, "total": job.total, "message": job.message}
            yield event("stage" if job.stage != seen[0] else "progress", data)
            seen, changed_at = now, clock()
        if job.state.ended:
            yield event("done", {"v": VERSION, **JobView.of(job).model_dump(mode="json")})
            return
        await asyncio.sleep(_pause_s(clock() - changed_at))


def _pause_s(quiet_s: float) -> float:
    """Return the seconds until the next look at a job: an eighth of those that it has been quiet, in bounds.

    A job that waits for long does not cost four reads a second for each of its listeners.
    """
    return min(max(POLL_S, quiet_s / 8), SLOWEST_POLL_S)


@router.post("/jobs/{job_id}/cancel", status_code=202, response_model=Envelope[JobAccepted], summary="Stop a job")
async def cancel_job(request: Request, services: Services, caller: Writer, job_id: str) -> dict[str, Any]:
    """Ask a job to stop; it ends as `cancelled` once what it holds is cleaned up."""
    job = await services.jobs.cancel(caller.tenant.id, job_id)
    return enveloped(request, JobAccepted(job_id=job.id, state=job.state))


@router.post("/jobs/{job_id}/retry", status_code=202, response_model=Envelope[JobAccepted], summary="Run a job again")
async def retry_job(request: Request, services: Services, caller: Writer, job_id: str) -> dict[str, Any]:
    """Queue a failed, partial or cancelled job again; what was finished is not done twice.

    A partial ingestion gets a new version of the same content, in which only the chunks that failed are processed again;
    the document stays as it is until that is ready.
    """
    job = await services.jobs.retry(caller.tenant.id, job_id)
    return enveloped(request, JobAccepted(job_id=job.id, state=job.state))
