"""The last stage of every search: from a strategy's candidates to the results of a request.

Candidates are reranked, those below the least score are dropped, and the rest is cut to the limit. No strategy does any of this.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.parents import merged, with_parents
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

CHUNKS_PER_PARENT = 4
"""Candidates for each result, if chunks of one parent are merged."""


class Reranker(Protocol):
    """Scores the candidates of a search again. It reads each of them, which is too slow for a whole corpus."""

    @property
    def name(self) -> str:
        """The name in traces."""

    @property
    def depth(self) -> int:
        """Number of candidates to rerank. A request with a larger limit has as many candidates as its limit."""

    async def scores(self, query: Query, candidates: Sequence[Hit]) -> Mapping[str, float]:
        """Return a score in [0, 1] for each candidate, by chunk id.

        Raises:
            ModelUnavailable: the model behind it did not answer.
        """


class RankedRetriever:
    """Retriever that returns the best candidates of another one, at most ``query.limit`` chunks and ``query.high_limit`` themes.

    Args:
        retriever: finds the candidates.
        reranker: None keeps the retriever's own order and scores.
        documents: reads the parents around small chunks. None: hits have none.
    """

    def __init__(
        self, retriever: Retriever, reranker: Reranker | None = None, documents: DocumentCatalogue | None = None
    ) -> None:
        self.retriever = retriever
        self._reranker = reranker
        self._documents = documents

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`. The trace has the milliseconds of the whole ``retrieval``."""
        started = time.perf_counter()
        found = await self._candidates(query)
        hits = cut(found.hits, limit=query.limit, min_score=query.min_score)
        if _merges(found.hits, hits, query) and found.usage.calls == 0:
            # More candidates give other parents. They are not looked for if a model would be paid again.
            found = await self._candidates(query.with_candidates(query.limit * CHUNKS_PER_PARENT))
            hits = cut(found.hits, limit=query.limit, min_score=query.min_score)
        if self._documents is not None:
            hits = await with_parents(self._documents, query, hits)
        times = {**found.trace.processing_time_ms, "retrieval": (time.perf_counter() - started) * 1000}
        trace = replace(found.trace, processing_time_ms=times)
        return replace(found, hits=hits, themes=found.themes[: query.high_limit], trace=trace)

    async def _candidates(self, query: Query) -> Retrieval:
        """Return the candidates, reranked if there is a reranker."""
        reranker = self._reranker
        if reranker is None:
            return await self.retriever.retrieve(query)
        found = await self.retriever.retrieve(query.with_candidates(reranker.depth))
        if not found.hits:
            return found
        hits = reranked(found.hits, await reranker.scores(query, found.hits))
        methods = (*found.trace.methods_used, reranker.name)
        return replace(found, hits=hits, trace=replace(found.trace, methods_used=methods))


def _merges(candidates: Sequence[Hit], hits: Sequence[Hit], query: Query) -> bool:
    """Return whether there are too few ``hits`` because several candidates are of one parent."""
    return len(hits) < min(sum(hit.score >= query.min_score for hit in candidates), query.limit)


def reranked(candidates: Sequence[Hit], scores: Mapping[str, float]) -> tuple[Hit, ...]:
    """Return the candidates with new scores, best first. Equal scores keep the order of the candidates."""
    hits = (replace(hit, score=scores[hit.id], scores={**hit.scores, "rerank": scores[hit.id]}) for hit in candidates)
    return tuple(sorted(hits, key=lambda hit: -hit.score))


def cut(candidates: Sequence[Hit], *, limit: int, min_score: float = 0.0) -> tuple[Hit, ...]:
    """Return the first ``limit`` candidates with a score of at least ``min_score``, in their order, one of each parent."""
    return merged([hit for hit in candidates if hit.score >= min_score])[:limit]
