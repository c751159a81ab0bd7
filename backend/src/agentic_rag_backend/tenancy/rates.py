"""Limits on requests: how many a minute, and how many at once, over all processes.

A process takes a share of a window's requests in one statement, and counts in memory until the share is used. So most requests
touch no row. Shares that are left when a window ends are lost: with `LEASED_SHARE`, eight processes lose less than 1 %.

A process holds a place for each request that runs. It returns places that are free for `IDLE_S`, so that requests which follow
one another write nothing. Places of a killed process are free after `PLACES_VALID_S`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agentic_rag_backend.domain.quota import QuotaName, QuotaScope, QuotaUse, RateState, refuse_use
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.quota_catalogue import PLACES_VALID_S, QuotaCatalogue
from agentic_rag_backend.telemetry.logs import get_logger

LEASED_SHARE = 1 / 1000
"""Share of a window's requests that a process takes at once, if there may be other processes."""
LEASED_SHARE_ALONE = 1 / 10
"""The same for a sole process. A restart loses it."""
IDLE_S = 0.1
"""Seconds after which a process returns places that it does not use."""
_PATIENCE_S = 2 * IDLE_S
"""Seconds until a process that got no place asks again: other processes may have returned some."""
_RENEWED_EVERY_S = PLACES_VALID_S / 3
_PLACE_RETRY_S = 1.0
_MAX_BUCKETS = 1000
"""Counters in memory from which on those of past windows are removed."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Bucket:
    """What requests are counted for: a tenant, or one of its keys."""

    tenant: TenantId
    key_id: str
    scope: QuotaScope


@dataclass(slots=True)
class _Lease:
    """Requests of a window that this process may still send. Times are on the monotonic clock."""

    limit: int = 0
    available: int = 0
    total: int = 0
    exhausted: bool = False
    ends_at: float = 0.0
    waiting: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def covers(self, limit: int, now: float) -> bool:
        return self.limit == limit and now < self.ends_at


class RequestRates:
    """Counts requests against limits a minute.

    Args:
        leased_share: share of a limit that is taken from the catalogue at once.
    """

    def __init__(self, catalogue: QuotaCatalogue, *, leased_share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalogue = catalogue
        self._share = leased_share
        self._clock = clock
        self._leases: dict[Bucket, _Lease] = {}

    async def take_request(self, bucket: Bucket, limit: int) -> RateState:
        """Count a request, and return the state of its window.

        Raises:
            QuotaExceeded: the limit is reached.
        """
        lease = self._leases.get(bucket)
        if lease is None:
            self._forget_past_windows()
            lease = self._leases.setdefault(bucket, _Lease())
        if not self._knows_result(lease, limit):
            lease.waiting += 1
            try:
                async with lease.lock:
                    if not self._knows_result(lease, limit):
                        await self._renew_lease(bucket, lease, limit)
            finally:
                lease.waiting -= 1
        state = self._describe(bucket, lease)
        if lease.available <= 0:
            resets_at = datetime.now(UTC) + timedelta(seconds=state.left_s)
            use = QuotaUse(QuotaName.REQUESTS_PER_MINUTE, bucket.scope, limit, lease.total, resets_at)
            raise refuse_use(use, "one more request", retry_after_s=max(1.0, state.left_s))
        lease.available -= 1
        return self._describe(bucket, lease)

    def return_request(self, bucket: Bucket) -> None:
        """Give back a request that another limit refused."""
        lease = self._leases.get(bucket)
        if lease is not None and self._clock() < lease.ends_at:
            lease.available += 1

    def find_state(self, bucket: Bucket) -> RateState | None:
        """Return the state of a window. None: this process counts nothing in it."""
        lease = self._leases.get(bucket)
        return self._describe(bucket, lease) if lease is not None and self._clock() < lease.ends_at else None

    def _knows_result(self, lease: _Lease, limit: int) -> bool:
        """Return whether this process knows without the catalogue if a request may be sent."""
        return lease.covers(limit, self._clock()) and (lease.available > 0 or lease.exhausted)

    async def _renew_lease(self, bucket: Bucket, lease: _Lease, limit: int) -> None:
        asked_at = self._clock()
        unused = lease.available if lease.covers(limit, asked_at) else 0
        count = max(lease.waiting, int(limit * self._share), 1)
        grant = await self._catalogue.take_requests(bucket.tenant, bucket.key_id, count=count, limit=limit)
        lease.limit, lease.available, lease.total = limit, unused + grant.granted, grant.total
        lease.exhausted = grant.granted < count
        lease.ends_at = asked_at + grant.left_s  # before the catalogue's window ends, because the answer took time

    def _describe(self, bucket: Bucket, lease: _Lease) -> RateState:
        remaining = max(0, lease.limit - lease.total) + max(0, lease.available)
        return RateState(bucket.scope, lease.limit, remaining, max(0.0, lease.ends_at - self._clock()))

    def _forget_past_windows(self) -> None:
        if len(self._leases) < _MAX_BUCKETS:
            return
        now = self._clock()
        self._leases = {bucket: lease for bucket, lease in self._leases.items() if lease.waiting or now < lease.ends_at}


@dataclass(slots=True)
class _Places:
    """Places of one bucket that this process has, and those of them that requests use."""

    reserved: int = 0
    running: int = 0
    limit: int = 0
    waiting: int = 0
    free_since: float = 0.0
    renewed_at: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class RequestPlaces:
    """Counts requests that run at once.

    Args:
        process: unique name of this process. None: there is no other process, so nothing is written.
    """

    def __init__(self, catalogue: QuotaCatalogue, process: str | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalogue = catalogue
        self._process = process
        self._clock = clock
        self._places: dict[Bucket, _Places] = {}

    async def enter(self, bucket: Bucket, limit: int) -> None:
        """Take a place for a request. The caller must call `leave` at its end.

        Raises:
            QuotaExceeded: all places are taken.
        """
        places = self._places.setdefault(bucket, _Places())
        if places.limit != limit:
            places.reserved, places.limit = min(places.reserved, limit), limit
        if places.running >= places.reserved:
            places.waiting += 1
            try:
                async with places.lock:
                    await self._extend(bucket, places, limit)
            finally:
                places.waiting -= 1
        if places.running >= places.reserved:
            use = QuotaUse(QuotaName.CONCURRENT_REQUESTS, bucket.scope, limit, limit)
            raise refuse_use(use, "one more request at a time", retry_after_s=_PLACE_RETRY_S)
        places.running += 1

    def leave(self, bucket: Bucket) -> None:
        """Free the place of a request that has ended."""
        places = self._places[bucket]
        places.running -= 1
        places.free_since = self._clock()
        if self._process is None and not places.running and not places.waiting:
            del self._places[bucket]

    def count_requests(self, bucket: Bucket) -> int:
        """Return the requests that run in this process."""
        places = self._places.get(bucket)
        return 0 if places is None else places.running

    async def run(self) -> None:
        """Return free places and renew the other_places, until cancelled."""
        while True:
            await asyncio.sleep(IDLE_S)
            await self.return_places()

    async def return_places(self) -> None:
        """Return places that have been free for `IDLE_S`, and renew those that are in use. A failure is repeated."""
        now = self._clock()
        for bucket, places in list(self._places.items()):
            is_idle = places.reserved > places.running and now - places.free_since >= IDLE_S
            is_old = places.running > 0 and now - places.renewed_at >= _RENEWED_EVERY_S
            if self._process is None or not (is_idle or is_old) or places.lock.locked():
                continue
            async with places.lock:
                places.reserved = places.running  # first: a request that comes meanwhile must not use a place that is returned
                try:
                    await self._ask(self._process, bucket, places, places.running)
                except AgenticRagError as error:
                    _log.warning("request_places_not_returned", code=error.code, reason=error.message)
                    return
            if not (places.running or places.reserved or places.waiting):
                del self._places[bucket]

    async def _extend(self, bucket: Bucket, places: _Places, limit: int) -> None:
        """Take a place from the catalogue for each request that waits."""
        if self._process is None:
            places.reserved = limit
            return
        if places.running < places.reserved:
            return
        await self._ask(self._process, bucket, places, places.running + places.waiting)
        if places.running >= places.reserved:
            await asyncio.sleep(_PATIENCE_S)
            await self._ask(self._process, bucket, places, places.running + places.waiting)

    async def _ask(self, process: str, bucket: Bucket, places: _Places, count: int) -> None:
        """Set the places of this process in the catalogue."""
        granted = await self._catalogue.hold_places(
            bucket.tenant, bucket.key_id, process, count=count, running=places.running, limit=places.limit
        )
        places.reserved = max(granted, places.running)
        places.renewed_at = self._clock()
