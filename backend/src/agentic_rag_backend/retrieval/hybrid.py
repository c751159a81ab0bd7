"""Hybrid search: dense and BM25 fused by weighted min-max (or weighted reciprocal ranks)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.fusion import ranked, weighted_min_max, weighted_rrf
from agentic_rag_backend.retrieval.graph_cache import TenantGraphs
from agentic_rag_backend.retrieval.hydration import entities_of, shown_graph, visible_chunks
from agentic_rag_backend.retrieval.relevance import relevance
from agentic_rag_backend.retrieval.single_leg import best_coverage, chunk_legs
from agentic_rag_backend.retrieval.tenant_graph import TenantGraph
from agentic_rag_backend.stores.vector.base import Legs

LEG_LIMIT = 200
WEIGHTS = {"dense": 0.7, "sparse": 0.3}
"""Best of .5 to .9 by the worse of MuSiQue and HotpotQA."""
FUSIONS = {"min_max": weighted_min_max, "rrf": weighted_rrf}


class Hybrid:
    """Answers with both legs. ``options.fusion`` is ``min_max`` (default) or ``rrf``."""

    def __init__(self, stores: Stores, graphs: TenantGraphs) -> None:
        self._stores = stores
        self._graphs = graphs

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the best chunks of both legs together."""
        return await self._answer(query, lambda: shown_graph(self._graphs, query))

    async def without_graph(self, query: Query, failures: tuple[str, ...]) -> Retrieval:
        """Return the same for a strategy whose graph cannot be read, and ``failures`` as the reason."""

        async def none() -> tuple[None, tuple[str, ...]]:
            return None, failures

        return await self._answer(query, none)

    async def _answer(
        self, query: Query, shown_with: Callable[[], Awaitable[tuple[TenantGraph | None, tuple[str, ...]]]]
    ) -> Retrieval:
        started = time.perf_counter()
        fusion = str(query.options.get("fusion", "min_max"))
        if fusion not in FUSIONS:
            raise InvalidRequest(f"options.fusion must be one of {', '.join(FUSIONS)}; got {fusion!r}")
        _, legs = await chunk_legs(self._stores, query, max(LEG_LIMIT, 2 * query.limit))
        combined = ranked(FUSIONS[fusion]({"dense": legs.dense, "sparse": legs.sparse}, WEIGHTS))
        candidates = combined[: max(2 * query.limit, 64)]
        visible = await visible_chunks(self._stores.documents, query, [item.id for item in candidates])
        if len(visible) < query.limit and len(candidates) < len(combined):
            visible = await visible_chunks(self._stores.documents, query, [item.id for item in combined])
        shown = [item for item in combined if item.id in visible][: query.limit]
        graph, failures = await shown_with()
        parts = _scores_by_id(legs)
        hits = tuple(
            Hit(
                visible=visible[item.id],
                score=item.score,
                scores={**parts.get(item.id, {}), "combined": item.score},
                entities=entities_of(graph, item.id),
            )
            for item in shown
        )
        cosine = next((item.score for item in legs.dense if item.id in visible), 0.0)
        coverage = best_coverage(self._stores, query.text, {id: found.chunk.text for id, found in visible.items()})
        elapsed = (time.perf_counter() - started) * 1000
        return Retrieval(
            hits=hits,
            relevance=relevance(cosine, coverage) if hits else 0.0,
            trace=Trace(
                strategy="hybrid",
                methods_used=("dense", "sparse"),
                fusion=fusion,
                fallback_used=bool(failures),
                fallback_reason="; ".join(failures) or None,
                failures=failures,
                processing_time_ms={"retrieval": elapsed},
            ),
        )


def _scores_by_id(legs: Legs) -> dict[str, dict[str, float]]:
    parts: dict[str, dict[str, float]] = {}
    for name, leg in (("dense", legs.dense), ("sparse", legs.sparse)):
        for item in leg:
            parts.setdefault(item.id, {})[name] = item.score
    return parts
