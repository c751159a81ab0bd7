"""What every request passes through: an id, a bound on the body, a bound on time, one log line."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import MutableMapping
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentic_rag_backend.api.errors import problem
from agentic_rag_backend.errors import AgenticRagError, PayloadTooLarge, RequestTimeout

log = structlog.get_logger(__name__)
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_MULTIPART_FILES = 50
_IMPORT, _EXPORT = "/tenants/import", "/export"
_MULTIPART_SLACK = 1024 * 1024
"""Room for form fields and boundaries beside the files."""


class RequestContext:
    """Pure ASGI, so that streamed responses pass through untouched."""

    def __init__(self, app: ASGIApp, *, json_limit: int, upload_limit: int, timeout_s: float, import_limit: int = 0) -> None:
        self._app = app
        self._json_limit = json_limit
        self._upload_limit = upload_limit
        self._timeout_s = timeout_s
        self._import_limit = import_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope).get("x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        response = _Response(send, request_id)
        started = time.perf_counter()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            await self._serve(scope, receive, response)
        finally:
            structlog.contextvars.unbind_contextvars("request_id")
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=response.status,
                duration_ms=round((time.perf_counter() - started) * 1000, 1),
                request_id=request_id,
            )

    async def _serve(self, scope: Scope, receive: Receive, response: _Response) -> None:
        try:
            # A stream that has begun bounds itself: its model calls have their own limit, its heartbeats keep it open.
            async with asyncio.timeout(None if self._takes_its_time(scope) else self._timeout_s) as timeout:
                response.timeout = timeout
                await self._app(scope, self._bounded(scope, receive), response)
        except TimeoutError:
            await self._refuse(scope, receive, response, RequestTimeout(f"the request took longer than {self._timeout_s:g} s"))
        except PayloadTooLarge as error:
            await self._refuse(scope, receive, response, error)

    def _takes_its_time(self, scope: Scope) -> bool:
        """Tell whether a request moves a whole tenant: block by block, whatever time that takes."""
        path: str = scope["path"]
        return scope["method"] == "POST" and path.endswith((_IMPORT, _EXPORT))

    async def _refuse(self, scope: Scope, receive: Receive, response: _Response, error: AgenticRagError) -> None:
        if not response.started:
            await problem(error, request_id=scope["state"]["request_id"])(scope, receive, response)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Count the body while it arrives, so that neither a wrong nor a missing Content-Length gets past the limit."""
        headers = Headers(scope=scope)
        multipart = headers.get("content-type", "").startswith("multipart/form-data")
        limit = _MULTIPART_FILES * self._upload_limit + _MULTIPART_SLACK if multipart else self._json_limit
        if scope["path"].endswith(_IMPORT):
            limit = self._import_limit
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            raise PayloadTooLarge(f"the body may have at most {limit} bytes; got {declared}")
        received = 0

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > limit:
                    raise PayloadTooLarge(f"the body may have at most {limit} bytes; more arrived")
            return message

        return bounded


class _Response:
    """Remembers what was sent; puts the request's id on the response."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0
        self.started = False
        self.timeout: asyncio.Timeout | None = None

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Cache-Control"] = "no-store"
            if headers.get("content-type", "").startswith("text/event-stream") and self.timeout is not None:
                self.timeout.reschedule(None)
        await self._send(message)


def _request_id(given: str | None) -> str:
    """Take the caller's id if it is harmless in a log and a header, else make one."""
    return given if given is not None and _SAFE_ID.match(given) else f"req_{uuid.uuid4().hex}"
