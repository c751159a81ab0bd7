"""When communities are rebuilt without being asked for: some quiet seconds after documents changed, found in the catalogue.

The times stand with the tenants, written by what changes documents, so it does not matter which process did that, or whether
it still is; one process looks for those that are due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.base import Catalogue

MOST_DELAYS = 10
"""A tenant that never is quiet is served after this many delays."""
ASKED_AGAIN_AFTER = timedelta(hours=1)
"""Communities that are stale although a rebuild was asked for: it failed, or was cancelled."""
_LOOKS = 10
"""Looks in one delay."""
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_PAGE = 100

_log = structlog.get_logger(__name__)


class RebuildSchedule:
    """Asks for rebuilds that are due.

    Args:
        request: asks for a tenant's rebuild.
        delay_s: quiet seconds after which one is due.
        wanted: told a tenant's flags, says whether it wants that.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        request: Callable[[TenantId], Awaitable[object]],
        *,
        delay_s: float,
        wanted: Callable[[Mapping[str, Any]], bool] = lambda flags: True,
    ) -> None:
        self._catalogue = catalogue
        self._request = request
        self._delay = timedelta(seconds=delay_s)
        self._wanted = wanted

    async def run(self, leads: Callable[[], Awaitable[bool]]) -> None:
        """Look again and again, in the process that ``leads``; what fails is tried at the next look."""
        pause_s = min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, self._delay.total_seconds() / _LOOKS))
        while True:
            await asyncio.sleep(pause_s)
            try:
                if await leads():
                    await self.look(datetime.now(UTC))
            except AgenticRagError as error:
                _log.warning("community_rebuilds_not_requested", code=error.code, reason=error.message)

    async def look(self, now: datetime) -> int:
        """Ask for every rebuild that is due, and return for how many."""
        directory = self._catalogue.tenants
        found = 0
        while True:
            due = await directory.rebuilds_due(
                now - self._delay, now - MOST_DELAYS * self._delay, now - ASKED_AGAIN_AFTER, limit=_PAGE
            )
            for tenant in due:
                # First: should this process end in between, it is asked for again, but later.
                await self._catalogue.communities.rebuild_asked(tenant)
                if self._wanted(await directory.flags(tenant)):
                    await self._request(tenant)
                    found += 1
            if len(due) < _PAGE:
                return found
