"""Measures a case with every candidate for a parameter, by the searches that a caller would get with these values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.answering.service import AnswerService
from agentic_rag_backend.domain.evaluation import EvaluationCase
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.domain.tuning import Parameter, TunedValues, TuningPlan
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.evaluation.case_measures import measure_results
from agentic_rag_backend.evaluation.gold import GoldEvidence
from agentic_rag_backend.evaluation.tuning.candidates import BEFORE, list_candidates
from agentic_rag_backend.jobs.base import is_transient
from agentic_rag_backend.retrieval.registry import RetrieverRegistry
from agentic_rag_backend.retrieval.requests.builder import BuiltQuery, QueryBuilder
from agentic_rag_backend.retrieval.requests.search_requests import SearchRequest

STRATEGY_OF: Mapping[Parameter, str] = {
    Parameter.LEVEL_WEIGHTS: "dual_level",
    Parameter.HYBRID_WEIGHTS: "hybrid",
    Parameter.AUTO_STRATEGIES: "auto",
}
"""The strategy whose results a parameter changes."""


@dataclass(frozen=True, slots=True)
class CandidateMeasurer:
    """Searches as a caller with tuned values does. ``answers`` divides passages between the levels by their weights."""

    queries: QueryBuilder
    retrievers: RetrieverRegistry
    answers: AnswerService

    async def measure_case(
        self, caller: Principal, plan: TuningPlan, parameter: Parameter, case: EvaluationCase, evidence: Sequence[GoldEvidence]
    ) -> dict[str, float]:
        """Return the measure of a case with each candidate. An error of a search counts as finding nothing.

        Raises:
            StoreUnavailable: a store does not answer now.
            ModelUnavailable: a model does not answer now.
        """
        candidates = list_candidates(parameter, caller.tenant.tuned)
        try:
            ranked: Mapping[str, Sequence[Hit | Passage]]
            if parameter is Parameter.LEVEL_WEIGHTS:
                ranked = await self._divide_passages(caller, plan, case, candidates)
            else:
                ranked = {name: await self._search(caller, plan, parameter, case, of) for name, of in candidates.items()}
        except AgenticRagError as error:
            if is_transient(error):
                raise
            ranked = dict.fromkeys(candidates, ())
        metric = f"{plan.metric}@{plan.k}"
        return {name: measure_results(evidence, hits, plan.k)[metric] for name, hits in ranked.items()}

    async def _search(
        self, caller: Principal, plan: TuningPlan, parameter: Parameter, case: EvaluationCase, values: TunedValues
    ) -> Sequence[Hit]:
        built = await self._build(caller, plan, parameter, case, values)
        return (await self.retrievers.get(built.strategy).retrieve(built.query)).hits

    async def _divide_passages(
        self, caller: Principal, plan: TuningPlan, case: EvaluationCase, candidates: Mapping[str, TunedValues]
    ) -> dict[str, Sequence[Passage]]:
        """Return the passages that an answer reads. The weights divide the results of one search, so no other is made."""
        built = await self._build(caller, plan, Parameter.LEVEL_WEIGHTS, case, candidates[BEFORE])
        retrieval = await self.retrievers.get(built.strategy).retrieve(built.query)
        ranked: dict[str, Sequence[Passage]] = {}
        for name, values in candidates.items():
            query = (await self._build(caller, plan, Parameter.LEVEL_WEIGHTS, case, values)).query
            # If one level is empty, the other has the whole weight.
            weights = query.weights if retrieval.hits and retrieval.themes else retrieval.weights
            ranked[name] = await self.answers.select_passages(query, replace(retrieval, weights=weights))
        return ranked

    async def _build(
        self, caller: Principal, plan: TuningPlan, parameter: Parameter, case: EvaluationCase, values: TunedValues
    ) -> BuiltQuery:
        request = SearchRequest.model_validate(
            {
                "query": case.question,
                "filters": case.filters,
                "strategy": STRATEGY_OF[parameter],
                "limit": plan.k,
                "cache": False,
            }
        )
        return await self.queries.build(replace(caller, tenant=replace(caller.tenant, tuned=values)), request)
