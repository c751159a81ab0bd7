"""Answers with checked citations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent

from agentic_rag_backend.answering.base import (
    EVENT_VERSION,
    AnswerEvent,
    CitationEvent,
    DoneEvent,
    ErrorEvent,
    RetrievalEvent,
    TokenEvent,
    UsageEvent,
)
from agentic_rag_backend.answering.evidence.context import passages_of, theme_chunk_ids
from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.middleware import deadline_of, shorten_timeout
from agentic_rag_backend.api.requests.bodies import QUERY_BYTES, JsonRoute, reads
from agentic_rag_backend.api.responses.envelopes import Envelope, Parts, Selectable, dump_parts, enveloped_parts, trace_meta
from agentic_rag_backend.api.responses.error_responses import problem_body, request_id_of
from agentic_rag_backend.api.responses.resumption import (
    AnswerStream,
    AnswerStreams,
    StreamOpening,
    StreamOwner,
    fingerprint_of,
    place_of,
)
from agentic_rag_backend.api.responses.streaming import Events, event, event_content, event_stream
from agentic_rag_backend.api.schemas.questions.answers import AnswerUsageView, AnswerView
from agentic_rag_backend.api.schemas.questions.questions import HISTORY_BYTES, QUESTION_BYTES, AnswerBody
from agentic_rag_backend.api.schemas.questions.search import CitationView, SearchView
from agentic_rag_backend.application import Application
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import InvalidRequest, NotFound

router = APIRouter(tags=["answers"], route_class=JsonRoute)
ANSWERS = Selectable(AnswerView, "sources")
ANSWER_EVENTS = event_content(
    ("token", {"v": EVENT_VERSION, "text": "The delay was caused by a cracked caisson. [1]", "supported": True, "reason": None}),
    ("usage", {"v": EVENT_VERSION, "prompt_tokens": 0, "completion_tokens": 0, "calls": 0, "cost": 0.0}),
)


@router.post(
    "/answers",
    response_model=Envelope[AnswerView],
    summary="Answer a question with checked citations",
    responses={200: {"content": ANSWER_EVENTS, "description": "the answer, or its events if `stream` is true"}},
)
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES + HISTORY_BYTES)
async def answer(request: Request, services: Services, caller: Reader, body: AnswerBody) -> Any:
    """Answer the question, or refuse (`grounded: false`) if the documents do not contain the answer.

    The text is `answer`; `POST /search/dual-level` calls it `synthesized_answer`.
    """
    parts = ANSWERS.select(body.fields)
    shorten_timeout(request.scope, body.timeout_ms)
    if body.stream and "last-event-id" in request.headers:
        after = place_of(request.headers["last-event-id"])
        repeated = _streams_of(request).find_repeated_stream(
            StreamOwner.of(caller), fingerprint_of(body.model_dump(mode="json")), after
        )
        return await _follow_stream(request, services, caller, repeated, after)
    if body.stream:
        stream = services.answers.stream_answer(caller, body)
        first_event = await anext(stream)  # an error before the first event is still a response
        opened = _streams_of(request).open(
            StreamOpening(
                owner=StreamOwner.of(caller),
                events=_send_events(first_event, stream, _Form(request_id_of(request), parts)),
                fingerprint=fingerprint_of(body.model_dump(mode="json")),
                chunk_ids=_select_chunk_ids(first_event),
                resumable=body.resumable,
                deadline=deadline_of(request.scope),
                request_id=request_id_of(request),
            )
        )
        return _respond_with_stream(request, opened, 0)
    result = await services.answers.write_answer(caller, body)
    return enveloped_parts(request, AnswerView.of(result), parts, **trace_meta(result.retrieval))


@router.get(
    "/answers/streams/{stream_id}",
    summary="Resume a streamed answer",
    response_class=EventSourceResponse,
    responses={200: {"content": ANSWER_EVENTS, "description": "the events after `Last-Event-ID`, those to come as well"}},
)
async def resume_answer(
    request: Request,
    services: Services,
    caller: Reader,
    stream_id: str,
    last_event_id: Annotated[str | None, Header(description="number of the last event received; default: 0")] = None,
) -> Any:
    """Send the rest of a streamed answer. Its address is `Content-Location` of the first response.

    Only the key that asked can resume it, at the same server process, until `STREAM_RESUME_S` (120 s) after its last connection.
    404 otherwise, and if a document that it quotes was deleted or changed.
    """
    stream = _streams_of(request).find(StreamOwner.of(caller), stream_id)
    return await _follow_stream(request, services, caller, stream, place_of(last_event_id))


@router.delete("/answers/streams/{stream_id}", status_code=204, summary="Stop a streamed answer")
async def stop_answer(request: Request, caller: Reader, stream_id: str) -> Response:
    """Stop the model call and forget the events."""
    streams = _streams_of(request)
    streams.drop(streams.find(StreamOwner.of(caller), stream_id))
    return Response(status_code=204)


def _streams_of(request: Request) -> AnswerStreams:
    streams: AnswerStreams = request.app.state.answer_streams
    return streams


async def _follow_stream(request: Request, services: Application, caller: Principal, stream: AnswerStream, after: int) -> Any:
    """Return the rest of a stream, if everything that it quotes is still visible."""
    try:
        await services.answers.check_quoted_chunks(caller, stream.opening.chunk_ids)
    except NotFound:
        _streams_of(request).drop(stream)
        raise
    if after < stream.dropped:
        raise NotFound(f"event {after + 1} of this answer is not kept any more; ask again")
    if after > stream.last:
        raise InvalidRequest(f"Last-Event-ID must be at most {stream.last}, the newest event; got {after}")
    return _respond_with_stream(request, stream, after)


def _respond_with_stream(request: Request, stream: AnswerStream, after: int) -> Any:
    address = f"{request.scope['path'].partition('/answers')[0]}/answers/streams/{stream.id}"
    return event_stream(request, stream.follow(after), headers={"Content-Location": address}, on_refused=stream.stop)


def _select_chunk_ids(event: AnswerEvent) -> frozenset[str]:
    """Return the ids of the chunks that an answer may quote."""
    if not isinstance(event, RetrievalEvent):
        return frozenset()
    retrieval = event.retrieval
    return frozenset([*(hit.id for hit in (*retrieval.hits, *passages_of(retrieval))), *theme_chunk_ids(retrieval)])


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a stream's events: the chosen ``parts`` of an answer."""

    request_id: str
    parts: Parts | None

    @property
    def parts_of_retrieval(self) -> Parts | None:
        """The chosen parts of the event `retrieval`, where the ``sources`` of an answer are ``results``."""
        if self.parts is None:
            return None
        renamed = {"results" if name == "sources" else name: fields for name, fields in self.parts.items()}
        return {name: fields for name, fields in renamed.items() if name in SearchView.model_fields}


async def _send_events(first_event: AnswerEvent, events: AsyncGenerator[AnswerEvent, None], form: _Form) -> Events:
    # Closing the events stops the model as soon as the client disconnects.
    async with aclosing(events):
        yield _make_event(first_event, form)
        async for answer_event in events:
            yield _make_event(answer_event, form)


def _make_event(answered: AnswerEvent, form: _Form) -> ServerSentEvent:
    name, data = _name_event(answered, form)
    return event(name, {"v": EVENT_VERSION, **data})


def _name_event(answered: AnswerEvent, form: _Form) -> tuple[str, dict[str, Any]]:
    match answered:
        case RetrievalEvent(retrieval):
            return "retrieval", dump_parts(SearchView.of(retrieval), form.parts_of_retrieval)
        case TokenEvent(text, supported, reason):
            return "token", {"text": text, "supported": supported, "reason": reason}
        case CitationEvent(citation):
            return "citation", _dump_view(CitationView.of(citation))
        case UsageEvent(usage):
            return "usage", _dump_view(AnswerUsageView.model_validate(usage))
        case DoneEvent(written):
            return "done", dump_parts(AnswerView.of(written), form.parts)
        case ErrorEvent(error):
            return "error", problem_body(error, form.request_id)


def _dump_view(view: BaseModel) -> dict[str, Any]:
    dumped: dict[str, Any] = view.model_dump(mode="json")
    return dumped
