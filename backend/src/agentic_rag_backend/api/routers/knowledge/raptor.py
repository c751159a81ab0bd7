"""The tree over a tenant's passages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from agentic_rag_backend.api.dependencies import Administrator, Reader, Services
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.jobs import JobAccepted
from agentic_rag_backend.api.schemas.knowledge.themes import BuildBody, NodeOut, TreeStatus
from agentic_rag_backend.themes.raptor.build_options import BuildOptions

router = APIRouter(tags=["raptor"], route_class=IdempotentRoute)


@router.get("/raptor", response_model=ListEnvelope[NodeOut], summary="List the tree's nodes")
async def list_nodes(
    request: Request,
    services: Services,
    caller: Reader,
    level: Annotated[int | None, Query(ge=1, le=10, description="1: clusters of passages")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the current tree's nodes by level and decreasing size."""
    page = await services.graph.list_nodes(caller, level=level, limit=limit, cursor=cursor)
    return wrap_page(request, [NodeOut.of(view) for view in page.items], page.next_cursor)


@router.get("/raptor/{node_id}", response_model=Envelope[NodeOut], summary="Get a node of the tree")
async def get_node(request: Request, services: Services, caller: Reader, node_id: str) -> dict[str, Any]:
    """Return a node of the current tree."""
    return wrap_data(request, NodeOut.of(await services.graph.get_node(caller, node_id)))


@router.post("/admin/raptor/rebuild", status_code=202, response_model=Envelope[JobAccepted], summary="Build the tree")
async def rebuild(request: Request, services: Services, caller: Administrator, body: BuildBody | None = None) -> dict[str, Any]:
    """Queue a build, or join a running build. Readers see the current tree until the new one is complete."""
    options = BuildOptions(**body.model_dump()) if body is not None else None
    job = await services.admin.rebuild_tree(caller, options)
    return wrap_data(request, JobAccepted(job_id=job.id, state=job.state))


@router.get("/admin/raptor", response_model=Envelope[TreeStatus], summary="State of the tree")
async def tree_status(request: Request, services: Services, caller: Administrator) -> dict[str, Any]:
    """Return generation, staleness, the last job and the figures of the last build."""
    return wrap_data(request, TreeStatus.of(await services.admin.read_tree_status(caller)))
