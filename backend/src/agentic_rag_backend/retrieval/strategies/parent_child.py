"""Parent–child search: small chunks match a question, and the excerpt around them is read.

An excerpt is the parent around a chunk, if its document was cut with parents, or else the chunk and its neighbours. Matches of
one excerpt are one result, so no text is returned twice. Documents need not be cut with parents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import Field

from agentic_rag_backend.domain.document import Chunk, ChunkSpan, ParentPassage
from agentic_rag_backend.domain.query import Hit, MatchedChunk, Query, Retrieval
from agentic_rag_backend.retrieval.base import Stores, Strategies
from agentic_rag_backend.retrieval.options.model import RequestOptions, optional_field
from agentic_rag_backend.retrieval.passages.passage_excerpts import Excerpt, Match, excerpts

DEPTH = 200
"""Matched chunks that are divided into excerpts. It does not depend on the request's limit, so that no excerpt moves with it."""
MAX_CHUNKS = 10
"""Chunks of an excerpt, if the request does not set their number."""


class ParentChildRequestOptions(RequestOptions):
    context_window: int = optional_field(
        ge=0,
        le=10,
        description="chunks that are read on each side of a match; default: the whole parent, or 1 without a parent",
    )
    max_chunks: int = Field(10, ge=1, le=50, description="maximum number of chunks that are read together")


class ParentChild:
    """Reads around the chunks that ``options.base`` finds.

    ``options.context_window`` is the number of chunks on each side of a match; without it, a match is read with its whole parent,
    or with one chunk on each side if it has none. An excerpt has at most ``options.max_chunks`` chunks.
    """

    def __init__(self, stores: Stores, strategies: Strategies) -> None:
        self._stores = stores
        self._strategies = strategies

    async def retrieve(self, query: Query) -> Retrieval:
        """Return one hit for each excerpt: its best match, with the excerpt as ``parent`` and its matches in ``matched``."""
        base = str(query.options.get("base", "hybrid"))
        reach, limit = query.options.get("context_window"), int(query.options.get("max_chunks", MAX_CHUNKS))
        retrieval = await self._strategies.retrieve(base, query.with_candidates(DEPTH))
        by_id = {hit.id: hit for hit in retrieval.hits[:DEPTH]}
        found_excerpts = excerpts([_match(hit) for hit in by_id.values()], reach=reach, limit=limit)[: query.candidates]
        passages = await self._read(query, found_excerpts, whole=reach is None, most=limit)
        hits = _hits([(by_id[excerpt.best.id], excerpt) for excerpt in found_excerpts], passages)
        about = {"base": base, "context_window": reach, "max_chunks": limit}
        trace = replace(
            retrieval.trace,
            strategy="parent_child",
            methods_used=tuple(dict.fromkeys(("parent_child", *retrieval.trace.methods_used))),
            details={**retrieval.trace.details, "parent_child": about},
        )
        return replace(retrieval, hits=hits, trace=trace)

    async def _read(
        self, query: Query, found_excerpts: Sequence[Excerpt], *, whole: bool, most: int
    ) -> Mapping[str, ParentPassage]:
        """Return the passage of each excerpt by the id of its best match."""
        parents = {
            excerpt.best.id: excerpt.best.parent_id for excerpt in found_excerpts if whole and excerpt.best.parent_id is not None
        }
        spans = {
            excerpt.best.id: ChunkSpan(excerpt.best.document_id, excerpt.first, excerpt.last)
            for excerpt in found_excerpts
            if excerpt.best.id not in parents
        }
        passages = await self._stores.documents.parents(query.tenant_id, list(parents)) if parents else {}
        spread = await self._stores.documents.passages(query.tenant_id, list(spans.values())) if spans else {}
        passages_by_id: dict[str, ParentPassage] = {}
        for excerpt in found_excerpts:
            best = excerpt.best
            passage = passages.get(parents[best.id]) if best.id in parents else spread.get(spans[best.id])
            if passage is not None and (chunks := _select_siblings(passage.chunks, best, most)):
                passages_by_id[best.id] = passage.cut_part(chunks)
        return passages_by_id


def _match(hit: Hit) -> Match:
    chunk = hit.visible.chunk
    return Match(chunk.id, chunk.document_id, chunk.ordinal, chunk.parent_id, hit.score)


def _select_siblings(chunks: Sequence[Chunk], best: Match, limit: int) -> Sequence[Chunk]:
    """Return the chunks of the match's parent, at most ``limit`` around the match; none if the match is not among them.

    It is not if another version became visible since the search.
    """
    siblings = [chunk for chunk in chunks if chunk.parent_id == best.parent_id]
    at = next(
        (position for position, chunk in enumerate(siblings) if chunk.id == best.id and chunk.ordinal == best.ordinal), None
    )
    if at is None:
        return ()
    start = max(0, min(at - (limit - 1) // 2, len(siblings) - limit))
    return siblings[start : start + limit]


def _hits(pairs: Sequence[tuple[Hit, Excerpt]], passages_by_id: Mapping[str, ParentPassage]) -> tuple[Hit, ...]:
    """Return the hits with their passages. Text that a better passage has is left out, and hits without any other text."""
    hits: list[Hit] = []
    passages: dict[str, list[ParentPassage]] = {}
    for hit, excerpt in pairs:
        passage, chunk = passages_by_id.get(hit.id), hit.visible.chunk
        if passage is None or passage.chunks[0].version != chunk.version:
            # Another version became visible since the search.
            hits.append(_hit(hit, excerpt, None))
            continue
        better = passages.setdefault(chunk.document_id, [])
        passage = passage.without_overlap(better)
        if passage is not None:
            better.append(passage)
            hits.append(_hit(hit, excerpt, passage))
    return tuple(hits)


def _hit(hit: Hit, excerpt: Excerpt, passage: ParentPassage | None) -> Hit:
    """Return the hit with its passage, and with its matches in the passage."""
    ids = {chunk.id for chunk in passage.chunks} if passage is not None else {hit.id}
    matched = tuple(MatchedChunk(match.id, match.score) for match in excerpt.matches if match.id in ids)
    return replace(hit, parent=passage, matched=matched)
