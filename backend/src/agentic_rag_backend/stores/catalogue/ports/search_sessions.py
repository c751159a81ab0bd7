"""The port of search sessions: what agentic retrieval remembers between requests.

`testing.catalogue.search_sessions` checks the contract on every adapter.
"""

from __future__ import annotations

from typing import Protocol

from agentic_rag_backend.domain.search_session import SessionMemory
from agentic_rag_backend.domain.tenant import TenantId


class SearchSessions(Protocol):
    """``digest`` identifies a session of one API key. See `domain.search_session.session_digest`."""

    async def recall(self, tenant: TenantId, digest: str) -> SessionMemory | None:
        """Return the memory of a session. None: there is no such session, or it has expired."""

    async def remember(self, tenant: TenantId, digest: str, more: SessionMemory, *, kept_s: float) -> SessionMemory:
        """Add to the memory of a session, which begins with the first call. Return all of it.

        Concurrent calls lose nothing. Beyond `MAX_SESSIONS` of a tenant, the sessions that were not used for the longest time go.

        Args:
            kept_s: seconds from now after which the session expires.

        Raises:
            NotFound: the tenant does not exist.
        """

    async def sweep(self) -> int:
        """Remove expired sessions of all tenants, and return their number."""
