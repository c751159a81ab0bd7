"""Addresses at which a person can open what a result names."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from fastapi import Request

from agentic_rag_backend.api.dependencies import container_of


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
        configured = container_of(request).settings.public_url
        return cls((configured or str(request.base_url)).rstrip("/"))

    def document(self, document_id: str) -> str:
        """Return the address of a document."""
        return f"{self.root}/console/#/d/{quote(document_id, safe='')}"

    def passage(self, document_id: str, chunk_id: str) -> str:
        """Return the address of a chunk in its document."""
        return f"{self.document(document_id)}?{urlencode({'chunk': chunk_id})}"
