"""Search by any strategy, and dual-level search."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.requests.guard import QUERY_BYTES, reads
from agentic_rag_backend.api.requests.json_body import JsonRoute
from agentic_rag_backend.api.requests.queries import accept, trace_meta
from agentic_rag_backend.api.responses.envelopes import Envelope, enveloped
from agentic_rag_backend.api.responses.selection import Selectable, enveloped_parts
from agentic_rag_backend.api.schemas.citations import CitationView, ClaimView
from agentic_rag_backend.api.schemas.explanation import ExplainBody, ExplainView
from agentic_rag_backend.api.schemas.questions import QUESTION_BYTES, DualLevelBody, SearchBody
from agentic_rag_backend.api.schemas.search import DualLevelView, FactView, LevelWeightsView, LowLevelView, SearchView, ThemeView
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import LevelWeights, Retrieval

router = APIRouter(tags=["search"], route_class=JsonRoute)
SEARCH, DUAL_LEVEL = Selectable(SearchView, "results"), Selectable(DualLevelView, "low_level_results")


@router.post("/search", response_model=Envelope[SearchView], summary="Find chunks, facts and themes")
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES)
async def search(request: Request, services: Services, caller: Reader, body: SearchBody) -> Any:
    """Retrieve without writing an answer."""
    parts = SEARCH.select(body.fields)
    asked = await accept(request, services, caller, body)
    found = await services.retrievers.get(asked.strategy).retrieve(asked.query)
    found = (await services.contradictions_of_results.attached(asked.query, found)).with_warnings(asked.warnings)
    return enveloped_parts(request, SearchView.of(found), parts, **trace_meta(found))


@router.post(
    "/search/explain",
    response_model=Envelope[ExplainView],
    summary="Explain why a search returns or omits a document",
    responses={404: {"description": "no such document"}},
)
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES)
async def explain(request: Request, services: Services, caller: Reader, body: ExplainBody) -> dict[str, Any]:
    """Return the document's rank in each leg and in the result, and the reason for its omission."""
    asked = await accept(request, services, caller, body)
    found = await services.explainer.explain(asked.query, body.document_id, strategy=asked.strategy)
    trace = replace(found.trace, warnings=(*asked.warnings, *found.trace.warnings))
    view = ExplainView.of(replace(found, trace=trace), limit=asked.query.limit)
    return enveloped(request, view, warnings=list(trace.warnings))


@router.post(
    "/search/dual-level",
    response_model=Envelope[DualLevelView],
    summary="Search both levels in parallel and answer from them",
    responses={404: {"description": "feature_disabled while DUAL_LEVEL_RETRIEVAL_ENABLED is false"}},
)
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES)
async def dual_level(request: Request, services: Services, caller: Reader, body: DualLevelBody) -> Any:
    """Return chunks and communities with their scores and, unless `synthesize` is false, a cited answer from both.

    The answer is `synthesized_answer`; `POST /answers` calls it `answer`.
    """
    started, parts = time.perf_counter(), DUAL_LEVEL.select(body.fields)
    asked = await accept(request, services, caller, body)
    found = await services.retrievers.get(asked.strategy).retrieve(asked.query)
    retrieved = time.perf_counter()
    answer = await services.answers.synthesise(asked.query, found, prompt=body.prompt) if body.synthesize else None
    ended = time.perf_counter()
    times = {
        "retrieval": round((retrieved - started) * 1000, 2),
        "synthesis": round((ended - retrieved) * 1000, 2),
        "total": round((ended - started) * 1000, 2),
    }
    # The answer's retrieval has the same hits, and warnings about levels that the answer lacks.
    found = (answer.retrieval if answer else found).with_warnings(asked.warnings)
    view = _view(body.query, found, answer, found.weights or LevelWeights(0.0, 0.0), times)
    return enveloped_parts(request, view, parts, **trace_meta(found))


def _view(query: str, found: Retrieval, answer: Answer | None, weights: LevelWeights, times: dict[str, float]) -> DualLevelView:
    return DualLevelView(
        query=query,
        low_level_results=[LowLevelView.of(hit, weights.low) for hit in found.hits],
        low_level_facts=[FactView.of(fact) for fact in found.facts],
        high_level_results=[ThemeView.of(theme, weights.high) for theme in found.themes],
        synthesized_answer=answer.text if answer else None,
        confidence=answer.confidence if answer else found.relevance,
        grounded=answer.grounded if answer else False,
        citations=[CitationView.of(citation) for citation in answer.citations] if answer else [],
        claims=[ClaimView.of(claim) for claim in answer.claims] if answer else [],
        fallback_used=found.trace.fallback_used,
        fallback_reason=found.trace.fallback_reason,
        weights=LevelWeightsView(low=weights.low, high=weights.high),
        processing_time_ms=times,
    )
