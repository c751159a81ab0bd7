"""Updates trees automatically some quiet seconds after documents changed, for tenants that enable it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agentic_rag_backend.communities.rebuilds.schedule import ASKED_AGAIN_AFTER, ThemeSchedule
from agentic_rag_backend.domain.tenant import TenantId


class TreeSchedule(ThemeSchedule):
    """Requests builds of trees. A tenant's first tree is built on request only."""

    async def due(self, now: datetime, *, limit: int) -> Sequence[TenantId]:
        """Return the tenants with a stale tree whose documents were quiet for the delay."""
        return await self._catalogue.trees.due(now - self._delay, now - ASKED_AGAIN_AFTER, limit=limit)

    async def asked(self, tenant: TenantId) -> None:
        """Record the request with the tree."""
        await self._catalogue.trees.asked(tenant)
