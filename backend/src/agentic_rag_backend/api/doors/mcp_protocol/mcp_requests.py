"""`/mcp`: the protocol over HTTP, without sessions. The key of the request decides the tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agentic_rag_backend.api.dependencies import Requires
from agentic_rag_backend.api.doors.door_names import call_as
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.api.responses.error_responses import problem, request_id_of
from agentic_rag_backend.domain.tenant import Scope as KeyScope
from agentic_rag_backend.errors import AgenticRagError, error_class

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_CREDENTIALS = ("authorization", "x-api-key", "x-tenant-id")
_MAX_BODY_BYTES = 1024 * 1024  # the SDK parses bodies on the event loop
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
            await _admit.admit(request)
        except AgenticRagError as error:
            await problem(error, request_id=request_id_of(request))(scope, receive, send)
            return
        headers = {name: value for name in _CREDENTIALS if (value := request.headers.get(name)) is not None}
        token = _caller.set(_Caller(headers, Permalinks.of(request)))
        try:
            await self._handle(await self._open_server(), scope, receive, send)
        finally:
            _caller.reset(token)

    @staticmethod
    async def _handle(server: MCPServer, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(
            server._lowlevel_server,  # the SDK gives managers to whole applications only
            stateless=True,
            json_response=True,
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


class _ApplicationApi:
    """The product's API, called in process with the credentials of the request that calls a tool."""

    def __init__(self, application: ASGIApp, base_path: str) -> None:
        import httpx2

        transport = httpx2.ASGITransport(app=application, raise_app_exceptions=False)
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

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        # In a task of its own: the middleware binds and clears context variables, which belong to one request.
        request = self._http.request(method, path, headers=dict(_caller.get().headers), **options)
        with call_as("mcp"):
            response = await asyncio.create_task(request)
        body = response.json()
        if response.is_success:
            return body["data"]
        raise (error_class(body["code"]) or AgenticRagError)(body["detail"])
