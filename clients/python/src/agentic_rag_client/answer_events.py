"""Events of a streamed answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import httpx2

from agentic_rag_client import models
from agentic_rag_client.errors import AgenticRagError, ConnectionFailed, UnexpectedReply, create_problem
from agentic_rag_client.event_streams import EventParser, ServerEvent
from agentic_rag_client.model import ResponseInfo
from agentic_rag_client.requests import Call
from agentic_rag_client.session import Session

_RESUMED_AFTER_S = (0.2, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Pauses before attempts to resume a stream. The server keeps its events for two minutes."""


@dataclass(frozen=True, slots=True)
class RetrievalEvent:
    """The passages, facts and themes that the answer is written from."""

    results: models.SearchResults


@dataclass(frozen=True, slots=True)
class CitationEvent:
    """A citation. It precedes the text that has its marker."""

    citation: models.Citation


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A checked sentence with its markers. ``reason`` says why it is not supported."""

    text: str
    supported: bool = True
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """Tokens and calls of the language model."""

    usage: models.AnswerUsage


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The whole answer. It is the last event."""

    answer: models.Answer


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """An event of a newer server."""

    name: str
    data: dict[str, Any]


AnswerEvent: TypeAlias = RetrievalEvent | CitationEvent | TokenEvent | UsageEvent | DoneEvent | OtherEvent


async def read_answer(session: Session, call: Call) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the events of an answer.

    If the connection breaks after the first event, the rest is read from the address of the stream, without repetition. If the
    reader stops early, the server is asked to stop, unless the answer is resumable.

    Raises:
        AgenticRagError: the answer failed.
    """
    address, is_complete, failures, request = "", False, 0, call
    last_id = ""
    try:
        while not is_complete:
            try:
                response = await session.open(request)
                info = session.describe(response, {})
                address = info.headers.get("content-location", address)
                async with aclosing(read_events(session, response)) as events:
                    async for event in events:
                        failures, last_id = 0, event.id
                        is_complete = event.name in ("done", "error")
                        yield _read_event(event, info)
                if not is_complete:
                    raise ConnectionFailed(f"{session.options.origin} ended the stream before the answer was complete")
            except ConnectionFailed:
                if not address or failures >= len(_RESUMED_AFTER_S):
                    raise
                await session.transport.sleep(_RESUMED_AFTER_S[failures])
                failures += 1
                request = Call("GET", address, headers={"Last-Event-ID": last_id or "0"})
    finally:
        if address and not is_complete and call.method == "POST" and not (call.body or {}).get("resumable"):
            with suppress(AgenticRagError):
                await session.send(Call("DELETE", address))


async def read_events(session: Session, response: httpx2.Response) -> AsyncGenerator[ServerEvent, None]:
    """Yield the events of a response, and release its connection.

    Raises:
        ConnectionFailed: the connection broke.
        UnexpectedReply: the data of an event is no JSON.
    """
    parser = EventParser()
    try:
        async with aclosing(session.transport.blocks(response)) as blocks:
            async for block in blocks:
                for event in parser.feed(block):
                    yield event
    except httpx2.TransportError as error:
        raise ConnectionFailed(f"the connection to {session.options.origin} broke: {error or type(error).__name__}") from error
    except ValueError as error:
        raise UnexpectedReply(f"{response.url} sent an event whose data is no JSON") from error
    finally:
        await session.transport.release(response)


def _read_event(event: ServerEvent, info: ResponseInfo) -> AnswerEvent:
    data = {name: value for name, value in event.data.items() if name != "v"}
    match event.name:
        case "retrieval":
            results = models.SearchResults.model_validate(data)
            results._response = info
            return RetrievalEvent(results)
        case "citation":
            return CitationEvent(models.Citation.model_validate(data))
        case "token":
            return TokenEvent(str(data.get("text", "")), bool(data.get("supported", True)), data.get("reason"))
        case "usage":
            return UsageEvent(models.AnswerUsage.model_validate(data))
        case "done":
            answer = models.Answer.model_validate(data)
            answer._response = info
            return DoneEvent(answer)
        case "error":
            raise create_problem(data)
        case name:
            return OtherEvent(name, data)
