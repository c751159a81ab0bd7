"""Feedback on answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from agentic_rag_backend.api.dependencies import Administrator, Reader, Services
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.feedback import FeedbackBody, FeedbackView
from agentic_rag_backend.domain.feedback import Rating
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS

router = APIRouter(tags=["feedback"], route_class=JsonRoute)


@router.post(
    "/feedback",
    response_model=Envelope[FeedbackView],
    summary="Rate an answer, a citation or a result",
    responses={404: {"description": "no such answer, or more than 10,000 newer ones"}},
)
async def give_feedback(request: Request, services: Services, caller: Reader, body: FeedbackBody) -> dict[str, Any]:
    """Record feedback. Feedback of the same key on the same subject is replaced, so a repeated request changes nothing."""
    return wrap_data(request, FeedbackView.of(await services.feedback.submit(caller, body.draft())))


@router.get("/feedback", response_model=ListEnvelope[FeedbackView], summary="List feedback, newest first")
async def list_feedback(
    request: Request,
    services: Services,
    caller: Administrator,
    limit: Limit = 50,
    cursor: Cursor = None,
    rating: Rating | None = None,
    strategy: Annotated[str | None, Query(max_length=64)] = None,
    answer_id: Annotated[str | None, Query(max_length=64)] = None,
    question: Annotated[
        str | None, Query(max_length=MAX_QUERY_CHARACTERS, description="feedback on answers to this question")
    ] = None,
) -> dict[str, Any]:
    """List the feedback of all keys of the tenant."""
    page = await services.feedback.list_feedback(
        caller, limit=limit, cursor=cursor, rating=rating, strategy=strategy, answer_id=answer_id, question=question
    )
    return wrap_page(request, [FeedbackView.of(item) for item in page.items], page.next_cursor)
