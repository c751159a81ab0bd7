"""Asks one question in one configuration, as a caller would, and measures what comes back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from agentic_rag_backend.answering.generators.registry import GENERATORS
from agentic_rag_backend.answering.service import AnswerService
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.evaluation import CaseOutcome, EvaluationCase, RunPlan
from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import AgenticRagError, FeatureDisabled, InvalidRequest, in_field
from agentic_rag_backend.evaluation.case_measures import TOTAL, measure_answer, measure_results
from agentic_rag_backend.evaluation.gold import GoldEvidence
from agentic_rag_backend.jobs.base import is_transient
from agentic_rag_backend.retrieval.options.filters import RequestModel
from agentic_rag_backend.retrieval.registry import DUAL_LEVEL, RetrieverRegistry
from agentic_rag_backend.retrieval.requests.builder import BuiltQuery, QueryBuilder
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS, SearchRequest, Weights
from agentic_rag_backend.retrieval.strategies.dual_level import SWITCHED_OFF
from agentic_rag_backend.wording import message_of

_SAMPLE = "Who did what, and when?"
_QUOTE_SEARCH = "sparse"
_QUOTE_LIMIT = 10


CONFIGURABLE = ("strategy", "options", "rerank", "corrective", "weights", "generator")
"""Fields of a request that a configuration may set."""


class ConfigurationRequest(RequestModel):
    """A way to search and answer, with the fields of a search. ``name`` identifies it in the run."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    strategy: str | None = Field(None, max_length=64, description="see GET /strategies; default: DEFAULT_STRATEGY")
    options: dict[str, Any] | None = Field(None, description="options of the strategy")
    rerank: Any = Field(None, description="as in a search")
    corrective: Any = Field(None, description="as in a search")
    weights: Weights | None = None
    generator: str | None = Field(None, max_length=64, description="as in an answer; default: DEFAULT_GENERATOR")

    @field_validator("name")
    @classmethod
    def _is_printable(cls, value: str) -> str:
        if not value.strip() or not value.isprintable():
            raise ValueError("must not be blank, and must have printable characters only")
        return value

    def to_values(self) -> dict[str, Any]:
        """Return the fields that are set."""
        return self.model_dump(exclude_none=True)


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks questions and measures the results."""

    queries: QueryBuilder
    retrievers: RetrieverRegistry
    answers: AnswerService

    async def check_configuration(self, caller: Principal, configuration: Mapping[str, Any], *, k: int) -> None:
        """Return if a configuration can be asked.

        Raises:
            InvalidRequest: a value is unknown or outside its limits.
            FeatureDisabled: the strategy is dual_level, which is disabled.
        """
        generator = configuration.get("generator")
        if generator is not None and generator not in GENERATORS:
            generators = ", ".join(sorted(GENERATORS))
            raise InvalidRequest(f"no generator is named {generator!r}; there are {generators}", field="generator")
        built = await self._build(caller, configuration, EvaluationCase(question=_SAMPLE), k)
        if built.strategy == DUAL_LEVEL and not built.query.dual_level:
            raise FeatureDisabled(SWITCHED_OFF)

    async def search_text(self, caller: Principal, text: str) -> Sequence[Hit]:
        """Return the passages that have most words of a text."""
        query = Query(tenant=caller.tenant, text=text[:MAX_QUERY_CHARACTERS], limit=_QUOTE_LIMIT, cache=False)
        return (await self.retrievers.get(_QUOTE_SEARCH).retrieve(query)).hits

    async def ask(
        self,
        caller: Principal,
        plan: RunPlan,
        configuration: Mapping[str, Any],
        case: EvaluationCase,
        evidence: Sequence[GoldEvidence],
    ) -> tuple[CaseOutcome, str]:
        """Ask a question, and return its outcome and the answer's text. An error is a part of the outcome, and finds nothing.

        Raises:
            StoreUnavailable: a store does not answer now.
            ModelUnavailable: a model does not answer now.
        """
        about = {"configuration": configuration["name"], "case_id": case.id, "kind": case.kind, "tags": case.tags}
        started = time.perf_counter()
        try:
            built = await self._build(caller, configuration, case, plan.k)
            retrieval, answer = await self._answer(built, configuration, answers=plan.answers)
        except AgenticRagError as error:
            if is_transient(error):
                raise
            measures = measure_results(evidence, (), plan.k) | ({"correct": 0.0} if plan.answers else {})
            return CaseOutcome(**about, measures=measures, error=error.code), ""
        elapsed_ms = (time.perf_counter() - started) * 1000
        hits = retrieval.hits[: plan.k]
        usage = answer.usage if answer is not None else retrieval.usage
        outcome = CaseOutcome(
            **about,
            measures=measure_results(evidence, hits, plan.k) | (measure_answer(case, answer) if answer is not None else {}),
            times_ms={**retrieval.trace.processing_time_ms, TOTAL: elapsed_ms},
            documents=tuple(hit.visible.chunk.document_id for hit in hits),
            chunks=tuple(hit.id for hit in hits),
            confidence=answer.confidence if answer is not None else None,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            calls=usage.calls,
            cost=usage.cost,
        )
        return outcome, answer.text if answer is not None else ""

    async def _build(self, caller: Principal, configuration: Mapping[str, Any], case: EvaluationCase, k: int) -> BuiltQuery:
        fields = {name: value for name, value in configuration.items() if name not in ("name", "generator")}
        try:
            request = SearchRequest.model_validate(
                {**fields, "query": case.question, "filters": case.filters, "limit": k, "cache": False}
            )
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise InvalidRequest(f"{'.'.join(map(str, problem['loc']))}: {message_of(problem)}") from None
        return await self.queries.build(caller, request)

    async def _answer(
        self, built: BuiltQuery, configuration: Mapping[str, Any], *, answers: bool
    ) -> tuple[Retrieval, Answer | None]:
        if not answers:
            return await self.retrievers.get(built.strategy).retrieve(built.query), None
        answer = await self.answers.answer(built.query, strategy=built.strategy, generator=configuration.get("generator"))
        return answer.retrieval, answer


def check_names(configurations: Sequence[Mapping[str, Any]]) -> None:
    """Refuse configurations of one name.

    Raises:
        InvalidRequest: two have the same name.
    """
    names = [configuration["name"] for configuration in configurations]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        with in_field("configurations"):
            raise InvalidRequest(f"the names of configurations must differ; {double!r} occurs {names.count(double)} times")
