"""Reads chunks by id from the catalogue and keeps those that the query may show. No other retrieval module does this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import VALID_FROM, VALID_TO, matches_filter, valid_at, valid_until
from agentic_rag_backend.domain.graph import EntityRef
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

SHOWN_ENTITIES = 12
MAX_SHOWN = 4_096
"""Chunks of one graph whose shown entities are kept: a few megabytes."""
FIRST_READ = 64
"""Candidates that are read from the catalogue at once. The others are read only if too few of these may be shown."""


async def visible_chunks(documents: DocumentCatalogue, query: Query, ids: Sequence[str]) -> dict[str, VisibleChunk]:
    """Return the chunks among ``ids`` that the catalogue shows and that pass the query's filters and time."""
    chunks = await documents.hydrate(query.tenant_id, ids)
    return {id: visible for id, visible in chunks.items() if passes(query, visible)}


async def visible_in_order(
    documents: DocumentCatalogue, query: Query, order: Sequence[str], chunks: Mapping[str, VisibleChunk], read_count: int = 0
) -> dict[str, VisibleChunk]:
    """Return ``chunks`` and further visible chunks of ``order``: the first ``query.candidates`` of those that may be shown.

    Args:
        order: chunk ids, best first.
        chunks: the visible ones among the first ``read_count`` chunks of ``order``. It may hold others, too.
    """
    visible = dict(chunks)
    reach = max(read_count, FIRST_READ, 2 * query.candidates)
    for start, end in ((read_count, reach), (reach, len(order))):
        if sum(id in visible for id in order[:start]) >= query.candidates:
            break
        if unread := [id for id in order[start:end] if id not in visible]:
            visible |= await visible_chunks(documents, query, unread)
    return visible


def passes(query: Query, visible: VisibleChunk) -> bool:
    """Return whether a visible chunk passes the query's filters and is valid at the query's moment.

    If the query has read the document before, the chunk must also belong to the version that it read.
    """
    if not query.seen.agree_on_version(visible.chunk.document_id, visible.chunk.version):
        return False
    if query.filters is not None and not matches_filter(query.filters, visible.fields, visible.chunk.id):
        return False
    return in_time(query, visible)


def in_time(query: Query, visible: VisibleChunk) -> bool:
    """Return whether a chunk's document is valid at the query's moment."""
    if VALID_FROM not in visible.metadata and VALID_TO not in visible.metadata:
        return True
    if not matches_filter(valid_at(query.moment), visible.metadata):
        return False
    if (end := valid_until(visible.metadata, query.moment)) is not None:
        query.seen.ends_at(end)
    return True


def time_detail(query: Query) -> dict[str, str]:
    """Return the trace detail about the time at which results must be valid."""
    return {"as_of": query.as_of.isoformat() if query.as_of is not None else "now"}


async def shown_graph(graphs: TenantGraphs, query: Query) -> tuple[TenantGraph | None, tuple[str, ...]]:
    """Return the graph for entities and facts, or None with a warning. Results contain passages even without the graph."""
    try:
        return await graphs.graph(query.tenant), ()
    except StoreUnavailable as error:
        _log.warning("entities_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
        return None, (f"the graph is left out: {error.code}",)


def entities_of(graph: TenantGraph | None, chunk_id: str) -> tuple[EntityRef, ...]:
    """Return a chunk's entities, rarest first, at most `SHOWN_ENTITIES`. Without a graph, return an empty tuple."""
    number = graph.chunk_index.get(chunk_id) if graph is not None else None
    if graph is None or number is None:
        return ()
    entities = graph.shown.get(number)
    if entities is None:
        if len(graph.shown) >= MAX_SHOWN:
            graph.shown.clear()
        entities = graph.shown[number] = _rarest(graph, number)
    return entities


def _rarest(graph: TenantGraph, chunk: int) -> tuple[EntityRef, ...]:
    entities, ids = graph.entities_of(chunk), graph.entity_texts.ids
    rarest = sorted(
        zip((-graph.idf[entities]).tolist(), [ids[number] for number in entities.tolist()], entities.tolist(), strict=True)
    )
    return tuple(graph.entity(entity) for _, _, entity in rarest[:SHOWN_ENTITIES])
