"""Quotas of tenants and keys: their limits, the admission of requests, and reports on the use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agentic_rag_backend.domain.quota import (
    ALL_KEYS,
    MAX_LIMIT,
    NO_LIMITS,
    OF_KEYS,
    VOLUMES,
    CallerLimits,
    Limits,
    QuotaName,
    QuotaScope,
    QuotaUse,
    QuotaValues,
    RateState,
    apply_defaults,
)
from agentic_rag_backend.domain.tenant import Principal, Tenant, TenantId
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.tenancy.rates import LEASED_SHARE, LEASED_SHARE_ALONE, Bucket, RequestPlaces, RequestRates

LIMITS_KEPT_S = 2.0
"""Seconds for which jobs use limits that were read. Requests read them anew."""
_MAX_TENANTS = 1000
_REREAD_S = 1.0

EndWaits = Callable[[TenantId], Awaitable[None]]
"""Lets jobs of a tenant start that wait for a quota."""


@dataclass(slots=True)
class Admission:
    """A request that was admitted. `leave` must be called at its end."""

    rates: RequestRates
    places: RequestPlaces
    buckets_counted: list[Bucket] = field(default_factory=list)
    """Buckets in which the request counts, or that refused it."""
    entered: list[Bucket] = field(default_factory=list)

    def list_states(self) -> list[RateState]:
        """Return the states of the windows, the key's first."""
        return [state for bucket in self.buckets_counted if (state := self.rates.find_state(bucket)) is not None]

    def leave(self) -> None:
        """Free the places of the request."""
        while self.entered:
            self.places.leave(self.entered.pop())


class QuotaService:
    """Admits requests, and reads and sets limits.

    Args:
        defaults: limits of tenants that have no other_places.
        process: unique name of this process. None: it is the only one.
        end_waits: called when a quota has changed.
    """

    def __init__(self, catalogue: Catalogue, defaults: Limits, *, process: str | None, end_waits: EndWaits) -> None:
        share = LEASED_SHARE_ALONE if process is None else LEASED_SHARE
        self.defaults = defaults
        self.rates = RequestRates(catalogue.quotas, leased_share=share)
        self.places = RequestPlaces(catalogue.quotas, process)
        self._catalogue = catalogue
        self._end_waits = end_waits
        self._limits_read: dict[TenantId, tuple[float, CallerLimits | None]] = {}

    def limits_of(self, caller: Principal) -> CallerLimits | None:
        """Return the limits of a caller. None: there are none. An operator has none, also when it acts for a tenant."""
        if caller.operator or not (self.defaults or caller.tenant.quota or caller.key_quota):
            return None
        return CallerLimits(apply_defaults(caller.tenant.quota, self.defaults), apply_defaults(caller.key_quota))

    async def limits_of_jobs(self, tenant: TenantId) -> CallerLimits | None:
        """Return the limits of a tenant's jobs. While the catalogue does not answer, this waits."""
        read_at, limits = self._limits_read.get(tenant, (-LIMITS_KEPT_S, None))
        while time.monotonic() - read_at >= LIMITS_KEPT_S:
            try:
                values = (await self._catalogue.tenants.tenant(tenant)).quota
            except NotFound:
                return None
            except StoreUnavailable:
                await asyncio.sleep(_REREAD_S)
                continue
            of_tenant = apply_defaults(values, self.defaults)
            read_at, limits = time.monotonic(), CallerLimits(of_tenant) if of_tenant else None
            if len(self._limits_read) >= _MAX_TENANTS:
                self._limits_read.clear()
            self._limits_read[tenant] = (read_at, limits)
        return limits

    def begin_admission(self) -> Admission:
        """Return an admission that has no places yet."""
        return Admission(self.rates, self.places)

    async def admit_request(self, admission: Admission, caller: Principal, limits: CallerLimits) -> None:
        """Count a request, and take its places.

        Raises:
            QuotaExceeded: a limit of the tenant or of the key is reached. Then the request counts nowhere.
        """
        buckets = (
            (Bucket(caller.tenant.id.whole, caller.key_id, QuotaScope.KEY), limits.of_key),
            (Bucket(caller.tenant.id.whole, ALL_KEYS, QuotaScope.TENANT), limits.of_tenant),
        )
        accepted: list[Bucket] = []
        try:
            for bucket, of_bucket in buckets:
                if (limit := of_bucket.get(QuotaName.REQUESTS_PER_MINUTE)) is not None:
                    admission.buckets_counted.append(bucket)
                    await self.rates.take_request(bucket, int(limit))
                    accepted.append(bucket)
            for bucket, of_bucket in buckets:
                if (limit := of_bucket.get(QuotaName.CONCURRENT_REQUESTS)) is not None:
                    await self.places.enter(bucket, int(limit))
                    admission.entered.append(bucket)
        except AgenticRagError:
            for bucket in accepted:
                self.rates.return_request(bucket)
            admission.leave()
            raise

    async def set_tenant_quota(self, tenant: TenantId, values: QuotaValues) -> Tenant:
        """Replace the limits of a tenant. Requests use them at once, running jobs within `READ_EVERY_S`.

        Raises:
            NotFound: the tenant does not exist.
            InvalidRequest: a limit is negative or too large.
        """
        _check_values(values)
        await self._catalogue.quotas.set_tenant_quota(tenant, values)
        self._limits_read.pop(tenant, None)
        await self._end_waits(tenant)
        return await self._catalogue.tenants.tenant(tenant)

    async def set_key_quota(self, tenant: TenantId, key_id: str, values: QuotaValues) -> None:
        """Replace the limits of a key.

        Raises:
            NotFound: the tenant has no such key.
            InvalidRequest: a key cannot have such a limit, or a limit is negative or too large.
        """
        for name in values:
            if name not in OF_KEYS:
                raise InvalidRequest(f"{name} can be limited for a tenant only; a key can have {', '.join(OF_KEYS)}", field=name)
        _check_values(values)
        await self._catalogue.quotas.set_key_quota(tenant, key_id, values)
        await self._end_waits(tenant)

    async def list_uses(self, tenant: Tenant, key_id: str | None = None, key_values: QuotaValues | None = None) -> list[QuotaUse]:
        """Return the use of each limit of a tenant, and of one of its keys."""
        limits = CallerLimits(apply_defaults(tenant.quota, self.defaults), apply_defaults(key_values or {}))
        uses: list[QuotaUse] = []
        for scope, of_scope in ((QuotaScope.KEY, limits.of_key), (QuotaScope.TENANT, limits.of_tenant)):
            bucket = Bucket(tenant.id, key_id or ALL_KEYS if scope is QuotaScope.KEY else ALL_KEYS, scope)
            uses += await self._list_request_uses(bucket, of_scope)
        uses += await self._list_stocks(tenant.id, limits.of_tenant)
        if limits.has_spending_limits:
            spending = await self._catalogue.quotas.spending(tenant.id, key_id, datetime.now(UTC).date())
            uses += spending.list_uses(limits)
        order = list(QuotaName)
        return sorted(uses, key=lambda use: (use.scope is QuotaScope.KEY, order.index(use.name)))

    async def _list_request_uses(self, bucket: Bucket, limits: Limits) -> Sequence[QuotaUse]:
        rate, places = (limits.get(name) for name in (QuotaName.REQUESTS_PER_MINUTE, QuotaName.CONCURRENT_REQUESTS))
        if rate is None and places is None:
            return ()
        requests, places_in_use, left_s = await self._catalogue.quotas.counter(bucket.tenant, bucket.key_id)
        uses = []
        if rate is not None:
            state = self.rates.find_state(bucket)
            used = requests if state is None else state.limit - state.remaining
            resets_at = datetime.now(UTC) + timedelta(seconds=left_s)
            uses.append(QuotaUse(QuotaName.REQUESTS_PER_MINUTE, bucket.scope, rate, used, resets_at))
        if places is not None:
            running = max(places_in_use, self.places.count_requests(bucket))
            uses.append(QuotaUse(QuotaName.CONCURRENT_REQUESTS, bucket.scope, places, running))
        return uses

    async def _list_stocks(self, tenant: TenantId, limits: Limits = NO_LIMITS) -> Sequence[QuotaUse]:
        names = [name for name in (*VOLUMES, QuotaName.JOBS_WAITING) if name in limits]
        if not names:
            return ()
        volume, waiting = await self._catalogue.quotas.stocks(tenant)
        amounts = (volume.documents, volume.chunks, volume.size_bytes, waiting)
        used = dict(zip((*VOLUMES, QuotaName.JOBS_WAITING), amounts, strict=True))
        return [QuotaUse(name, QuotaScope.TENANT, limits[name], used[name]) for name in names]


def _check_values(values: QuotaValues) -> None:
    for name, value in values.items():
        if value is not None and not 0 <= value <= MAX_LIMIT:
            raise InvalidRequest(f"{name} must be from 0 to {MAX_LIMIT}, or null for no limit; got {value}", field=name)
