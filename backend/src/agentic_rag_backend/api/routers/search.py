"""Search by any strategy, and dual-level search."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.middleware import shorten_timeout
from agentic_rag_backend.api.requests.bodies import QUERY_BYTES, JsonRoute, reads
from agentic_rag_backend.api.responses.envelopes import Envelope, Selectable, enveloped_parts, trace_meta, wrap_data
from agentic_rag_backend.api.schemas.questions.explanation import ExplainView
from agentic_rag_backend.api.schemas.questions.questions import QUESTION_BYTES, DualLevelBody, ExplainBody, SearchBody
from agentic_rag_backend.api.schemas.questions.search import DualLevelView, SearchView

router = APIRouter(tags=["search"], route_class=JsonRoute)
SEARCH, DUAL_LEVEL = Selectable(SearchView, "results"), Selectable(DualLevelView, "low_level_results")


@router.post("/search", response_model=Envelope[SearchView], summary="Find chunks, facts and themes")
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES)
async def search(request: Request, services: Services, caller: Reader, body: SearchBody) -> Any:
    """Retrieve without writing an answer."""
    parts = SEARCH.select(body.fields)
    shorten_timeout(request.scope, body.timeout_ms)
    retrieval = await services.search.run_search(caller, body)
    return enveloped_parts(request, SearchView.of(retrieval), parts, **trace_meta(retrieval))


@router.post(
    "/search/explain",
    response_model=Envelope[ExplainView],
    summary="Explain why a search returns or omits a document",
    responses={404: {"description": "no such document"}},
)
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES)
async def explain(request: Request, services: Services, caller: Reader, body: ExplainBody) -> dict[str, Any]:
    """Return the document's rank in each leg and in the result, and the reason for its omission."""
    shorten_timeout(request.scope, body.timeout_ms)
    explanation = await services.search.explain_search(caller, body)
    return wrap_data(request, ExplainView.of(explanation), warnings=list(explanation.trace.warnings))


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
    parts = DUAL_LEVEL.select(body.fields)
    shorten_timeout(request.scope, body.timeout_ms)
    result = await services.search.search_levels(caller, body)
    return enveloped_parts(request, DualLevelView.of(body.query, result), parts, **trace_meta(result.retrieval))
