"""Cuts candidates to the results of a request: least score, one result of a parent, limit. No strategy does this."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

CHUNKS_PER_PARENT = 4
"""Candidates for each result, if chunks of one parent are merged."""


class RankedRetriever:
    """Retriever that returns the best candidates of another one, at most ``query.limit`` chunks and ``query.high_limit`` themes.

    Args:
        candidates: finds the candidates.
        documents: reads the parents around small chunks. None: hits have none.
    """

    def __init__(self, candidates: Retriever, documents: DocumentCatalogue | None = None) -> None:
        self._candidates = candidates
        self._documents = documents

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`. The trace has the milliseconds of the whole ``retrieval``."""
        started = time.perf_counter()
        limit = query.limit if query.rerank is None else min(query.limit, query.rerank.top_n or query.limit)
        retrieval = await self._candidates.retrieve(query)
        hits = cut(retrieval.hits, limit=limit, min_score=query.min_score)
        if _has_merged_parents(retrieval.hits, hits, query, limit) and retrieval.usage.calls == 0:
            # More candidates give other parents. They are not looked for if a model would be paid again.
            retrieval = await self._candidates.retrieve(query.with_candidates(query.limit * CHUNKS_PER_PARENT))
            hits = cut(retrieval.hits, limit=limit, min_score=query.min_score)
        if self._documents is not None:
            hits = await with_parents(self._documents, query, hits)
        times = {**retrieval.trace.processing_time_ms, "retrieval": (time.perf_counter() - started) * 1000}
        trace = replace(retrieval.trace, processing_time_ms=times)
        if retrieval.hits and not hits:
            best = max(hit.score for hit in retrieval.hits)
            below = f"min_score {query.min_score:g} leaves no result; the best score is {best:.4f}"
            trace = replace(trace, warnings=(*trace.warnings, below))
        return replace(retrieval, hits=hits, themes=retrieval.themes[: query.high_limit], trace=trace)


def _has_merged_parents(candidates: Sequence[Hit], hits: Sequence[Hit], query: Query, limit: int) -> bool:
    """Return whether there are too few ``hits`` because several candidates are of one parent."""
    return len(hits) < min(sum(hit.score >= query.min_score for hit in candidates), limit)


def cut(candidates: Sequence[Hit], *, limit: int, min_score: float = 0.0) -> tuple[Hit, ...]:
    """Return the first ``limit`` candidates with a score of at least ``min_score``, in their order, one of each parent."""
    return merge_parents([hit for hit in candidates if hit.score >= min_score])[:limit]


def merge_parents(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, of several chunks of one parent only the first."""
    parents: set[str] = set()
    unique = []
    for hit in hits:
        parent = hit.visible.chunk.parent_id
        if parent is None or parent not in parents:
            unique.append(hit)
        if parent is not None:
            parents.add(parent)
    return tuple(unique)


async def with_parents(documents: DocumentCatalogue, query: Query, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with the parents around their chunks. Hits that have a passage already keep it."""
    small = [hit.id for hit in hits if hit.parent is None and hit.visible.chunk.parent_id is not None]
    if not small:
        return tuple(hits)
    # The id of a parent names its version, so that a parent of another version than the chunk's is not taken.
    parents = await documents.parents(query.tenant_id, small)
    return tuple(replace(hit, parent=hit.parent or parents.get(hit.visible.chunk.parent_id or "")) for hit in hits)
