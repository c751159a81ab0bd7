"""Limits on the tokens and the cost of calls of models, a day and a month.

A process compares the limits with what the tenant has used before each call. It reads the usage of all processes every
`READ_EVERY_S` seconds and adds its own calls at once. So a tenant can exceed a limit by the calls that run when it is reached,
and by what other processes used in the last `READ_EVERY_S` + `WRITTEN_EVERY_S` seconds.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial

from agentic_rag_backend.domain.quota import (
    CallerLimits,
    Limits,
    QuotaScope,
    QuotaUse,
    TenantAmounts,
    apply_defaults,
    refuse_use,
    show_number,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.fairness import Actor
from agentic_rag_backend.stores.catalogue.quota_catalogue import QuotaCatalogue
from agentic_rag_backend.telemetry.logs import get_logger

READ_EVERY_S = 2.0
_LOOKED_AT_EVERY_S = 1.0
"""Seconds between two looks of a waiting job."""
_MAX_ACCOUNTS = 1000
"""Tenants in memory from which on those whose usage was not read for a minute are removed."""
_FORGOTTEN_AFTER_S = 60.0

_log = get_logger(__name__)


@dataclass(slots=True)
class _Account:
    """What a tenant and one key have spent: the catalogue's sums, and the calls of this process since they were read."""

    sums: TenantAmounts | None = None
    read_at: float = -1e9
    tokens: int = 0
    cost_nanos: int = 0
    key_tokens: int = 0
    key_cost_nanos: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def list_uses(self, limits: CallerLimits) -> list[QuotaUse]:
        """Return the use of each limit."""
        if self.sums is None:
            return []
        of_tenant = self.sums.of_tenant.add_call(self.tokens, self.cost_nanos)
        of_key = self.sums.of_key.add_call(self.key_tokens, self.key_cost_nanos)
        return TenantAmounts(self.sums.day, of_tenant, of_key).list_uses(limits)


class ModelBudgets:
    """Admits calls of models.

    Args:
        defaults: limits of tenants that have no others.
        write_usage: writes the usage of this process to the catalogue.
        today: returns the current day in UTC.
    """

    def __init__(
        self,
        catalogue: QuotaCatalogue,
        defaults: Limits,
        write_usage: Callable[[], Awaitable[object]],
        *,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self._catalogue = catalogue
        self._defaults = defaults
        self._write_usage = write_usage
        self._clock = clock
        self._today = today
        self._accounts: dict[TenantId, dict[str | None, _Account]] = {}
        self._warned: set[tuple[str, ...]] = set()

    def note_call(self, tenant: TenantId, key_id: str | None, usage: Usage) -> None:
        """Add a call of this process to the accounts that are in use."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        for key, account in list(self._accounts.get(tenant, {}).items()):
            account.tokens += tokens
            account.cost_nanos += usage.cost_nanos
            if key is not None and key == key_id:
                account.key_tokens += tokens
                account.key_cost_nanos += usage.cost_nanos

    async def admit_call(self, actor: Actor) -> None:
        """Return if the actor may call a model now; a job waits. See `fairness.AdmitCall`."""
        if not actor.job and (actor.limits is None or not actor.limits.has_spending_limits):
            return
        while (use := await self._find_full_limit(actor)) is not None:
            if not actor.job:
                raise refuse_use(use, "a call of a model")
            await self._wait(actor, use)
        if actor.quota_wait is not None:
            actor.quota_wait.until = None

    async def _wait(self, actor: Actor, use: QuotaUse) -> None:
        """Wait a second. The queue stops a job that would wait longer than it may, and starts it again later."""
        wait = actor.quota_wait
        if wait is not None and wait.until is None:
            whose = "the key" if use.scope is QuotaScope.KEY else "the tenant"
            wait.reason = f"the quota {use.name} of {whose}, {show_number(use.limit)}, is used up"
            wait.until, wait.is_still_full = use.resets_at, partial(self._is_still_full, actor)
            _log.info("job_waits_for_quota", tenant=str(actor.tenant), quota=use.name.value, limit=use.limit, used=use.used)
        await asyncio.sleep(_LOOKED_AT_EVERY_S)

    async def _is_still_full(self, actor: Actor) -> bool:
        """Read the limits and the usage anew, and return whether a limit is used up."""
        if actor.tenant is not None:
            (await self._read_if_old(actor.tenant, actor.key_id)).read_at = -math.inf
        return await self._find_full_limit(actor) is not None

    async def _find_full_limit(self, actor: Actor) -> QuotaUse | None:
        """Return the first limit of which nothing is left."""
        if actor.tenant is None:
            return None
        account = await self._read_if_old(actor.tenant, actor.key_id)
        limits = actor.limits
        if account.sums is not None and (actor.job or limits is None):  # a job may have begun before the limits changed
            limits = CallerLimits(
                apply_defaults(account.sums.tenant_values, self._defaults), apply_defaults(account.sums.key_values)
            )
        if limits is None or not limits.has_spending_limits:
            return None
        uses = account.list_uses(limits)
        for use in uses:
            if use.warning:
                self._warn(actor.tenant, actor.key_id, use)
        return next((use for use in uses if use.is_full), None)

    async def _read_if_old(self, tenant: TenantId, key_id: str | None) -> _Account:
        accounts = self._accounts.get(tenant)
        if accounts is None:
            self._forget_accounts()
            accounts = self._accounts.setdefault(tenant, {})
        account = accounts.setdefault(key_id, _Account())
        if self._needs_read(account):
            async with account.lock:
                if self._needs_read(account):
                    await self._read(tenant, key_id, account)
        return account

    def _needs_read(self, account: _Account) -> bool:
        return self._clock() - account.read_at >= READ_EVERY_S or account.sums is None or account.sums.day != self._today()

    async def _read(self, tenant: TenantId, key_id: str | None, account: _Account) -> None:
        """Read the catalogue's sums. Calls that end meanwhile may be counted twice until the next time, but never lost."""
        before = (account.tokens, account.cost_nanos, account.key_tokens, account.key_cost_nanos)
        await self._write_usage()
        account.sums = await self._catalogue.spending(tenant, key_id, self._today())
        account.read_at = self._clock()
        account.tokens -= before[0]
        account.cost_nanos -= before[1]
        account.key_tokens -= before[2]
        account.key_cost_nanos -= before[3]

    def _warn(self, tenant: TenantId, key_id: str | None, use: QuotaUse) -> None:
        """Log once a period that most of a limit is used."""
        whose = key_id or "" if use.scope is QuotaScope.KEY else ""
        about = (str(tenant), whose, use.name.value, str(use.limit), str(use.resets_at))
        if about in self._warned:
            return
        if len(self._warned) >= _MAX_ACCOUNTS:
            self._warned.clear()
        self._warned.add(about)
        _log.warning(
            "quota_nearly_used", tenant=str(tenant), scope=use.scope.value, quota=use.name.value, limit=use.limit, used=use.used
        )

    def _forget_accounts(self) -> None:
        if len(self._accounts) < _MAX_ACCOUNTS:
            return
        now = self._clock()
        for tenant, accounts in list(self._accounts.items()):
            if all(now - account.read_at >= _FORGOTTEN_AFTER_S for account in accounts.values()):
                del self._accounts[tenant]
