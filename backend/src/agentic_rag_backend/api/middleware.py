"""Middleware of every request: request id, time limit, metrics, one log event."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from agentic_rag_backend.api.doors.door_names import name_door
from agentic_rag_backend.api.responses.error_responses import crash, problem, rate_headers
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, RequestIncomplete, RequestTimeout
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.metrics import count_request
from agentic_rag_backend.telemetry.tracing import RunningSpan, bind_trace_id, is_recording, start_span

_log = get_logger(__name__)
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_PROBES = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Routes that load balancers and collectors call every few seconds."""
Challenge = Callable[[Scope], str | None]
_UNMATCHED = "unmatched"
"""Route label in the metrics for requests that match no route."""


class RequestContext:
    """Middleware in pure ASGI, so that streamed responses pass through unchanged.

    Args:
        timeout_s: maximum seconds of a request; `lift_timeout` removes the limit for one request.
        challenge: returns a further parameter of ``WWW-Authenticate`` for a request, or None.
    """

    def __init__(self, app: ASGIApp, *, timeout_s: float, challenge: Challenge | None = None) -> None:
        self._app = app
        self._timeout_s = timeout_s
        self._challenge = challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope).get("x-request-id"))
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        response = _Response(send, request_id, scope["method"], state)
        response.challenge = None if self._challenge is None else partial(self._challenge, scope)
        door = name_door(scope["path"])
        headers = dict(Headers(scope=scope)) if is_recording() else {}
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id, door=door),
            start_span(response.method, "server", headers=headers, request_id=request_id, door=door) as span,
        ):
            bind_trace_id(span)
            try:
                await self._serve(scope, receive, response)
            finally:
                if (admission := state.get("admission")) is not None:
                    admission.leave()
                _report(scope, response, door, span, tenant=state.get("tenant"))
                # The endpoint may have bound more values, such as the tenant. They end with the request.
                structlog.contextvars.clear_contextvars()

    async def _serve(self, scope: Scope, receive: Receive, response: _Response) -> None:
        now = asyncio.get_running_loop().time()
        deadline = scope["state"]["deadline"] = Deadline(now + self._timeout_s, f"{self._timeout_s:g} s (REQUEST_TIMEOUT_S)")
        try:
            # A stream that has begun has no limit here. Its model calls have their own.
            async with asyncio.timeout_at(deadline.at) as timeout:
                response.timeout = scope["state"]["timeout"] = timeout
                await self._app(scope, receive, response)
        except ClientDisconnect:
            pass  # the caller disconnected while it sent its body; `_report` counts it as status 0
        except TimeoutError:
            deadline = scope["state"]["deadline"]
            if scope["state"].get("reading_body", False):
                error: AgenticRagError = RequestIncomplete(f"the body took longer than {deadline.limit}")
            else:
                error = deadline.error()
            if not response.started:
                await problem(error, request_id=scope["state"]["request_id"])(scope, receive, response)
        except Exception as error:
            # Handled here, not in the framework's outermost layer, so that the response has its id and is counted.
            if response.started:
                raise
            await crash(error, request_id=scope["state"]["request_id"])(scope, receive, response)


@dataclass(frozen=True, slots=True)
class Deadline:
    """Time at which a request ends, on the loop's clock, and the limit that causes it."""

    at: float
    limit: str
    asked_for: bool = False
    """Whether the request set it. Then it applies to streams as well."""

    def error(self) -> RequestTimeout:
        """Return the error of a request that is not answered in time."""
        return RequestTimeout(f"the request took longer than {self.limit}")


def lift_timeout(scope: Scope) -> None:
    """Remove a request's time limit, for requests that transfer a whole tenant."""
    _reschedule(scope, None)


def shorten_timeout(scope: Scope, timeout_ms: int | None) -> None:
    """End a request ``timeout_ms`` after it began; None: keep its time.

    Raises:
        InvalidRequest: it exceeds the limit of all requests.
    """
    if timeout_ms is None:
        return
    most_ms = scope["app"].state.container.settings.request_timeout_s * 1000
    if timeout_ms > most_ms:
        raise InvalidRequest(f"timeout_ms must be at most {most_ms:g} (REQUEST_TIMEOUT_S); got {timeout_ms}", field="timeout_ms")
    before: Deadline = scope["state"]["deadline"]
    at = before.at - (most_ms - timeout_ms) / 1000
    scope["state"]["deadline"] = Deadline(at, f"{timeout_ms} ms (timeout_ms)", asked_for=True)
    _reschedule(scope, at)


def deadline_of(scope: Scope) -> Deadline | None:
    """Return the deadline of a stream; None if the request sets none."""
    deadline: Deadline = scope["state"]["deadline"]
    return deadline if deadline.asked_for else None


def _reschedule(scope: Scope, at: float | None) -> None:
    timeout: asyncio.Timeout = scope["state"]["timeout"]
    timeout.reschedule(at)


def _report(scope: Scope, response: _Response, door: str, span: RunningSpan, *, tenant: str | None) -> None:
    """Log and count a request; the status is 0 if the caller disconnected. Probes are logged as details."""
    route = getattr(scope.get("route"), "path", None)
    duration_s = time.perf_counter() - response.received_at
    template = _template(scope["path"], route)
    count_request(response.method, template, response.status, response.first_byte_s or duration_s, door=door)
    span.rename(f"{response.method} {template}")
    span.set(method=response.method, route=template, status=response.status, tenant=tenant)
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.fail(str(response.status))
    log = _log.debug if template in _PROBES and response.status < HTTPStatus.BAD_REQUEST else _log.info
    log(
        "request",
        method=response.method,
        path=scope["path"],
        status=response.status,
        duration_ms=round(duration_s * 1000, 1),
        **({} if tenant is None else {"tenant": tenant}),
    )


def _template(path: str, route: str | None) -> str:
    """Return the template of the whole path. The route's own template lacks the prefix, which has no parameters."""
    if route is None:
        return _UNMATCHED
    parts, templated = path.split("/"), route.split("/")
    return "/".join([*parts[: len(parts) - len(templated) + 1], *templated[1:]])


class _Response:
    """Records the status and start of a response, and adds the request id to it."""

    def __init__(self, send: Send, request_id: str, method: str, state: Mapping[str, Any]) -> None:
        self._send = send
        self._state = state
        self._request_id = request_id
        self.method = method
        """Method of the caller. `Methods` turns a HEAD into a GET."""
        self.received_at = time.perf_counter()
        self.first_byte_s: float | None = None
        """For an event stream, the seconds until it began. The time that it stays open says nothing about the server."""
        self.status = 0
        self.started = False
        self.timeout: asyncio.Timeout | None = None
        self.challenge: Callable[[], str | None] | None = None

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
            if self.status == HTTPStatus.UNAUTHORIZED and self.challenge is not None:
                _add_challenge(headers, self.challenge())
            if (admission := self._state.get("admission")) is not None:
                headers.update(rate_headers(admission.list_states()))
            if headers.get("content-type", "").startswith("text/event-stream") and self.timeout is not None:
                self.first_byte_s = time.perf_counter() - self.received_at
                self.timeout.reschedule(None)
        await self._send(message)


def _add_challenge(headers: MutableHeaders, parameter: str | None) -> None:
    """Add a parameter to ``WWW-Authenticate``."""
    challenge = headers.get("www-authenticate", "")
    if parameter is not None and challenge:
        headers["WWW-Authenticate"] = f"{challenge}{',' if '=' in challenge else ''} {parameter}"


def _request_id(header: str | None) -> str:
    """Return the caller's id if it is safe in a log and a header, otherwise a new one."""
    return header if header is not None and _SAFE_ID.match(header) else f"req_{uuid.uuid4().hex}"
