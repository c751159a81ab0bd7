"""Server-sent events. A stream ends when the caller's key becomes invalid or its time limit is reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

import orjson
from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from agentic_rag_backend.api.dependencies import container_of, credential_of
from agentic_rag_backend.api.middleware import Deadline
from agentic_rag_backend.api.responses.error_responses import problem_body, request_id_of
from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable
from agentic_rag_backend.telemetry.logs import get_logger

HEARTBEAT_S = 15
CHECK_S = 2.0
"""Seconds between two checks of the key of an open stream."""
VERSION = 1

_log = get_logger(__name__)
Events = AsyncGenerator[ServerSentEvent, None]


def event_stream(
    request: Request,
    events: Events,
    *,
    headers: Mapping[str, str] | None = None,
    deadline: Deadline | None = None,
    on_refused: Callable[[], None] | None = None,
) -> EventSourceResponse:
    """Return a response that sends ``events`` until they end or the caller loses access.

    Events without an id are numbered from 1. ``on_refused`` is called if the caller loses access.

    If the key is revoked, the tenant is deleted or suspended, or ``deadline`` is over, the stream ends with an event
    ``error``, whose data is a problem. ``events`` is closed at the end.
    """
    return EventSourceResponse(
        _number_events(check_admission(request, events, deadline), request_id_of(request), on_refused),
        headers=headers,
        ping=HEARTBEAT_S,
        ping_message_factory=lambda: ServerSentEvent(comment="heartbeat"),
    )


def event(name: str, data: object) -> ServerSentEvent:
    """Return an event whose data is ``data`` as JSON."""
    return ServerSentEvent(orjson.dumps(data).decode(), event=name)


def event_content(*events: tuple[str, object]) -> dict[str, Any]:
    """Return the ``content`` of an OpenAPI response that is an event stream, with ``events`` (name, data) as its example."""
    lines = [
        f"id: {number}\nevent: {name}\ndata: {orjson.dumps(data).decode()}\n\n" for number, (name, data) in enumerate(events, 1)
    ]
    return {"text/event-stream": {"example": "".join(lines)}}


async def _number_events(
    events: Events, request_id: str, on_refused: Callable[[], None] | None
) -> AsyncIterator[ServerSentEvent]:
    number = 0
    async with aclosing(events):
        try:
            async for message in events:
                number = int(message.id) if message.id is not None else number + 1
                message.id = str(number)
                yield message
        except AgenticRagError as error:
            if on_refused is not None:
                on_refused()
            error_message = event("error", {"v": VERSION, **problem_body(error, request_id)})
            error_message.id = str(number + 1)
            yield error_message


async def check_admission(request: Request, events: Events, deadline: Deadline | None) -> Events:
    """Yield ``events``, and check the key every `CHECK_S` seconds, also between events."""
    queue: asyncio.Queue[ServerSentEvent | None] = asyncio.Queue()
    maker = asyncio.create_task(_make(events, queue))
    maker.add_done_callback(lambda _: queue.put_nowait(None))
    loop = asyncio.get_running_loop()
    check_at = loop.time() + CHECK_S
    try:
        while True:
            item = await _next(queue, min(check_at, deadline.at) if deadline else check_at)
            if item is None:
                maker.result()
                return
            if deadline is not None and loop.time() >= deadline.at:
                raise deadline.error()
            if loop.time() >= check_at:
                await _require_admission(request)
                check_at = loop.time() + CHECK_S
            if item is not _NOTHING:
                yield item
                queue.task_done()
    finally:
        maker.cancel()
        # The stream is over, so errors of the cancelled task do not matter.
        with suppress(asyncio.CancelledError, AgenticRagError):
            await maker


async def _make(events: Events, queue: asyncio.Queue[ServerSentEvent | None]) -> None:
    """Read ``events`` in one task, each after the previous event was sent."""
    async with aclosing(events):
        async for item in events:
            await queue.put(item)
            await queue.join()


_NOTHING = ServerSentEvent()


async def _next(queue: asyncio.Queue[ServerSentEvent | None], at: float) -> ServerSentEvent | None:
    """Return the next event, None after the last, or `_NOTHING` if none arrives until ``at``."""
    try:
        async with asyncio.timeout_at(at):
            return await queue.get()
    except TimeoutError:
        return _NOTHING


async def _require_admission(request: Request) -> None:
    """Raise the error of a new request with the same headers, if it would be refused."""
    try:
        authenticator = container_of(request).authenticator
        await authenticator.authenticate(credential_of(request), acting_for=request.headers.get("x-tenant-id"))
    except StoreUnavailable as error:
        _log.warning("stream_key_not_checked", code=error.code)  # the next check decides
