"""Administration of a tenant: its communities, and the consistency of its stores."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from agentic_rag_backend.api.dependencies import Administrator, Services
from agentic_rag_backend.api.requests.bodies import works_on_full_disk
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.jobs import JobAccepted, JobView
from agentic_rag_backend.api.schemas.knowledge.themes import CommunityStatus, RebuildBody
from agentic_rag_backend.api.schemas.status import ReconcileBody, ReconcileStatus
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions

router = APIRouter(prefix="/admin", tags=["admin"], route_class=IdempotentRoute)


@router.post("/communities/rebuild", status_code=202, response_model=Envelope[JobAccepted], summary="Rebuild communities")
async def rebuild(request: Request, services: Services, caller: Administrator, body: RebuildBody | None = None) -> dict[str, Any]:
    """Queue a rebuild, or join a running rebuild. Readers see the current generation until the new one is complete."""
    options = RebuildOptions(**body.model_dump()) if body is not None else None
    job = await services.admin.rebuild_communities(caller, options)
    return wrap_data(request, JobAccepted(job_id=job.id, state=job.state))


@router.get("/communities", response_model=Envelope[CommunityStatus], summary="State of the communities")
async def community_status(request: Request, services: Services, caller: Administrator) -> dict[str, Any]:
    """Return generation, staleness, the last job and the figures of the last rebuild."""
    return wrap_data(request, CommunityStatus.of(await services.admin.read_community_status(caller)))


@router.post("/reconcile", status_code=202, response_model=Envelope[JobAccepted], summary="Compare the stores, and repair them")
@works_on_full_disk
async def reconcile(
    request: Request, services: Services, caller: Administrator, body: ReconcileBody | None = None
) -> dict[str, Any]:
    """Queue a comparison of catalogue, graph, vectors and originals, or join a running one. The job's result is the report."""
    options = {"repair": body.repair, "confirmed": body.confirm} if body is not None else {}
    job = await services.admin.compare_stores(caller, **options)
    return wrap_data(request, JobAccepted(job_id=job.id, state=job.state))


@router.get("/reconcile", response_model=Envelope[ReconcileStatus], summary="The last comparison of the stores")
async def reconcile_status(request: Request, services: Services, caller: Administrator) -> dict[str, Any]:
    """Return the interval of scheduled comparisons, and the last comparison with its report."""
    interval_s, last_job = await services.admin.read_comparison(caller)
    return wrap_data(request, ReconcileStatus(interval_s=interval_s, last_job=JobView.of(last_job) if last_job else None))
