"""Chat completions: answers with checked citations, whole or as a stream."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from agentic_rag_backend.answering.base import AnswerEvent, DoneEvent, ErrorEvent, TokenEvent
from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.doors.openai_protocol.conversations import (
    PRESETS,
    ChatBody,
    count_tokens,
    list_annotations,
    read_conversation,
    write_sources,
)
from agentic_rag_backend.api.doors.openai_protocol.interface_tasks import do_task, is_task
from agentic_rag_backend.api.doors.openai_protocol.reply_schemas import ERRORS, ChatCompletion
from agentic_rag_backend.api.doors.openai_protocol.route import OPENAI_PATH, OpenAIRoute, UnknownModel, error_body, stream_events
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.api.requests.bodies import QUERY_BYTES, reads
from agentic_rag_backend.api.responses.error_responses import request_id_of
from agentic_rag_backend.api.responses.streaming import Events
from agentic_rag_backend.api.schemas.questions.questions import HISTORY_BYTES, QUESTION_BYTES
from agentic_rag_backend.application.questions import AnswerRequest, read_request
from agentic_rag_backend.domain.answer import Answer

router = APIRouter(prefix=OPENAI_PATH, tags=["openai"], route_class=OpenAIRoute, responses=ERRORS)
_CONTENT = {
    "application/json": {
        "example": {
            "id": "chatcmpl-req_9f8e7d6c5b4a39281706f5e4d3c2b1a0",
            "object": "chat.completion",
            "created": 1772443800,
            "model": "auto",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "The delay was caused by a cracked caisson. [1]\n\n**Sources**\n\n[1] …",
                        "refusal": None,
                        "annotations": [],
                    },
                    "finish_reason": "stop",
                    "logprobs": None,
                }
            ],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            "answer_id": "a_5f0c2a9be3d14c7f8a61b2c3d4e5f607",
            "grounded": True,
        }
    },
    "text/event-stream": {
        "example": 'data: {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "It was delayed. [1]"}}]}\n\n'
    },
}

Sources = Annotated[Literal["text", "none"], Query(description="`none`: no list of sources below the answer")]


@router.post(
    "/chat/completions",
    summary="Answer the last message of a chat, with citations as annotations",
    responses={200: {"model": ChatCompletion, "content": _CONTENT}},
)
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES + HISTORY_BYTES)
async def complete_chat(request: Request, services: Services, caller: Reader, body: ChatBody, sources: Sources = "text") -> Any:
    """Answer in OpenAI's form: the text with markers, a list of sources below it, and annotations of the type `url_citation`.

    The model is a preset: `auto`, `dual`, `local`, `themes` or `agentic`. Earlier messages are the history.
    """
    if body.model not in PRESETS:
        raise UnknownModel(f"no model is named {body.model[:80]!r}; the models are {', '.join(PRESETS)}")
    question, history = read_conversation(body.messages)
    form = _Form(request, body, shows_sources=sources == "text")
    if is_task(question):
        reply = do_task(question)
        return form.respond_with_text(reply)
    answer_request = read_request(AnswerRequest, {**PRESETS[body.model], "query": question, "history": history})
    if not body.stream:
        return form.make_completion(await services.answers.write_answer(caller, answer_request))
    events = services.answers.stream_answer(caller, answer_request)
    first_event = await anext(events)  # an error before the first event is still a response
    return form.respond_with_events(form.make_events(first_event, events))


class _Form:
    """The form of one completion."""

    def __init__(self, request: Request, body: ChatBody, *, shows_sources: bool) -> None:
        self._request = request
        self._links = Permalinks.of(request)
        self._shows_sources = shows_sources
        self._streams = bool(body.stream)
        self._include_usage = body.stream_options is not None and body.stream_options.include_usage
        self._shared = {"id": f"chatcmpl-{request_id_of(request)}", "created": int(time.time()), "model": body.model}

    def make_completion(self, answer: Answer) -> dict[str, Any]:
        """Return a whole answer."""
        message = {
            "role": "assistant",
            "content": answer.text + self._list_sources(answer),
            "refusal": None,
            "annotations": list_annotations(answer, self._links),
        }
        return self._complete(message, count_tokens(answer), answer_id=answer.id, grounded=answer.grounded)

    def respond_with_text(self, text: str) -> Any:
        """Return a completion without an answer."""
        no_tokens = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        if not self._streams:
            return self._complete({"role": "assistant", "content": text, "refusal": None, "annotations": []}, no_tokens)

        async def make_events() -> Events:
            yield self._chunk({"role": "assistant", "content": text})
            for event in self._end(no_tokens):
                yield event

        return self.respond_with_events(make_events())

    def respond_with_events(self, events: Events) -> EventSourceResponse:
        """Return a stream, which ends if the caller's key becomes invalid."""
        return stream_events(self._request, events, lambda error: _data_event(error_body(error)))

    async def make_events(self, first_event: AnswerEvent, events: AsyncGenerator[AnswerEvent, None]) -> Events:
        """Yield the chunks of an answer: its sentences, the sources, the annotations, the usage."""
        yield self._chunk({"role": "assistant", "content": ""})
        async with aclosing(events):
            if isinstance(first_event, TokenEvent):
                yield self._chunk({"content": first_event.text})
            async for answer_event in events:
                match answer_event:
                    case TokenEvent(text):
                        yield self._chunk({"content": text})
                    case ErrorEvent(error):
                        raise error
                    case DoneEvent(answer):
                        sources = self._list_sources(answer)
                        yield self._chunk({"content": sources, "annotations": list_annotations(answer, self._links)})
                        for event in self._end(count_tokens(answer), answer_id=answer.id, grounded=answer.grounded):
                            yield event

    def _list_sources(self, answer: Answer) -> str:
        return write_sources(answer, self._links) if self._shows_sources else ""

    def _complete(self, message: dict[str, Any], usage: dict[str, int], **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._shared, "object": "chat.completion", "choices": [choice], "usage": usage, **more}

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return _data_event({**self._shared, "object": "chat.completion.chunk", "choices": [choice], **more})

    def _end(self, usage: dict[str, int], **more: Any) -> list[ServerSentEvent]:
        """Return the last events of a stream."""
        end = [self._chunk({}, "stop", **more)]
        if self._include_usage:
            end.append(_data_event({**self._shared, "object": "chat.completion.chunk", "choices": [], "usage": usage}))
        return [*end, ServerSentEvent("[DONE]")]


def _data_event(data: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(orjson.dumps(data).decode())
