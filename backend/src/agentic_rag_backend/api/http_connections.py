"""Limits of HTTP connections against slow clients, and against too many connections.

The server (uvicorn) limits idle connections only. `guarded_protocol` adds limits for:

- the time in which the head of a request arrives;
- the time in which the rest of a body arrives after its response;
- the time in which the client reads the response;
- the number of small chunks of a body;
- the number of connections per client and in total.

`requests.bodies` limits the time of a body that an endpoint reads, and answers with a problem.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentic_rag_backend.api.dependencies import client_of
from agentic_rag_backend.api.responses.error_responses import MEDIA_TYPE, problem_body, problem_headers
from agentic_rag_backend.errors import AgenticRagError, Overloaded, RequestIncomplete, TooManyConnections

_REFUSED_OPEN_S = 1.0
"""A refused connection is closed when its first bytes arrive. Closed earlier, they would reset it before the client reads."""
_CHUNKS_OF_ANY_SIZE = 1000
_CHUNK_BYTES = 64
"""Each chunk of a chunked body costs about 15 µs of the loop, so a megabyte in chunks of one byte costs 15 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits, described by the settings of the same names. 0 for ``per_client`` means no limit."""

    header_timeout_s: float
    body_timeout_s: float
    in_all: int
    per_client: int


class Connections:
    """Counts open connections and refuses those above the limits."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: Counter[str] = Counter()

    def enter(self, client: str) -> AgenticRagError | None:
        """Count a connection of ``client``, or return the error that refuses it."""
        limits = self.limits
        if self._open.total() >= limits.in_all:
            return Overloaded(f"the server has {limits.in_all} open connections (MAX_CONNECTIONS): try again", retry_after_s=1)
        if limits.per_client and self._open[client] >= limits.per_client:
            return TooManyConnections(
                f"your address has {limits.per_client} open connections (MAX_CONNECTIONS_PER_CLIENT): close some, or reuse them",
                retry_after_s=1,
            )
        self._open[client] += 1
        return None

    def leave(self, client: str) -> None:
        """Remove a connection from the count."""
        self._open[client] -= 1
        if self._open[client] <= 0:
            del self._open[client]


class _Parser(h11.Connection):
    """Parses requests like h11, and refuses bodies with too many small chunks."""

    complaint: str | None = None
    """Reason for the refusal of a request that is valid HTTP."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self._chunks = self._received = 0

    def next_event(self) -> Any:
        """Return the next part of a request.

        Raises:
            h11.RemoteProtocolError: it is not HTTP, or a body has too many small chunks.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._received = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._received += len(event.data)
            if self._chunks > _CHUNKS_OF_ANY_SIZE + self._received // _CHUNK_BYTES:
                self.complaint = (
                    f"a chunked body of more than {_CHUNKS_OF_ANY_SIZE} chunks must have at least {_CHUNK_BYTES} bytes in each, "
                    f"on average; got {self._chunks} chunks with {self._received} bytes"
                )
                raise h11.RemoteProtocolError(self.complaint)
        return event


class GuardedProtocol(H11Protocol):
    """A connection that is closed if its client takes longer than the limits allow."""

    guard: Connections
    """The server's connections; set by `guarded_protocol`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn: _Parser = _Parser()
        self._counted: str | None = None
        self._refused = False
        self._waiting: asyncio.TimerHandle | None = None
        """Timer of the wait for a head, or for the rest of an unread body."""
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and wait for its first request, or refuse it."""
        super().connection_made(transport)
        client = client_of(self.client[0] if self.client else "")
        refusal = self.guard.enter(client)
        if refusal is None:
            self._counted = client
            self._wait(self.guard.limits.header_timeout_s, self._head_late)
            return
        self._refused = True
        self.connections.discard(self)  # the server does not wait for it at its stop
        transport.write(encode_response(refusal))
        self._wait(_REFUSED_OPEN_S, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the count and stop its timers."""
        if self._counted is not None:
            self.guard.leave(self._counted)
            self._counted = None
        self._stop_waiting()
        if self._writing is not None:
            self._writing.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # after an error the server does not stop this timer

    def data_received(self, data: bytes) -> None:
        """Handle received bytes. The first byte of a request starts the timer of its head."""
        if self._refused:
            self.transport.close()
            return
        if self._waiting is None and self.conn.their_state is h11.IDLE:
            self._wait(self.guard.limits.header_timeout_s, self._head_late)
        super().data_received(data)
        self._judge()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed. If a response has begun, only close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(self.conn.complaint or msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Limit the time in which the client reads the response and sends the rest of its body."""
        super().on_response_complete()
        self._watch_writing()
        self._judge()

    def pause_writing(self) -> None:
        """Watch the connection: the client reads more slowly than the response is written."""
        super().pause_writing()
        self._watch_writing()

    def _judge(self) -> None:
        """Start or stop the timer of an incomplete head, or of an incomplete body whose response is complete."""
        if self.transport.is_closing():
            return
        theirs = self.conn.their_state
        if theirs is h11.IDLE:
            if not self.conn.trailing_data[0]:
                self._stop_waiting()  # between requests, where the server's keep-alive limit applies
            elif self._waiting is None:
                self._wait(self.guard.limits.header_timeout_s, self._head_late)
        elif theirs is h11.SEND_BODY and self.cycle is not None and self.cycle.response_complete:
            if self._waiting is None:
                self._wait(self.guard.limits.body_timeout_s, self.transport.close)
        else:
            self._stop_waiting()

    def _wait(self, seconds: float, late: Any) -> None:
        self._stop_waiting()
        self._waiting = self.loop.call_later(seconds, late)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _head_late(self) -> None:
        if self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            limit = f"{self.guard.limits.header_timeout_s:g} s (HEADER_TIMEOUT_S)"
            self.transport.write(encode_response(RequestIncomplete(f"the request's head was not complete within {limit}")))
        self.transport.close()

    def _watch_writing(self, before: int | None = None) -> None:
        """Abort the connection if the client has read nothing since the last check."""
        if self._writing is not None and before is None:
            return  # already watched
        self._writing = None
        buffered_bytes = self.transport.get_write_buffer_size()
        if not buffered_bytes:
            return
        if before is not None and buffered_bytes >= before:
            self.transport.abort()
            return
        self._writing = self.loop.call_later(self.guard.limits.body_timeout_s, self._watch_writing, buffered_bytes)


def guarded_protocol(limits: ConnectionLimits) -> type[GuardedProtocol]:
    """Return the protocol class of a server's connections."""
    return type("Connection", (GuardedProtocol,), {"guard": Connections(limits)})


def encode_response(error: AgenticRagError) -> bytes:
    """Return the bytes of a complete response that closes the connection."""
    body = json.dumps(problem_body(error, "req_none")).encode()
    headers = {
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "Connection": "close",
        **problem_headers(error),
    }
    lines = [
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
