"""The knowledge graph: entities, neighbourhoods, paths, export."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.middleware import lift_timeout
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.attachments import content_disposition
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.knowledge.entities import EntityDetail, EntityItem
from agentic_rag_backend.api.schemas.knowledge.graph import (
    MAX_ENTITY_NAME_CHARACTERS,
    MAX_RELATION_TYPES,
    NeighbourhoodView,
    PathsBody,
    PathsView,
)
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.graph_files import WRITERS
from agentic_rag_backend.knowledge.paths.base import MAX_HOPS
from agentic_rag_backend.knowledge.paths.neighbourhood import MAX_NODES, NeighbourhoodOptions
from agentic_rag_backend.knowledge.paths.neighbourhood_map import MAX_CENTRES
from agentic_rag_backend.retrieval.options.filters import AS_OF_DESCRIPTION, AsOf

router = APIRouter(tags=["graph"], route_class=JsonRoute)

Moment = Annotated[AsOf, Query(description=AS_OF_DESCRIPTION)]
RelationTypes = Annotated[
    list[str] | None,
    Query(description="only relationships of these types, in any case: separated by commas, or repeated", max_length=100),
]


@router.get("/graph/entities", response_model=ListEnvelope[EntityItem], summary="List and search entities")
async def list_entities(
    request: Request,
    services: Services,
    caller: Reader,
    name: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MAX_ENTITY_NAME_CHARACTERS,
            description="a name or alias, its beginning, or the beginning of one of its words; case and punctuation do not count",
        ),
    ] = None,
    type: Annotated[
        str | None,
        Query(min_length=1, max_length=128, description="such as `person`, in any case and in either English spelling"),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the entities that visible documents mention, by decreasing number of mentions; of a search, whole names first."""
    page = await services.graph.list_entities(caller, name=name, type=type, limit=limit, cursor=cursor)
    return wrap_page(request, [EntityItem.at(item) for item in page.items], page.next_cursor)


@router.get("/graph/entities/{entity_id}", response_model=Envelope[EntityDetail], summary="Get an entity")
async def get_entity(
    request: Request,
    services: Services,
    caller: Reader,
    entity_id: str,
    relation_types: RelationTypes = None,
    limit: Annotated[int, Query(ge=1, le=100, description="maximum chunks, and maximum relationships, 1 to 100")] = 20,
    as_of: Moment = None,
) -> dict[str, Any]:
    """Return an entity with its names, chunks and heaviest relationships, of visible documents only."""
    entity = await services.graph.get_entity(caller, entity_id, limit=limit, relations=_read_types(relation_types), as_of=as_of)
    return wrap_data(request, EntityDetail.at(entity))


@router.get(
    "/graph/entities/{entity_id}/neighbourhood",
    response_model=Envelope[NeighbourhoodView],
    summary="Get the entities around an entity",
)
async def get_neighbourhood(
    request: Request,
    services: Services,
    caller: Reader,
    entity_id: str,
    hops: Annotated[int, Query(ge=1, le=MAX_HOPS, description="1 to 4")] = 1,
    relation_types: RelationTypes = None,
    limit: Annotated[int, Query(ge=1, le=MAX_NODES, description="maximum entities around it, 1 to 200")] = 50,
    mentions: Annotated[
        bool, Query(description="if no relationship connects the entity with another one, return entities that share its chunks")
    ] = True,
    as_of: Moment = None,
    also: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=64)]] | None,
        Query(description="ids of further entities, repeated: the union of all neighbourhoods", max_length=MAX_CENTRES - 1),
    ] = None,
    positions: Annotated[
        bool, Query(description="return `x` and `y` of each node: places on a map, connected ones near")
    ] = False,
) -> dict[str, Any]:
    """Return the entities within `hops` relationships, with the relationships between them as edges; at most 500 entities."""
    options = NeighbourhoodOptions(hops=hops, relations=_read_types(relation_types), limit=limit, mentions=mentions, as_of=as_of)
    neighbourhood = await services.graph.read_neighbourhood(caller, entity_id, options, also=also or (), positions=positions)
    return wrap_data(request, NeighbourhoodView.of(neighbourhood))


@router.post(
    "/graph/paths",
    response_model=Envelope[PathsView],
    summary="Find paths between entities",
    responses={404: {"description": "no entity has the id or name"}},
)
async def find_paths(request: Request, services: Services, caller: Reader, body: PathsBody) -> dict[str, Any]:
    """Return the best paths between two entities, or among the entities that a question names."""
    if body.query is not None:
        result = await services.graph.find_paths_of_question(caller, body.query, body.options())
    else:
        result = await services.graph.find_paths(caller, body.source or [], body.target or [], body.options())
    return wrap_data(request, PathsView.of(result))


@router.get(
    "/graph/export",
    summary="Export the graph",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                "application/graphml+xml": {"schema": {"type": "string"}, "example": "<graphml>…</graphml>"},
                "application/json": {
                    "schema": {"type": "object"},
                    "example": {"directed": True, "multigraph": True, "graph": {}, "nodes": [], "edges": []},
                },
            },
            "description": "the file, streamed",
        }
    },
)
async def export_graph(
    request: Request,
    services: Services,
    caller: Reader,
    format: Annotated[Literal["graphml", "json"], Query(description="`json`: nodes and edges in the node-link form")] = "graphml",
    as_of: Moment = None,
) -> StreamingResponse:
    """Return the visible entities and relationships as a file for Gephi, Cytoscape, NetworkX and other programs."""
    lift_timeout(request.scope)
    parts = services.graph.export_graph(caller, format, as_of=as_of)
    # A store that does not answer is reported before the response begins.
    first_part = await anext(parts)
    headers = {"Content-Disposition": content_disposition(f"graph.{format}")}
    return StreamingResponse(_encode_parts(first_part, parts), media_type=WRITERS[format].media_type, headers=headers)


async def _encode_parts(first_part: str, parts: AsyncGenerator[str, None]) -> AsyncIterator[bytes]:
    async with aclosing(parts):
        yield first_part.encode()
        async for part in parts:
            yield part.encode()


def _read_types(parameters: list[str] | None) -> tuple[str, ...] | None:
    """Return the types of a query string. None: all types."""
    if parameters is None:
        return None
    types = tuple(dict.fromkeys(name.strip() for value in parameters for name in value.split(",") if name.strip()))
    if not 1 <= len(types) <= MAX_RELATION_TYPES:
        raise InvalidRequest(f"relation_types must name 1 to {MAX_RELATION_TYPES} types; got {len(types)}")
    return types
