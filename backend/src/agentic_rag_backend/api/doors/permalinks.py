"""Addresses at which a person can open what a result names."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from fastapi import Request

from agentic_rag_backend.api.doors.door_names import is_in_process


@dataclass(frozen=True, slots=True)
class Permalinks:
    """Addresses below the public address of the server. They contain ids and no secret.

    Args:
        root: address without a slash at its end.
    """

    root: str

    @classmethod
    def of(cls, request: Request) -> Permalinks:
        """Return the addresses of a server: below PUBLIC_URL, or else below the address that the request was sent to."""
        configured: str | None = request.app.state.container.settings.public_url
        return cls((configured or str(request.base_url)).rstrip("/"))

    def document(self, document_id: str) -> str:
        """Return the address of a document."""
        return f"{self.root}/console/#/d/{quote(document_id, safe='')}"

    def passage(self, document_id: str, chunk_id: str) -> str:
        """Return the address of a chunk in its document."""
        return f"{self.document(document_id)}?{urlencode({'chunk': chunk_id})}"


_links: ContextVar[Permalinks | None] = ContextVar("links", default=None)


def use_links(request: Request) -> None:
    """Let the views of a request name addresses. A request in process has an address only if PUBLIC_URL is set."""
    if request.app.state.container.settings.public_url or not is_in_process(request.scope):
        _links.set(Permalinks.of(request))


def passage_address(document_id: str, chunk_id: str) -> str | None:
    """Return the address of a chunk for the views of this request. None: it has none."""
    links = _links.get()
    return None if links is None else links.passage(document_id, chunk_id)
