"""When an index of themes is rebuilt automatically: some quiet seconds after documents changed, according to the catalogue.

Each transaction that changes documents writes the time to the tenant's row. So it does not matter which process made the
change, or whether that process still runs. One process polls for tenants that are due.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agentic_rag_backend.communities.rebuilds.changes import Changes
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.telemetry.logs import get_logger

MAX_DELAYS = 10
"""Number of delays after which a tenant whose documents keep changing is served."""
ASKED_AGAIN_AFTER = timedelta(hours=1)
"""Pause before a second request for an index that is still stale: its rebuild failed, or was cancelled."""
LITTLE_AFTER = ASKED_AGAIN_AFTER
"""Age of a generation after which changes below the threshold also cause a rebuild.

It must not exceed the time after which a tenant is polled again without another change.
"""
_CHECKS_PER_DELAY = 10
"""Number of polls in one delay."""
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_PAGE = 100

_log = get_logger(__name__)


class ThemeSchedule(ABC):
    """Requests the rebuilds of an index of themes that are due.

    Args:
        request: requests a tenant's rebuild.
        delay_s: quiet seconds after which a rebuild is due.
        enabled: receives a tenant's flags; returns whether the tenant wants rebuilds.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        request: Callable[[TenantId], Awaitable[object]],
        *,
        delay_s: float,
        enabled: Callable[[Mapping[str, Any]], bool] = lambda flags: True,
    ) -> None:
        self._catalogue = catalogue
        self._request = request
        self._delay = timedelta(seconds=delay_s)
        self._enabled = enabled

    async def run(self, leads: Callable[[], Awaitable[bool]]) -> None:
        """Poll repeatedly, in the process that ``leads``; a failed poll is repeated at the next one."""
        pause_s = min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, self._delay.total_seconds() / _CHECKS_PER_DELAY))
        while True:
            await asyncio.sleep(pause_s)
            try:
                if await leads():
                    await self.request_due(datetime.now(UTC))
            except AgenticRagError as error:
                _log.warning("rebuilds_not_requested", by=type(self).__name__, code=error.code, reason=error.message)

    async def request_due(self, now: datetime) -> int:
        """Request every rebuild that is due. Return their number."""
        found = 0
        while True:
            due = await self.due(now, limit=_PAGE)
            for tenant in due:
                # Recorded first: if this process ends before the request, the tenant is due again, but later.
                await self.asked(tenant)
                if self._enabled(await self._catalogue.tenants.flags(tenant)) and await self.worth_it(tenant, now):
                    await self._request(tenant)
                    found += 1
            if len(due) < _PAGE:
                return found

    @abstractmethod
    async def due(self, now: datetime, *, limit: int) -> Sequence[TenantId]:
        """Return tenants whose documents changed and then were quiet, without a request since."""

    @abstractmethod
    async def asked(self, tenant: TenantId) -> None:
        """Record that a rebuild was requested now, automatically."""

    async def worth_it(self, tenant: TenantId, now: datetime) -> bool:
        """Return whether to request a rebuild that is due."""
        return True


class RebuildSchedule(ThemeSchedule):
    """Requests rebuilds of communities.

    Args:
        changes: with ``threshold``, measures how much of a graph changed.
        threshold: share of changed relationships below which a generation stays for an hour at least; 0: any change counts.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        request: Callable[[TenantId], Awaitable[object]],
        *,
        delay_s: float,
        enabled: Callable[[Mapping[str, Any]], bool] = lambda flags: True,
        changes: Changes | None = None,
        threshold: float = 0.0,
    ) -> None:
        super().__init__(catalogue, request, delay_s=delay_s, enabled=enabled)
        self._changes = changes
        self._threshold = threshold

    async def due(self, now: datetime, *, limit: int) -> Sequence[TenantId]:
        """Return the tenants that were quiet for the delay, or not quiet for `MAX_DELAYS` delays."""
        longest = now - MAX_DELAYS * self._delay
        quiet_since, asked_before = now - self._delay, now - ASKED_AGAIN_AFTER
        return await self._catalogue.communities.due(quiet_since, asked_before, stale_since=longest, limit=limit)

    async def asked(self, tenant: TenantId) -> None:
        """Record the request in the tenant's row."""
        await self._catalogue.communities.asked(tenant)

    async def worth_it(self, tenant: TenantId, now: datetime) -> bool:
        """Return whether enough has changed, or the generation is so old that any change suffices."""
        if self._changes is None or self._threshold <= 0:
            return True
        pointer = await self._catalogue.communities.pointer(tenant)
        if pointer.built_at is None or now - pointer.built_at >= LITTLE_AFTER:
            return True
        return await self._changes.share(tenant, pointer) >= self._threshold
