"""When a tree takes in what changed without being asked: some quiet seconds after documents did, for tenants that want it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.base import Catalogue

ASKED_AGAIN_AFTER = timedelta(hours=1)
"""A tree that is stale although it was asked to take in what changed: that failed, or was cancelled."""
_LOOKS = 10
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_PAGE = 100

_log = structlog.get_logger(__name__)


class TreeSchedule:
    """Asks for builds that are due. A tenant's first tree is only built when somebody asks for it.

    Args:
        request: asks for a tenant's build.
        delay_s: quiet seconds after which one is due.
        wanted: told a tenant's flags, says whether it wants that.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        request: Callable[[TenantId], Awaitable[object]],
        *,
        delay_s: float,
        wanted: Callable[[Mapping[str, Any]], bool],
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
                _log.warning("raptor_builds_not_requested", code=error.code, reason=error.message)

    async def look(self, now: datetime) -> int:
        """Ask for every build that is due, and return for how many."""
        found = 0
        while True:
            due = await self._catalogue.trees.due(now - self._delay, now - ASKED_AGAIN_AFTER, limit=_PAGE)
            for tenant in due:
                # First: should this process end in between, it is asked for again, but later.
                await self._catalogue.trees.asked(tenant)
                if self._wanted(await self._catalogue.tenants.flags(tenant)):
                    await self._request(tenant)
                    found += 1
            if len(due) < _PAGE:
                return found
