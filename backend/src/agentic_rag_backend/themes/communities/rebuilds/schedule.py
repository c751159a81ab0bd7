"""When an index of themes is rebuilt: some quiet seconds after documents changed, and after those in processing are finished.

Each transaction that changes documents writes the time to the tenant's row. So it does not matter which process made the
change, or whether that process still runs. One process polls for tenants that are due.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.jobs.coordination.slots import lend_places
from agentic_rag_backend.stores.catalogue.base import Catalogue, GenerationCatalogue
from agentic_rag_backend.stores.catalogue.jobs.job_catalogue import JobCatalogue
from agentic_rag_backend.stores.catalogue.jobs.outbox import SETTLING, Outbox
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import Changes

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
        max_wait_s: seconds since the first change after which a rebuild is due although documents change or are in processing.
        enabled: receives a tenant's flags; returns whether the tenant wants rebuilds.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        request: Callable[[TenantId], Awaitable[object]],
        *,
        delay_s: float,
        max_wait_s: float,
        enabled: Callable[[Mapping[str, Any]], bool] = lambda flags: True,
    ) -> None:
        self._catalogue = catalogue
        self._request = request
        self._delay = timedelta(seconds=delay_s)
        self._max_wait = timedelta(seconds=max_wait_s)
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
        quiet_since, stale_since, asked_before = now - self._delay, now - self._max_wait, now - ASKED_AGAIN_AFTER
        count = 0
        while True:
            due = await self.generations.due(quiet_since, asked_before, stale_since=stale_since, limit=_PAGE)
            for tenant in due:
                # Recorded first: if this process ends before the request, the tenant is due again, but later.
                await self.generations.asked(tenant)
                flags = await self._catalogue.tenants.flags(tenant)
                # Read again: a manual rebuild may have ended since.
                if self._enabled(flags) and await self.worth_it(tenant, now) and (await self.generations.pointer(tenant)).stale:
                    await self._request(tenant)
                    count += 1
            if len(due) < _PAGE:
                return count

    @property
    @abstractmethod
    def generations(self) -> GenerationCatalogue:
        """The generations that the rebuilds make."""

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
        max_wait_s: float,
        enabled: Callable[[Mapping[str, Any]], bool] = lambda flags: True,
        changes: Changes | None = None,
        threshold: float = 0.0,
    ) -> None:
        super().__init__(catalogue, request, delay_s=delay_s, max_wait_s=max_wait_s, enabled=enabled)
        self._changes = changes
        self._threshold = threshold

    @property
    def generations(self) -> GenerationCatalogue:
        """The generations of communities."""
        return self._catalogue.communities

    async def worth_it(self, tenant: TenantId, now: datetime) -> bool:
        """Return whether enough has changed, or the generation is so old that any change suffices."""
        if self._changes is None or self._threshold <= 0:
            return True
        pointer = await self._catalogue.communities.pointer(tenant)
        if pointer.built_at is None or now - pointer.built_at >= LITTLE_AFTER:
            return True
        return await self._changes.changed_share(tenant, pointer) >= self._threshold


LONGEST_S = 600.0
"""Maximum seconds that a rebuild waits."""
STALLED_S = 60.0
"""Seconds without the end of any document after which the rebuild stops waiting for the rest."""
SETTLED_WITHIN_S = 60.0
"""Maximum seconds that a rebuild waits for names. A document whose names cannot be settled must not stop rebuilds for ever."""
_POLL_INTERVAL_S = 0.25


Deliver = Callable[[TenantId, float], Awaitable[object]]
"""Delivers the outbox entries of a tenant, and waits for at most a number of seconds."""
Say = Callable[[int, int], Awaitable[None]]
"""Called with the number of finished documents and of all documents; an exception from it ends the wait."""


async def wait_for_documents(jobs: JobCatalogue, tenant: TenantId, say: Say) -> int:
    """Wait until all documents that are now queued or in processing have ended. Return how many are left out.

    Later uploads are not waited for.
    """
    loop = asyncio.get_running_loop()
    requested_at, began = datetime.now(UTC), loop.time()
    total = remaining = await jobs.pending_documents(tenant, queued_before=requested_at)
    if not total:
        return 0
    moved = began
    async with lend_places():
        while remaining and loop.time() - began < LONGEST_S and loop.time() - moved < STALLED_S:
            await say(total - remaining, total)
            await asyncio.sleep(_POLL_INTERVAL_S)
            before, remaining = remaining, await jobs.pending_documents(tenant, queued_before=requested_at)
            if remaining < before:
                moved = loop.time()
    return remaining


async def wait_for_names(outbox: Outbox, tenant: TenantId, deliver: Deliver) -> bool:
    """Settle the names that deletions, edits and failed commits recorded. Return whether every name is settled."""
    if not await outbox.holds(tenant, SETTLING):
        return True
    async with lend_places():
        await deliver(tenant, SETTLED_WITHIN_S)
    settled = not await outbox.holds(tenant, SETTLING)
    if not settled:
        _log.warning("rebuild_reads_unsettled_names", tenant=tenant.value)
    return settled
