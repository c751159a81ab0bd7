"""``mcp``: the tools of the Model Context Protocol over stdio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.cli.command import Session

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client


class _ClientApi:
    """The product's API through the client of the command line."""

    def __init__(self, client: Client) -> None:
        from agentic_rag_backend.api.doors.permalinks import Permalinks

        self._client = client
        # Local stores have no address. The links still name document and passage.
        self.links = Permalinks("agentic-rag:" if client.in_process else client.where.rstrip("/"))

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the ``data`` of a GET."""
        return await self._client.get(path, **parameters)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the ``data`` of a POST."""
        return await self._client.post(path, body)

    def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Yield the events of a POST."""
        return self._client.events(path, body)


async def serve_tools(session: Session) -> None:
    """Offer a tenant's documents as tools to a program that starts this command (Model Context Protocol, stdio)."""
    from agentic_rag_backend.api.doors.mcp_protocol.tools import build_server

    await build_server(_ClientApi(session.client)).run_stdio_async()
