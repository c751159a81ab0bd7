"""Scores of answers that callers measured elsewhere, and their means over time."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from agentic_rag_backend.api.dependencies import Reader, Services, Writer
from agentic_rag_backend.api.requests.bodies import reads
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.score_submissions import (
    MAX_LABEL_CHARACTERS,
    SCORE_BYTES,
    RecordedScoresView,
    ScoreBody,
    ScoreGroupView,
)
from agentic_rag_backend.api.schemas.usage import EndDay, StartDay

router = APIRouter(tags=["evaluation"], route_class=IdempotentRoute)
Label = Annotated[str | None, Query(max_length=MAX_LABEL_CHARACTERS)]


@router.post(
    "/evaluation/submit", status_code=201, response_model=Envelope[RecordedScoresView], summary="Submit scores of an answer"
)
@reads(lambda _: SCORE_BYTES)
async def submit_scores(request: Request, services: Services, caller: Writer, body: ScoreBody) -> dict[str, Any]:
    """Record the caller's scores. Missing ones that the request allows to compute are computed, and marked as `computed`."""
    return wrap_data(request, RecordedScoresView.of(await services.scores.submit(caller, body.submission())))


@router.get("/evaluation/metrics", response_model=ListEnvelope[ScoreGroupView], summary="Means of submitted scores over time")
async def list_metrics(
    request: Request,
    services: Services,
    caller: Reader,
    start: StartDay = None,
    end: EndDay = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    strategy: Label = None,
    configuration: Label = None,
) -> dict[str, Any]:
    """Return the means of each day (UTC), strategy and configuration, the newest day first."""
    filters = {"strategy": strategy, "configuration": configuration}
    page = await services.scores.list_means(caller, start, end, limit=limit, cursor=cursor, filters=filters)
    return wrap_page(request, [ScoreGroupView.of(group, means) for group, means in page.items], page.next_cursor)
