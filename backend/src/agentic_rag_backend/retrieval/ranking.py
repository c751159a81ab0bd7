"""The last stage of every search: from a strategy's candidates to the results of a request.

The search is corrected if the query asks for it. Candidates are reranked, those below the least score are dropped, and the rest
is cut to the limit. No strategy does any of this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.correction import Corrector
from agentic_rag_backend.retrieval.parents import merged, with_parents
from agentic_rag_backend.retrieval.rerank.base import Reranker
from agentic_rag_backend.retrieval.rerank.stage import rerank
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

CHUNKS_PER_PARENT = 4
"""Candidates for each result, if chunks of one parent are merged."""


class RankedRetriever:
    """Retriever that returns the best candidates of another one, at most ``query.limit`` chunks and ``query.high_limit`` themes.

    Args:
        retriever: finds the candidates.
        rerankers: by the name that ``query.rerank`` has. A query without it keeps the retriever's own order and scores.
        documents: reads the parents around small chunks. None: hits have none.
        corrector: searches other wordings for a query with ``query.corrective``. None: no search is corrected.
    """

    def __init__(
        self,
        retriever: Retriever,
        rerankers: Callable[[str], Reranker] | None = None,
        documents: DocumentCatalogue | None = None,
        corrector: Corrector | None = None,
    ) -> None:
        self.retriever = retriever
        self._rerankers = rerankers
        self._documents = documents
        self._corrector = corrector

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`. The trace has the milliseconds of the whole ``retrieval``."""
        started = time.perf_counter()
        limit = query.limit if query.rerank is None else min(query.limit, query.rerank.top_n or query.limit)
        found = await self._candidates(query)
        hits = cut(found.hits, limit=limit, min_score=query.min_score)
        if _merges(found.hits, hits, query, limit) and found.usage.calls == 0:
            # More candidates give other parents. They are not looked for if a model would be paid again.
            found = await self._candidates(query.with_candidates(query.limit * CHUNKS_PER_PARENT))
            hits = cut(found.hits, limit=limit, min_score=query.min_score)
        if self._documents is not None:
            hits = await with_parents(self._documents, query, hits)
        times = {**found.trace.processing_time_ms, "retrieval": (time.perf_counter() - started) * 1000}
        trace = replace(found.trace, processing_time_ms=times)
        if found.hits and not hits:
            best = max(hit.score for hit in found.hits)
            below = f"min_score {query.min_score:g} leaves no result; the best score is {best:.4f}"
            trace = replace(trace, warnings=(*trace.warnings, below))
        return replace(found, hits=hits, themes=found.themes[: query.high_limit], trace=trace)

    async def _candidates(self, query: Query) -> Retrieval:
        """Return the candidates, reranked if the query asks for it."""
        asked = query.rerank
        if asked is None or self._rerankers is None:
            return await self._search(query)
        found = await self._search(query.with_candidates(asked.candidates))
        return await rerank(self._rerankers(asked.name), asked, query, found) if found.hits else found

    async def _search(self, query: Query) -> Retrieval:
        """Return the candidates of the strategy, of several wordings if the query is corrected."""
        if query.corrective is None or self._corrector is None:
            return await self.retriever.retrieve(query)
        return await self._corrector.correct(query, query.corrective, self.retriever.retrieve)


def _merges(candidates: Sequence[Hit], hits: Sequence[Hit], query: Query, limit: int) -> bool:
    """Return whether there are too few ``hits`` because several candidates are of one parent."""
    return len(hits) < min(sum(hit.score >= query.min_score for hit in candidates), limit)


def cut(candidates: Sequence[Hit], *, limit: int, min_score: float = 0.0) -> tuple[Hit, ...]:
    """Return the first ``limit`` candidates with a score of at least ``min_score``, in their order, one of each parent."""
    return merged([hit for hit in candidates if hit.score >= min_score])[:limit]
