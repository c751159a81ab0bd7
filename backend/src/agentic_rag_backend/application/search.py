"""Searches of a caller."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.application.requests import ExplainRequest
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.retrieval.ranking_explanation import Explanation
from agentic_rag_backend.retrieval.requests.search_requests import DualLevelRequest, SearchRequest


@dataclass(frozen=True, slots=True)
class DualLevelResult:
    """Results of both levels, the answer from them if the request asks for one, and milliseconds by stage."""

    retrieval: Retrieval
    answer: Answer | None
    processing_time_ms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SearchService:
    """Searches for passages, facts and themes, and explains searches."""

    container: Container

    @requires(Scope.READ)
    async def run_search(self, caller: Principal, request: SearchRequest) -> Retrieval:
        """Return passages, facts and themes.

        Raises:
            InvalidRequest: a value is outside its limits.
            FeatureDisabled: the strategy is dual_level, which is disabled.
            StoreUnavailable: a store that the strategy requires did not answer.
        """
        built = await self.container.queries.build(caller, request)
        retrieval = await self.container.retrievers.get(built.strategy).retrieve(built.query)
        retrieval = await self.container.contradictions_of_results.attach_contradictions(built.query, retrieval)
        return retrieval.with_warnings(built.warnings)

    @requires(Scope.READ)
    async def explain_search(self, caller: Principal, request: ExplainRequest) -> Explanation:
        """Return the document's rank in each leg and in the result, and the reasons for its omission.

        Raises:
            NotFound: the tenant has no such document.
        """
        built = await self.container.queries.build(caller, request)
        explanation = await self.container.explainer.explain(built.query, request.document_id, strategy=built.strategy)
        return replace(explanation, trace=replace(explanation.trace, warnings=(*built.warnings, *explanation.trace.warnings)))

    @requires(Scope.READ)
    async def search_levels(self, caller: Principal, request: DualLevelRequest) -> DualLevelResult:
        """Return the results of both levels and, unless ``synthesize`` is false, a cited answer from them.

        Raises:
            FeatureDisabled: dual-level retrieval is switched off.
            InvalidRequest: a value is outside its limits, or the prompt lacks a placeholder.
        """
        started = time.perf_counter()
        built = await self.container.queries.build(caller, request)
        retrieval = await self.container.retrievers.get(built.strategy).retrieve(built.query)
        retrieved = time.perf_counter()
        answer = None
        if request.synthesize:
            answer = await self.container.answers.synthesise(built.query, retrieval, prompt=request.prompt)
            retrieval = answer.retrieval  # it has the same hits, and warnings about levels that the answer lacks
        finished_at = time.perf_counter()
        spans = {"retrieval": retrieved - started, "synthesis": finished_at - retrieved, "total": finished_at - started}
        times = {stage: round(seconds * 1000, 2) for stage, seconds in spans.items()}
        return DualLevelResult(retrieval.with_warnings(built.warnings), answer, times)
