"""Hybrid search: dense and BM25 fused by weighted min-max, reciprocal ranks or score distributions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from agentic_rag_backend.domain.query import Hit, LegWeights, Query, Retrieval, Trace
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.legs import QUESTION, chunk_candidates, methods_with_questions
from agentic_rag_backend.retrieval.options.leg_weights import LEG_WEIGHTS, ChosenLegWeights, leg_weights_of
from agentic_rag_backend.retrieval.options.model import SyntheticQuestionsOption
from agentic_rag_backend.retrieval.passages.hydration import FIRST_READ, entities_of, shown_graph, time_detail, visible_in_order
from agentic_rag_backend.retrieval.scoring import FUSIONS, best_coverage, relevance
from agentic_rag_backend.stores.vector.base import ScoredId


class HybridRequestOptions(SyntheticQuestionsOption):
    fusion: Literal["min_max", "rrf", "dbsf"] = "min_max"


class Hybrid:
    """Searches with both legs. ``options.fusion`` is a name of `FUSIONS`; default: ``min_max``.

    Args:
        weights: leg weights for queries that set none.
    """

    def __init__(self, stores: Stores, graphs: TenantGraphs, weights: LegWeights = LEG_WEIGHTS) -> None:
        self._stores = stores
        self._graphs = graphs
        self.weights = weights

    def weights_of(self, query: Query) -> ChosenLegWeights:
        """Return the leg weights of a query."""
        languages, share = self._stores.embedder.languages, query.tuned.dense_weight
        if share is None:
            return leg_weights_of(query.leg_weights, query.text, self.weights, languages=languages)
        tuned = LegWeights(share, 1 - share)
        return leg_weights_of(query.leg_weights, query.text, tuned, default_by="tuning", languages=languages)

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the best chunks of both legs, fused."""
        return await self._answer(query, lambda: shown_graph(self._graphs, query))

    async def without_graph(self, query: Query, failures: tuple[str, ...]) -> Retrieval:
        """Return hybrid results for a strategy whose graph is unavailable. ``failures`` has the reasons."""

        async def none() -> tuple[None, tuple[str, ...]]:
            return None, failures

        retrieval = await self._answer(query, none)
        return replace(retrieval, trace=replace(retrieval.trace, hidden=failures))

    async def _answer(
        self, query: Query, shown_with: Callable[[], Awaitable[tuple[TenantGraph | None, tuple[str, ...]]]]
    ) -> Retrieval:
        fusion = str(query.options.get("fusion", "min_max"))
        if fusion not in FUSIONS:
            raise InvalidRequest(f"options.fusion must be one of {', '.join(FUSIONS)}; got {fusion!r}")
        weights = self.weights_of(query)
        candidates = await chunk_candidates(self._stores, query, FUSIONS[fusion], weights.weights.by_leg())
        order = [item.id for item in candidates.order]
        visible = await visible_in_order(self._stores.documents, query, order, candidates.visible, FIRST_READ)
        items = [item for item in candidates.order if item.id in visible][: query.candidates]
        graph, failures = await shown_with()
        parts = _scores_by_id(
            {"dense": candidates.legs.dense, "sparse": candidates.legs.sparse, QUESTION: candidates.questions.chunks}
        )
        hits = tuple(
            Hit(
                visible=visible[item.id],
                score=item.score,
                scores={**parts.get(item.id, {}), "combined": item.score},
                entities=entities_of(graph, item.id),
                matched_question=candidates.questions.matched.get(item.id),
            )
            for item in items
        )
        cosine = next((item.score for item in candidates.legs.dense if item.id in candidates.visible), 0.0)
        coverage = best_coverage(
            self._stores.vectors.terms, query.text, [visible_chunk.chunk.text for visible_chunk in candidates.visible.values()]
        )
        return Retrieval(
            hits=hits,
            relevance=relevance(cosine, coverage, await self._stores.calibration()) if hits else 0.0,
            trace=Trace(
                strategy="hybrid",
                methods_used=methods_with_questions(query, "dense", "sparse"),
                fusion=fusion,
                failures=failures,
                details={**time_detail(query), **weights.details},
            ),
        )


def _scores_by_id(legs: Mapping[str, Sequence[ScoredId]]) -> dict[str, dict[str, float]]:
    parts: dict[str, dict[str, float]] = {}
    for name, leg in legs.items():
        for item in leg:
            parts.setdefault(item.id, {})[name] = item.score
    return parts
