"""Edits of the graph by a tenant's editors."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from agentic_rag_backend.api.dependencies import Reader, Services, Writer
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.knowledge.graph import GraphEditView, MergeBody, RenameBody, SplitBody
from agentic_rag_backend.domain.graph_edits import MAX_REASON_CHARACTERS

router = APIRouter(tags=["graph"], route_class=JsonRoute)

Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="the edit's number")]


@router.post(
    "/graph/entities/{entity_id}/merge",
    status_code=202,
    response_model=Envelope[GraphEditView],
    summary="Merge entities into an entity",
)
async def merge_entities(request: Request, services: Services, caller: Writer, entity_id: str, body: MergeBody) -> dict[str, Any]:
    """Make other entities this one, with their names, mentions and relationships. Later documents follow it, too."""
    edit = await services.graph.merge_entities(caller, entity_id, body.entity_ids, reason=body.reason)
    return wrap_data(request, GraphEditView.of(edit))


@router.post(
    "/graph/entities/{entity_id}/split", status_code=202, response_model=Envelope[GraphEditView], summary="Split an entity"
)
async def split_entity(request: Request, services: Services, caller: Writer, entity_id: str, body: SplitBody) -> dict[str, Any]:
    """Take documents, names, or merged entities out of an entity. Later documents follow it, too."""
    return wrap_data(
        request,
        GraphEditView.of(await services.graph.split_entity(caller, entity_id, body.split(), reason=body.reason)),
    )


@router.post(
    "/graph/entities/{entity_id}/rename", status_code=202, response_model=Envelope[GraphEditView], summary="Rename an entity"
)
async def rename_entity(request: Request, services: Services, caller: Writer, entity_id: str, body: RenameBody) -> dict[str, Any]:
    """Give an entity another name or type. Later documents do not change it."""
    edit = await services.graph.rename_entity(caller, entity_id, name=body.name or "", type=body.type or "", reason=body.reason)
    return wrap_data(request, GraphEditView.of(edit))


@router.delete("/graph/entities/{entity_id}", status_code=202, response_model=Envelope[GraphEditView], summary="Delete an entity")
async def delete_entity(
    request: Request,
    services: Services,
    caller: Writer,
    entity_id: str,
    reason: Annotated[str, Query(max_length=MAX_REASON_CHARACTERS, description="a remark for the record")] = "",
) -> dict[str, Any]:
    """Delete an entity with its mentions and relationships, in later documents, too. Documents and chunks stay."""
    return wrap_data(request, GraphEditView.of(await services.graph.delete_entity(caller, entity_id, reason=reason)))


@router.get("/graph/edits", response_model=ListEnvelope[GraphEditView], summary="List edits of the graph")
async def list_edits(
    request: Request, services: Services, caller: Reader, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """List the edits of the graph, the newest first, with those that were undone."""
    page = await services.graph.list_edits(caller, limit=limit, cursor=cursor)
    return wrap_page(request, [GraphEditView.of(item) for item in page.items], page.next_cursor)


@router.get("/graph/edits/{number}", response_model=Envelope[GraphEditView], summary="Get an edit of the graph")
async def get_edit(request: Request, services: Services, caller: Reader, number: Number) -> dict[str, Any]:
    """Return an edit, also one that was undone."""
    return wrap_data(request, GraphEditView.of(await services.graph.get_edit(caller, number)))


@router.delete(
    "/graph/edits/{number}", status_code=202, response_model=Envelope[GraphEditView], summary="Undo an edit of the graph"
)
async def undo_edit(request: Request, services: Services, caller: Writer, number: Number) -> dict[str, Any]:
    """Undo an edit. The edits after it stay in effect."""
    return wrap_data(request, GraphEditView.of(await services.graph.undo_edit(caller, number)))
