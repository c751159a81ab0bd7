"""Wider evidence for a model that writes: whole chunks for single sentences, and the neighbours of the best passages.

A passage found may begin in the middle of an argument. A generative model reads around it; the extractive model does not, because
it would choose sentences of the neighbours. The question was found answerable before, without the wider evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.generation.context import Context, Passage, passage_of, size_tokens
from agentic_rag_backend.retrieval.passages.hydration import visible_chunks
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

MAX_WIDENED = 5
"""Best passages whose surroundings are read."""
NEIGHBOUR = 0.5
"""Factor on the score of a neighbour, relative to its passage."""


async def widened(context: Context, query: Query, documents: DocumentCatalogue, *, budget_tokens: int) -> Context:
    """Return the context with the surroundings of its best passages, as far as ``budget_tokens`` allows.

    The order of the passages and their markers stay. Neighbours follow with new markers, and only chunks that the query may show
    and that are in the same section.
    """
    if size_tokens(context.passages) >= budget_tokens:
        return context
    best = context.passages[:MAX_WIDENED]
    order = await documents.visible_chunk_ids(query.tenant_id, list(dict.fromkeys(passage.document_id for passage in best)))
    nearby = {passage.marker: _nearby(passage, order.get(passage.document_id, ())) for passage in best}
    wanted = {passage.chunk_id for passage in best}.union(*nearby.values())
    visible = await visible_chunks(documents, query, sorted(wanted))
    return _widened(context, best, nearby, visible, budget_tokens)


def _nearby(passage: Passage, order: Sequence[str]) -> list[str]:
    """Return the chunk before and the chunk after a passage, in this order. A parent has none."""
    if passage.chunks or passage.chunk_id not in order:
        return []
    at = order.index(passage.chunk_id)
    return [*order[max(0, at - 1) : at], *order[at + 1 : at + 2]]


def _widened(
    context: Context,
    best: Sequence[Passage],
    nearby: Mapping[int, Sequence[str]],
    visible: Mapping[str, VisibleChunk],
    budget_tokens: int,
) -> Context:
    held = list(context.passages)
    left = budget_tokens - size_tokens(held)
    for passage in best:
        chunk = visible.get(passage.chunk_id)
        if chunk is None:
            continue
        if passage.theme and len(passage.text) < len(chunk.chunk.text):
            whole = replace(passage_of(chunk, 0, len(chunk.chunk.text), passage.score, theme=True), marker=passage.marker)
            cost = size_tokens([whole]) - size_tokens([passage])
            if cost <= left and not _shares_chunk(passage, held):
                held[passage.marker - 1] = whole
                left -= cost
        for id in nearby[passage.marker]:
            neighbour = _neighbour(passage, chunk, visible.get(id), held)
            if neighbour is not None and size_tokens([neighbour]) <= left:
                held.append(replace(neighbour, marker=len(held) + 1))
                left -= size_tokens([neighbour])
    return replace(context, passages=tuple(held))


def _shares_chunk(passage: Passage, held: Sequence[Passage]) -> bool:
    return any(other.chunk_id == passage.chunk_id and other.marker != passage.marker for other in held)


def _neighbour(passage: Passage, chunk: VisibleChunk, other: VisibleChunk | None, held: Sequence[Passage]) -> Passage | None:
    """Return a chunk next to a passage, without the text that the chunks share; None if it is in another section or known."""
    if other is None or other.chunk.location.headings != chunk.chunk.location.headings:
        return None
    if any(other.chunk.id in one.chunk_ids for one in held):
        return None
    own, next_to = other.chunk.location, chunk.chunk.location
    start = max(0, next_to.end_char - own.start_char) if own.start_char >= next_to.start_char else 0
    end = len(other.chunk.text) if start or own.start_char >= next_to.start_char else next_to.start_char - own.start_char
    found = passage_of(other, start, min(end, len(other.chunk.text)), passage.score * NEIGHBOUR)
    return replace(found, beside=passage.marker) if found.text.strip() else None
