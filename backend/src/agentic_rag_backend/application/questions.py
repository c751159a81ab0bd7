"""Searches of a caller, and answers to its questions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from agentic_rag_backend.answering.base import AnswerEvent, DoneEvent, ErrorEvent, RetrievalEvent
from agentic_rag_backend.application.access import requires
from agentic_rag_backend.application.tenant_experiments import take_part
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.retrieval.options.filters import RequestModel
from agentic_rag_backend.retrieval.ranking_explanation import Explanation
from agentic_rag_backend.retrieval.requests.builder import BuiltQuery
from agentic_rag_backend.retrieval.requests.search_requests import (
    MAX_QUERY_CHARACTERS,
    DualLevelRequest,
    PassageRequest,
    SearchRequest,
)
from agentic_rag_backend.retrieval.rerank.text_reranking import RankedTexts
from agentic_rag_backend.telemetry.metrics import count_answer
from agentic_rag_backend.telemetry.tracing import start_span
from agentic_rag_backend.tenancy.features import QUESTION_LOG
from agentic_rag_backend.wording import message_of

MAX_TURNS = 20

Model = TypeVar("Model", bound=BaseModel)


class ExplainRequest(SearchRequest):
    """A search, and the document to explain."""

    document_id: str = Field(min_length=1, max_length=64)


class Turn(RequestModel):
    role: Literal["user", "assistant"]
    content: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)


class AnswerRequest(SearchRequest):
    """A question, and options of its answer."""

    generator: str | None = Field(
        None,
        max_length=64,
        description="`attributed` (only supported sentences), `standard` (all, unsupported ones marked) or `verified` (revised "
        "after verification questions)",
    )
    history: list[Turn] = Field(default_factory=list, max_length=MAX_TURNS)
    citation_style: Literal["numeric", "title", "none"] = Field(
        "numeric", description="form of citations in the text: [1], (Title) or none; the list of citations is the same"
    )
    citation_policy: Literal["strict", "checked", "mark"] | None = Field(
        None,
        description="sentences that are not supported: `strict` leaves them out; `checked` leaves out contradicted ones and "
        "keeps others with the mark [unverified]; `mark` also keeps contradicted ones, with the mark [unsupported]; "
        "default: `mark` for `standard`, otherwise `checked`",
    )


def read_request(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Return the request that has these values.

    Raises:
        InvalidRequest: a value is unknown or outside its limits. The message names it.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, item['loc']))}: {message_of(item)}" for item in error.errors(include_url=False))
        raise InvalidRequest("; ".join(problems)) from None


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

    @requires(Scope.READ, filtered=True)
    async def run_search(self, caller: Principal, request: SearchRequest, *, within: Filter | None = None) -> Retrieval:
        """Return passages, facts and themes of the documents that pass ``within``, see `DocumentSets.select_documents`.

        Raises:
            InvalidRequest: a value is outside its limits.
            FeatureDisabled: the strategy is dual_level, which is disabled.
            StoreUnavailable: a store that the strategy requires did not answer.
        """
        request, participation = take_part(self.container, caller, request)
        built = await self.container.queries.build(caller, request, within=within)
        retrieval = await self.container.retrievers.get(built.strategy).retrieve(built.query)
        retrieval = await self.container.contradictions_of_results.attach_contradictions(built.query, retrieval)
        return participation.record_search(retrieval.with_warnings(built.warnings))

    @requires(Scope.READ, filtered=True)
    async def explain_search(self, caller: Principal, request: ExplainRequest) -> Explanation:
        """Return the document's rank in each leg and in the result, and the reasons for its omission.

        Raises:
            NotFound: the tenant has no such document.
        """
        request, _ = take_part(self.container, caller, request)  # as the search that it explains
        built = await self.container.queries.build(caller, request)
        explanation = await self.container.explainer.explain(built.query, request.document_id, strategy=built.strategy)
        return replace(explanation, trace=replace(explanation.trace, warnings=(*built.warnings, *explanation.trace.warnings)))

    @requires(Scope.READ, filtered=True)
    async def rank_texts(self, caller: Principal, question: str, texts: Sequence[str], reranker: str) -> RankedTexts:
        """Return the scores of texts that the caller brings. See `TextReranking.rank_texts`."""
        return await self.container.text_reranking.rank_texts(caller.tenant, question, texts, reranker)

    @requires(Scope.READ, filtered=True)
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
            answer = _record_answer(self.container, caller, request, answer, built.strategy)
            retrieval = answer.retrieval  # it has the same hits, and warnings about levels that the answer lacks
        finished_at = time.perf_counter()
        spans = {"retrieval": retrieved - started, "synthesis": finished_at - retrieved, "total": finished_at - started}
        times = {stage: round(seconds * 1000, 2) for stage, seconds in spans.items()}
        return DualLevelResult(retrieval.with_warnings(built.warnings), answer, times)


@dataclass(frozen=True, slots=True)
class AnswerWriting:
    """Answers questions with checked citations, at once or as events."""

    container: Container

    @requires(Scope.READ, filtered=True)
    async def write_answer(self, caller: Principal, request: AnswerRequest, *, within: Filter | None = None) -> Answer:
        """Return the answer, or a refusal (``grounded`` False) if the documents that pass ``within`` do not contain it.

        Raises:
            InvalidRequest: a value is outside its limits.
            ModelUnavailable: the language model failed, and there is no fallback.
        """
        request, participation = take_part(self.container, caller, request)
        built = await self.container.queries.build(caller, request, within=within)
        with start_span("answer", tenant=caller.tenant.id.value, strategy=built.strategy) as span:
            answer = await self.container.answers.answer(built.query, **_options_of(built, request))
            span.set(grounded=answer.grounded, question=request.query, answer=answer.text)
        recorded = _record_answer(self.container, caller, request, answer, built.strategy)
        return participation.record_answer(_with_warnings(recorded, built))

    @requires(Scope.READ, filtered=True)
    async def stream_answer(
        self, caller: Principal, request: AnswerRequest, *, within: Filter | None = None
    ) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the results, the checked sentences and the whole answer, as `write_answer`. A later failure is an `ErrorEvent`.

        Raises:
            AgenticRagError: the request was refused, or the search failed. Nothing was yielded yet.
        """
        request, participation = take_part(self.container, caller, request)
        built = await self.container.queries.build(caller, request, within=within)
        started = False
        # Closing the events stops the model as soon as the caller leaves.
        async with aclosing(self.container.answers.stream(built.query, **_options_of(built, request))) as events:
            async for event in events:
                match event:
                    case ErrorEvent(error) if not started:
                        raise error
                    case RetrievalEvent(retrieval):
                        yield RetrievalEvent(participation.trace_results(retrieval.with_warnings(built.warnings)))
                    case DoneEvent(answer):
                        recorded = _record_answer(self.container, caller, request, answer, built.strategy)
                        yield DoneEvent(participation.record_answer(_with_warnings(recorded, built)))
                    case _:
                        yield event
                started = True

    @requires(Scope.READ, filtered=True)
    async def check_quoted_chunks(self, caller: Principal, chunk_ids: Collection[str]) -> None:
        """Return if every chunk that an answer may quote is visible.

        Raises:
            NotFound: a document was deleted or changed.
        """
        if len(await self.container.catalogue.documents.hydrate(caller.tenant.id, list(chunk_ids))) < len(chunk_ids):
            raise NotFound("a document of this answer was deleted or changed meanwhile; ask again")


def _record_answer(container: Container, caller: Principal, request: PassageRequest, answer: Answer, strategy: str) -> Answer:
    """Count an answer, and record it for feedback, with the question if the tenant allows it.

    A follow-up alone says too little to keep it.
    """
    is_follow_up = isinstance(request, AnswerRequest) and bool(request.history)
    keep = container.features.is_on(QUESTION_LOG, caller.flags) and not is_follow_up
    count_answer(strategy, grounded=answer.grounded)
    return container.feedback.record_answer(caller.tenant.id, caller.key_id, answer, question=request.query, keep=keep)


def _options_of(built: BuiltQuery, request: AnswerRequest) -> dict[str, Any]:
    return {
        "strategy": built.strategy,
        "generator": request.generator,
        "history": [Message(turn.role, turn.content) for turn in request.history],
        "citation_style": request.citation_style,
        "citation_policy": request.citation_policy,
    }


def _with_warnings(answer: Answer, built: BuiltQuery) -> Answer:
    return replace(answer, retrieval=answer.retrieval.with_warnings(built.warnings))
