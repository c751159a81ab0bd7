"""Wider evidence: the neighbours of the best passages, and for a model that writes also whole chunks for single sentences.

A passage found may begin in the middle of an argument, or end before the list that it announces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.answering.evidence.context import Context, Passage, passage_of, size_tokens
from agentic_rag_backend.domain.document import ParentPassage, VisibleChunk
from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.retrieval.passages.excerpts import excerpts, hits_of, match_of, read_excerpts
from agentic_rag_backend.retrieval.passages.hydration import passes, visible_chunks
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

MAX_WIDENED = 5
"""Best passages whose surroundings are read."""
NEIGHBOUR = 0.5
"""Factor on the score of a neighbour, relative to its passage."""
MAX_READ_AROUND = 4
"""Best results that are read with the chunks before and after them to quote from them."""
MAX_READ_CHUNKS = 5
"""Neighbouring chunks that are read as one passage."""
AGENTIC = "agentic"


async def read_around(retrieval: Retrieval, query: Query, documents: DocumentCatalogue) -> Retrieval:
    """Return the retrieval with its best results as longer passages: each chunk with the one before and the one after it.

    Results that are neighbours become one passage. Results with a parent stay as they are, and so do those of the agentic
    strategy, whose constraints exclude passages. Neighbours that the query may not show are left out.
    """
    best_hits = {hit.id: hit for hit in retrieval.hits[:MAX_READ_AROUND] if hit.parent is None}
    if not best_hits or retrieval.trace.strategy == AGENTIC:
        return retrieval
    chosen = excerpts([match_of(hit) for hit in best_hits.values()], reach=1, limit=MAX_READ_CHUNKS)
    passages = await read_excerpts(documents, query.tenant_id, chosen, whole=False, most=MAX_READ_CHUNKS)
    shown_passages = {id: _select_shown(passage, best_hits[id], query) for id, passage in passages.items()}
    wider = hits_of([(best_hits[excerpt.best.id], excerpt) for excerpt in chosen], shown_passages)
    read_ids = {chunk.id for hit in wider if hit.parent is not None for chunk in hit.parent.chunks}.union(hit.id for hit in wider)
    return replace(retrieval, hits=(*wider, *(hit for hit in retrieval.hits if hit.id not in read_ids)))


def _select_shown(passage: ParentPassage, hit: Hit, query: Query) -> ParentPassage:
    """Return the part around a hit whose chunks the query may show."""
    chunks = passage.chunks
    first = last = next((number for number, chunk in enumerate(chunks) if chunk.id == hit.id), 0)
    while first > 0 and passes(query, replace(hit.visible, chunk=chunks[first - 1])):
        first -= 1
    while last + 1 < len(chunks) and passes(query, replace(hit.visible, chunk=chunks[last + 1])):
        last += 1
    return passage.cut_part(chunks[first : last + 1])


async def widen_context(context: Context, query: Query, documents: DocumentCatalogue, *, budget_tokens: int) -> Context:
    """Return the context with the surroundings of its best passages, as far as ``budget_tokens`` allows.

    The order of the passages and their markers stay. Neighbours follow with new markers, and only chunks that the query may show
    and that are in the same section.
    """
    if size_tokens(context.passages) >= budget_tokens:
        return context
    best = context.passages[:MAX_WIDENED]
    order = await documents.visible_chunk_ids(query.tenant_id, list(dict.fromkeys(passage.document_id for passage in best)))
    nearby = {passage.marker: _neighbour_ids(passage, order.get(passage.document_id, ())) for passage in best}
    chunk_ids = {passage.chunk_id for passage in best}.union(*nearby.values())
    visible = await visible_chunks(documents, query, sorted(chunk_ids))
    return _add_surroundings(context, best, nearby, visible, budget_tokens)


def _neighbour_ids(passage: Passage, order: Sequence[str]) -> list[str]:
    """Return the chunk before and the chunk after a passage, in this order. A parent has none."""
    if passage.chunks or passage.chunk_id not in order:
        return []
    at = order.index(passage.chunk_id)
    return [*order[max(0, at - 1) : at], *order[at + 1 : at + 2]]


def _add_surroundings(
    context: Context,
    best: Sequence[Passage],
    nearby: Mapping[int, Sequence[str]],
    visible: Mapping[str, VisibleChunk],
    budget_tokens: int,
) -> Context:
    passages = list(context.passages)
    remaining = budget_tokens - size_tokens(passages)
    for passage in best:
        chunk = visible.get(passage.chunk_id)
        if chunk is None:
            continue
        if passage.theme and len(passage.text) < len(chunk.chunk.text):
            full = replace(passage_of(chunk, 0, len(chunk.chunk.text), passage.score, theme=True), marker=passage.marker)
            cost = size_tokens([full]) - size_tokens([passage])
            if cost <= remaining and not _shares_chunk(passage, passages):
                passages[passage.marker - 1] = full
                remaining -= cost
        for id in nearby[passage.marker]:
            neighbour = _neighbour_passage(passage, chunk, visible.get(id), passages)
            if neighbour is not None and size_tokens([neighbour]) <= remaining:
                passages.append(replace(neighbour, marker=len(passages) + 1))
                remaining -= size_tokens([neighbour])
    return replace(context, passages=tuple(passages))


def _shares_chunk(passage: Passage, passages: Sequence[Passage]) -> bool:
    return any(candidate.chunk_id == passage.chunk_id and candidate.marker != passage.marker for candidate in passages)


def _neighbour_passage(
    passage: Passage, chunk: VisibleChunk, beside: VisibleChunk | None, passages: Sequence[Passage]
) -> Passage | None:
    """Return a chunk next to a passage, without the text that the chunks share; None if it is in another section or known."""
    if beside is None or beside.chunk.location.headings != chunk.chunk.location.headings:
        return None
    if any(beside.chunk.id in candidate.chunk_ids for candidate in passages):
        return None
    here, next_to = beside.chunk.location, chunk.chunk.location
    start = max(0, next_to.end_char - here.start_char) if here.start_char >= next_to.start_char else 0
    end = len(beside.chunk.text) if start or here.start_char >= next_to.start_char else next_to.start_char - here.start_char
    neighbour = passage_of(beside, start, min(end, len(beside.chunk.text)), passage.score * NEIGHBOUR)
    return replace(neighbour, beside=passage.marker) if neighbour.text.strip() else None
