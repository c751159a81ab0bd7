"""Answers with checked citations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypedDict

from fastapi import APIRouter, Request
from pydantic import BaseModel
from sse_starlette import ServerSentEvent

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.requests.guard import QUERY_BYTES, reads
from agentic_rag_backend.api.requests.json_body import JsonRoute
from agentic_rag_backend.api.requests.queries import accept, trace_meta
from agentic_rag_backend.api.responses.envelopes import Envelope, enveloped
from agentic_rag_backend.api.responses.errors import problem_body, request_id_of
from agentic_rag_backend.api.responses.streaming import Events, event, event_content, event_stream
from agentic_rag_backend.api.schemas.search import HISTORY_BYTES, AnswerBody, AnswerView, CitationView, SearchView, UsageView
from agentic_rag_backend.generation.base import (
    EVENT_VERSION,
    AnswerEvent,
    CitationEvent,
    CitationStyle,
    DoneEvent,
    ErrorEvent,
    RetrievalEvent,
    TokenEvent,
    UsageEvent,
)
from agentic_rag_backend.models.llm.base import Message

router = APIRouter(tags=["answers"], route_class=JsonRoute)
ANSWER_EVENTS = event_content(
    ("token", {"v": EVENT_VERSION, "text": "The delay was caused by a cracked caisson. [1]"}),
    ("usage", {"v": EVENT_VERSION, "prompt_tokens": 0, "completion_tokens": 0, "calls": 0}),
)


class _AnswerRequest(TypedDict):
    """Options of an answer."""

    strategy: str
    generator: str | None
    history: list[Message]
    citation_style: CitationStyle


@router.post(
    "/answers",
    response_model=Envelope[AnswerView],
    summary="Answer a question with checked citations",
    responses={200: {"content": ANSWER_EVENTS, "description": "the answer, or its events if `stream` is true"}},
)
@reads(lambda _: QUERY_BYTES + HISTORY_BYTES)
async def answer(request: Request, services: Services, caller: Reader, body: AnswerBody) -> Any:
    """Answer the question, or refuse (`grounded: false`) if the documents do not contain the answer."""
    built = accept(request, services, caller, body)
    asked: _AnswerRequest = {
        "strategy": built.strategy,
        "generator": body.generator,
        "history": [Message(turn.role, turn.content) for turn in body.history],
        "citation_style": body.citation_style,
    }
    if body.stream:
        stream = services.answers.stream(built.query, **asked)
        first = await anext(stream)
        if isinstance(first, ErrorEvent):
            raise first.error  # nothing was sent yet, so the error is still a response
        if isinstance(first, RetrievalEvent):
            first = RetrievalEvent(first.retrieval.with_warnings(built.warnings))
        return event_stream(request, _sent(first, stream, request_id_of(request)))
    written = await services.answers.answer(built.query, **asked)
    return enveloped(request, AnswerView.of(written), **trace_meta(written.retrieval, built.warnings))


async def _sent(first: AnswerEvent, rest: AsyncGenerator[AnswerEvent, None], request_id: str) -> Events:
    # Closing the events stops the model as soon as the client disconnects.
    async with aclosing(rest):
        yield _event(first, request_id)
        async for each in rest:
            yield _event(each, request_id)


def _event(answered: AnswerEvent, request_id: str) -> ServerSentEvent:
    name, data = _named(answered, request_id)
    return event(name, {"v": EVENT_VERSION, **data})


def _named(answered: AnswerEvent, request_id: str) -> tuple[str, dict[str, Any]]:
    match answered:
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
