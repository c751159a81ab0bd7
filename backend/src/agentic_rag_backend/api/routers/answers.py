"""Answers: written from what was found, every citation checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.errors import problem_body, request_id_of
from agentic_rag_backend.api.json_body import JsonRoute
from agentic_rag_backend.api.queries import query_of, strategy_of, trace_meta
from agentic_rag_backend.api.responses import Envelope, enveloped
from agentic_rag_backend.api.schemas.search import AnswerBody, AnswerView, CitationView, SearchView, UsageView
from agentic_rag_backend.generation.base import (
    EVENT_VERSION,
    AnswerEvent,
    CitationEvent,
    DoneEvent,
    ErrorEvent,
    RetrievalEvent,
    TokenEvent,
    UsageEvent,
)
from agentic_rag_backend.models.llm.base import Message

router = APIRouter(tags=["answers"], route_class=JsonRoute)
HEARTBEAT_S = 15


@router.post(
    "/answers",
    response_model=Envelope[AnswerView],
    summary="Answer a question with checked citations",
    responses={200: {"content": {"text/event-stream": {}}, "description": "the answer, or its events where `stream` is true"}},
)
async def answer(request: Request, services: Services, caller: Reader, body: AnswerBody) -> Any:
    """Answer, or refuse (`grounded: false`) where the documents do not say."""
    strategy = strategy_of(services, body)
    query, warnings = query_of(services, caller, body, strategy)
    history = [Message(turn.role, turn.content) for turn in body.history]
    if body.stream:
        stream = services.answers.stream(query, strategy=strategy, generator=body.generator, history=history)
        first = await anext(stream)
        if isinstance(first, ErrorEvent):
            raise first.error  # nothing was sent yet, so it can still be a response of its own
        return _streamed(first, stream, request_id_of(request))
    written = await services.answers.answer(query, strategy=strategy, generator=body.generator, history=history)
    return enveloped(request, AnswerView.of(written), **trace_meta(written.retrieval, warnings))


def _streamed(first: AnswerEvent, rest: AsyncGenerator[AnswerEvent, None], request_id: str) -> Response:
    async def events() -> AsyncIterator[ServerSentEvent]:
        number = 1
        # Closed as soon as the client is gone, which stops the model.
        async with aclosing(rest):
            yield _sent(first, number, request_id)
            async for event in rest:
                number += 1
                yield _sent(event, number, request_id)

    return EventSourceResponse(events(), ping=HEARTBEAT_S, ping_message_factory=lambda: ServerSentEvent(comment="heartbeat"))


def _sent(event: AnswerEvent, number: int, request_id: str) -> ServerSentEvent:
    name, data = _event(event, request_id)
    return ServerSentEvent(orjson.dumps({"v": EVENT_VERSION, **data}).decode(), event=name, id=str(number))


def _event(event: AnswerEvent, request_id: str) -> tuple[str, dict[str, Any]]:
    match event:
        case RetrievalEvent(retrieval):
            return "retrieval", _dumped(SearchView.of(retrieval))
        case TokenEvent(text):
            return "token", {"text": text}
        case CitationEvent(citation):
            return "citation", _dumped(CitationView.of(citation))
        case UsageEvent(usage):
            return "usage", _dumped(UsageView.model_validate(usage))
        case DoneEvent(written):
            return "done", _dumped(AnswerView.of(written))
        case ErrorEvent(error):
            return "error", problem_body(error, request_id)


def _dumped(view: BaseModel) -> dict[str, Any]:
    dumped: dict[str, Any] = view.model_dump(mode="json")
    return dumped
