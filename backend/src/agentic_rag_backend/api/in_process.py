"""Transport of HTTP clients that runs the application without a socket. Response bodies are streamed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import httpx2
from starlette.types import ASGIApp

from agentic_rag_backend.api.doors.door_names import IN_PROCESS

_CLIENT = ("127.0.0.1", 0)


class InProcessTransport(httpx2.AsyncBaseTransport):
    """ASGI transport with streaming. The transport of HTTP clients returns a response only when it is complete."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Run the application on ``request``. The response body is read while the application writes it."""
        exchange = _InProcessResponse(self._app, _make_scope(request), request.stream)
        status, headers = await exchange.start_application()
        return httpx2.Response(status, headers=headers, stream=exchange)


class _InProcessResponse(httpx2.AsyncByteStream):
    """One request and its response. Closing it early disconnects the client."""

    def __init__(self, app: ASGIApp, scope: dict[str, Any], body: Any) -> None:
        self._app = app
        self._scope = scope
        self._body: AsyncIterator[bytes] | None = aiter(body)
        self._is_complete = False
        self._disconnected = asyncio.Event()
        self._started: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = asyncio.get_running_loop().create_future()
        self._parts: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start_application(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Start the application and return status and headers."""
        self._task = asyncio.create_task(self._run_application())
        try:
            return await self._started
        except BaseException:
            await self.aclose()
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            part = await self._parts.get()
            if part is None:
                return
            if isinstance(part, BaseException):
                raise part
            yield part

    async def aclose(self) -> None:
        """Wait for the end of the application, or cancel it."""
        self._disconnected.set()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run_application(self) -> None:
        try:
            await self._app(self._scope, self._receive_message, self._send_message)
        except BaseException as error:
            # After a complete response the error was sent as a problem. It is raised only for a server's log.
            if not self._started.done():
                self._started.set_exception(error)
            else:
                self._parts.put_nowait(None if self._is_complete and isinstance(error, Exception) else error)
            if not isinstance(error, Exception):
                raise
        else:
            self._parts.put_nowait(None)

    async def _receive_message(self) -> MutableMapping[str, Any]:
        if self._body is not None:
            part = await anext(self._body, None)
            if part is None:
                self._body = None
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send_message(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._started.set_result((message["status"], list(message.get("headers", ()))))
        elif message["type"] == "http.response.body":
            if message.get("body"):
                self._parts.put_nowait(bytes(message["body"]))
            if not message.get("more_body", False):
                self._is_complete = True
                self._parts.put_nowait(None)


def _make_scope(request: httpx2.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (request.url.host, request.url.port),
        "client": _CLIENT,
        "extensions": {IN_PROCESS: {}},
    }
