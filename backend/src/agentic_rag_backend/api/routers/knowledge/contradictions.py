"""Contradictions of the knowledge graph."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Limit, ListEnvelope, wrap_page
from agentic_rag_backend.api.schemas.knowledge.entities import ContradictionKind, ContradictionView
from agentic_rag_backend.api.schemas.knowledge.graph import MAX_ENTITY_NAME_CHARACTERS
from agentic_rag_backend.knowledge.contradictions.contradiction_finder import LIKELY, ContradictionFilter

router = APIRouter(tags=["graph"], route_class=JsonRoute)


@router.get(
    "/graph/contradictions",
    response_model=ListEnvelope[ContradictionView],
    summary="List contradictions",
    responses={404: {"description": "no entity has the id or name"}},
)
async def list_contradictions(
    request: Request,
    services: Services,
    caller: Reader,
    entity: Annotated[
        str | None,
        Query(min_length=1, max_length=MAX_ENTITY_NAME_CHARACTERS, description="only about this entity: an id or name"),
    ] = None,
    kind: Annotated[ContradictionKind | None, Query(description="only of this kind")] = None,
    min_confidence: Annotated[float, Query(ge=0, le=1, description="least confidence; lower ones are often none")] = LIKELY,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the statements of visible documents that cannot both be true, entity by entity, the likeliest first.

    A page reads a bounded number of chunks. It may be short or empty and still have a next page.
    """
    contradiction_filter = ContradictionFilter(entity=entity, kind=kind, min_confidence=min_confidence)
    page = await services.graph.list_contradictions(caller, contradiction_filter, limit=limit, cursor=cursor)
    return wrap_page(request, [ContradictionView.of(item) for item in page.items], page.next_cursor)
