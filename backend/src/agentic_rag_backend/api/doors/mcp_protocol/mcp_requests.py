"""`/mcp`: the protocol over HTTP, without sessions. The key of the request decides the tenant.

A response is JSON, or a stream of events if the client asks for progress. A client that disconnects cancels its call.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentic_rag_backend.api.dependencies import Requires, container_of
from agentic_rag_backend.api.doors.door_names import call_as
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.api.requests.bodies import bound_body
from agentic_rag_backend.api.responses.error_responses import problem, request_id_of
from agentic_rag_backend.domain.identity_provider import is_loopback_name
from agentic_rag_backend.domain.tenant import Scope as KeyScope
from agentic_rag_backend.errors import AgenticRagError, Forbidden, error_class

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_CREDENTIALS = ("authorization", "x-api-key", "x-tenant-id")
_MAX_BODY_BYTES = 1024 * 1024  # the SDK parses bodies on the event loop
_PROGRESS, _EVENTS = b'"progressToken"', "text/event-stream"
_admit = Requires(KeyScope.READ)


@dataclass(frozen=True, slots=True)
class _Caller:
    """The credentials of a request, and the addresses below which its links are."""

    headers: Mapping[str, str]
    links: Permalinks


_caller: ContextVar[_Caller] = ContextVar("mcp_caller")


_ROUTE = SimpleNamespace(path="/mcp")
"""The route in metrics. The framework records its own kind of routes only."""


class McpEndpoint:
    """The ASGI application at `/mcp`.

    No request belongs to a session, so any process behind one address can answer it.

    Args:
        api: the application, whose routes the tools call.
        base_path: beginning of its addresses.
    """

    def __init__(self, api: ASGIApp, base_path: str) -> None:
        self._api = api
        self._base_path = base_path
        self._server: MCPServer | None = None
        self._importing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Without a valid key, the response is 401."""
        scope["route"] = _ROUTE
        request = Request(scope, receive)
        try:
            _require_known_origin(request)
            await _admit.admit(request)
            body = await self._read_body(request)
        except AgenticRagError as error:
            await problem(error, request_id=request_id_of(request))(scope, receive, send)
            return
        headers = {name: value for name in _CREDENTIALS if (value := request.headers.get(name)) is not None}
        token = _caller.set(_Caller(headers, Permalinks.of(request)))
        try:
            server = await self._open_server()
            async with anyio.create_task_group() as tasks:
                disconnected = anyio.Event()
                tasks.start_soon(_watch_connection, receive, disconnected, tasks.cancel_scope)
                await self._handle(server, scope, _replay(body, disconnected), send, with_progress=_PROGRESS in body)
                tasks.cancel_scope.cancel()
        finally:
            _caller.reset(token)

    @staticmethod
    async def _read_body(request: Request) -> bytes:
        bounded = bound_body(request, _MAX_BODY_BYTES, container_of(request).settings.body_timeout_s)
        return await Request(request.scope, bounded).body()

    @staticmethod
    async def _handle(server: MCPServer, scope: Scope, receive: Receive, send: Send, *, with_progress: bool) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(
            server._lowlevel_server,  # the SDK gives managers to whole applications only
            stateless=True,
            json_response=not (with_progress and _EVENTS in Request(scope).headers.get("accept", "")),
            max_request_body_size=_MAX_BODY_BYTES,
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _open_server(self) -> MCPServer:
        """Return the server. The SDK is imported at the first request, in a thread, because that takes long."""
        if self._server is None:
            async with self._importing:
                if self._server is None:
                    self._server = await asyncio.to_thread(self._build_server)
        return self._server

    def _build_server(self) -> MCPServer:
        import mcp.server.streamable_http_manager  # noqa: F401

        from agentic_rag_backend.api.doors.mcp_protocol.tools import build_server

        return build_server(_ApplicationApi(self._api, self._base_path))


def _require_known_origin(request: Request) -> None:
    """Refuse pages of other sites. Without this, the name of another site that leads to this machine could reach its server.

    Programs send no origin.
    """
    origin = request.headers.get("origin")
    settings = container_of(request).settings
    if origin is None or {origin, "*"} & set(settings.allowed_origins):
        return
    try:
        is_allowed = is_loopback_name(urlsplit(origin).hostname or "") or origin == _origin_of(settings.public_url or "")
    except ValueError:
        is_allowed = False
    if is_allowed:
        return
    raise Forbidden(f"pages of {origin[:200]!r} may not call this server: name the origin in CORS_ORIGINS")


def _origin_of(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


async def _watch_connection(receive: Receive, disconnected: anyio.Event, call: anyio.CancelScope) -> None:
    """Cancel a call when its client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
    disconnected.set()
    call.cancel()


def _replay(body: bytes, disconnected: anyio.Event) -> Receive:
    """Return ``receive`` for a body that was read."""
    unread = [body]

    async def receive() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        await disconnected.wait()
        return {"type": "http.disconnect"}

    return receive


class _ApplicationApi:
    """The product's API, called in process with the credentials of the request that calls a tool."""

    def __init__(self, application: ASGIApp, base_path: str) -> None:
        import httpx2

        from agentic_rag_backend.api.in_process import InProcessTransport

        transport = InProcessTransport(application)
        self._http = httpx2.AsyncClient(transport=transport, base_url=f"http://in-process{base_path}", timeout=None)

    @property
    def links(self) -> Permalinks:
        """Addresses of passages."""
        return _caller.get().links

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the ``data`` of a GET."""
        return await self._request("GET", path, params={name: value for name, value in parameters.items() if value is not None})

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the ``data`` of a POST."""
        return await self._request("POST", path, json=dict(body or {}))

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Yield the events of a POST."""
        request = self._http.build_request("POST", path, json=dict(body), headers=dict(_caller.get().headers))
        with call_as("mcp"):
            response = await self._http.send(request, stream=True)
        try:
            if not response.is_success:
                await response.aread()
                raise _error_of(response.json())
            async for name, data in _parse_events(response.aiter_lines()):
                if name == "error":
                    raise _error_of(data)
                yield name, data
        finally:
            await response.aclose()

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        with call_as("mcp"):
            response = await self._http.request(method, path, headers=dict(_caller.get().headers), **options)
        body = response.json()
        if response.is_success:
            return body["data"]
        raise _error_of(body)


def _error_of(problem: Mapping[str, Any]) -> AgenticRagError:
    return (error_class(problem["code"]) or AgenticRagError)(problem["detail"])


async def _parse_events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield name and data of each event of the product's own streams, whose data is one line."""
    name = ""
    async for line in lines:
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            yield name, json.loads(line.removeprefix("data:"))
