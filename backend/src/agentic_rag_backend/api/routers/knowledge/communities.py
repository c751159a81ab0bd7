"""Communities of a tenant."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.knowledge.themes import CommunityOut

router = APIRouter(tags=["communities"], route_class=JsonRoute)


@router.get("/communities", response_model=ListEnvelope[CommunityOut], summary="List communities")
async def list_communities(
    request: Request,
    services: Services,
    caller: Reader,
    level: Annotated[int | None, Query(ge=0, le=9, description="0 is the coarsest")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the current generation by level and decreasing size."""
    page = await services.graph.list_communities(caller, level=level, limit=limit, cursor=cursor)
    return wrap_page(request, [CommunityOut.of(view) for view in page.items], page.next_cursor)


@router.get("/communities/{community_id}", response_model=Envelope[CommunityOut], summary="Get a community")
async def get_community(request: Request, services: Services, caller: Reader, community_id: str) -> dict[str, Any]:
    """Return a community of the current generation."""
    return wrap_data(request, CommunityOut.of(await services.graph.get_community(caller, community_id)))
