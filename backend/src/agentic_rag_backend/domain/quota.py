"""Quotas: the limits of a tenant and of a key, and their use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from agentic_rag_backend.domain.usage import NANOS
from agentic_rag_backend.errors import QuotaExceeded

WINDOW_S = 60
"""Length of the windows in which requests are counted."""
WARNING_SHARE = 0.8
"""Share of a limit from which on its use is warned about."""
VOLUME_RETRY_S = 3600.0
"""Seconds to wait before the repetition of a request that a limit without a time refused: something must be deleted first."""
MAX_LIMIT = 10**15
ALL_KEYS = ""
"""Id of the key of counters that count all requests of a tenant."""


class QuotaName(StrEnum):
    """What a quota limits. Costs are in units of the currency of MODEL_PRICES."""

    REQUESTS_PER_MINUTE = "requests_per_minute"
    CONCURRENT_REQUESTS = "concurrent_requests"
    DOCUMENTS = "documents"
    CHUNKS = "chunks"
    BYTES = "bytes"
    JOBS_WAITING = "jobs_waiting"
    TOKENS_PER_DAY = "tokens_per_day"
    TOKENS_PER_MONTH = "tokens_per_month"
    COST_PER_DAY = "cost_per_day"
    COST_PER_MONTH = "cost_per_month"


class QuotaScope(StrEnum):
    """Whose limit it is: of the whole tenant, or of one key."""

    TENANT = "tenant"
    KEY = "key"


SPENDING = (QuotaName.TOKENS_PER_DAY, QuotaName.TOKENS_PER_MONTH, QuotaName.COST_PER_DAY, QuotaName.COST_PER_MONTH)
"""Limits on calls of models."""
VOLUMES = (QuotaName.DOCUMENTS, QuotaName.CHUNKS, QuotaName.BYTES)
"""Limits on what is stored."""
OF_KEYS = (QuotaName.REQUESTS_PER_MINUTE, QuotaName.CONCURRENT_REQUESTS, *SPENDING)
"""Limits that a key can have."""
_MONTHLY = (QuotaName.TOKENS_PER_MONTH, QuotaName.COST_PER_MONTH)

QuotaValues = Mapping[QuotaName, float | None]
"""Limits that were set; None: no limit, whatever the default is."""
Limits = Mapping[QuotaName, float]
"""Limits that apply."""
NO_LIMITS: Limits = MappingProxyType({})
_NAMES = frozenset(name.value for name in QuotaName)


def read_values(stored: Mapping[str, float | None] | None) -> QuotaValues:
    """Return the limits in a column. Names of a later release are left out."""
    return {QuotaName(name): value for name, value in (stored or {}).items() if name in _NAMES}


def store_values(values: QuotaValues) -> dict[str, float | None] | None:
    """Return limits in the form of a column. None: none were set."""
    return {name.value: value for name, value in values.items()} or None


def apply_defaults(values: QuotaValues, defaults: Limits = NO_LIMITS) -> Limits:
    """Return the limits that apply where ``values`` were set."""
    return {name: limit for name, limit in {**defaults, **values}.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """The limits of a tenant and of one of its keys."""

    of_tenant: Limits = field(default_factory=dict)
    of_key: Limits = field(default_factory=dict)

    def list_limits(self, name: QuotaName) -> list[tuple[QuotaScope, float]]:
        """Return the limits of this name, the key's first."""
        sources = ((QuotaScope.KEY, self.of_key), (QuotaScope.TENANT, self.of_tenant))
        return [(scope, limits[name]) for scope, limits in sources if name in limits]

    @property
    def has_spending_limits(self) -> bool:
        """Whether calls of models are limited."""
        return any(name in limits for limits in (self.of_tenant, self.of_key) for name in SPENDING)


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """The use of one limit. ``resets_at`` None: it does not start again by itself."""

    name: QuotaName
    scope: QuotaScope
    limit: float
    used: float
    resets_at: datetime | None = None

    @property
    def warning(self) -> bool:
        """Whether most of the limit is used."""
        return self.used >= WARNING_SHARE * self.limit

    @property
    def is_full(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.limit


@dataclass(frozen=True, slots=True)
class SpentAmounts:
    """Tokens and cost of calls of models in a day and in its month."""

    day_tokens: int = 0
    day_cost_nanos: int = 0
    month_tokens: int = 0
    month_cost_nanos: int = 0

    def amount_of(self, name: QuotaName) -> float:
        """Return the use of a limit."""
        amounts: Mapping[QuotaName, float] = {
            QuotaName.TOKENS_PER_DAY: self.day_tokens,
            QuotaName.COST_PER_DAY: self.day_cost_nanos / NANOS,
            QuotaName.TOKENS_PER_MONTH: self.month_tokens,
            QuotaName.COST_PER_MONTH: self.month_cost_nanos / NANOS,
        }
        return amounts[name]

    def add_call(self, tokens: int, cost_nanos: int) -> SpentAmounts:
        """Return the sums with one more call."""
        return SpentAmounts(
            self.day_tokens + tokens,
            self.day_cost_nanos + cost_nanos,
            self.month_tokens + tokens,
            self.month_cost_nanos + cost_nanos,
        )


@dataclass(frozen=True, slots=True)
class TenantAmounts:
    """SpentAmounts of a tenant and of one of its keys, and the limits that were set for them."""

    day: date
    of_tenant: SpentAmounts = field(default_factory=SpentAmounts)
    of_key: SpentAmounts = field(default_factory=SpentAmounts)
    tenant_values: QuotaValues = field(default_factory=dict)
    key_values: QuotaValues = field(default_factory=dict)

    def list_uses(self, limits: CallerLimits) -> list[QuotaUse]:
        """Return the use of each limit on calls of models, the key's first."""
        spending = {QuotaScope.KEY: self.of_key, QuotaScope.TENANT: self.of_tenant}
        return [
            QuotaUse(name, scope, limit, spending[scope].amount_of(name), period_end(name, self.day))
            for name in SPENDING
            for scope, limit in limits.list_limits(name)
        ]


def period_end(name: QuotaName, day: date) -> datetime:
    """Return the moment at which a day or its month ends, in UTC."""
    following = day + timedelta(days=1)
    if name in _MONTHLY:
        following = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    return datetime(following.year, following.month, following.day, tzinfo=UTC)


def refuse_use(use: QuotaUse, reason: str, *, retry_after_s: float | None = None) -> QuotaExceeded:
    """Return the error of a request that a limit refuses.

    Args:
        reason: what the request needs, such as "one more document".
        retry_after_s: seconds until it may succeed. None: until the limit starts again.
    """
    whose = "the key" if use.scope is QuotaScope.KEY else "the tenant"
    again = "" if use.resets_at is None else f"; it starts again at {use.resets_at:%Y-%m-%dT%H:%M:%SZ}"
    if retry_after_s is None:
        retry_after_s = VOLUME_RETRY_S
        if use.resets_at is not None:
            retry_after_s = max(1.0, (use.resets_at - datetime.now(UTC)).total_seconds())
    about = {
        "name": use.name.value,
        "scope": use.scope.value,
        "limit": use.limit,
        "value": use.used,
        "resets_at": None if use.resets_at is None else f"{use.resets_at:%Y-%m-%dT%H:%M:%SZ}",
    }
    return QuotaExceeded(
        f"{reason} would exceed the quota {use.name} of {whose}: the limit is {show_number(use.limit)}, "
        f"and {show_number(use.used)} are used{again}",
        # The last member is named in the draft on RateLimit headers.
        {"quota": about, "violated-policies": [name_policy(use.scope, use.name)]},
        retry_after_s=retry_after_s,
    )


def name_policy(scope: QuotaScope, name: QuotaName) -> str:
    """Return the name of a limit in headers."""
    return f"{scope.value}-{name.value}"


def show_number(amount: float) -> str:
    """Return a limit or an amount for a message."""
    return f"{int(amount)}" if amount == int(amount) else f"{amount:.6g}"


@dataclass(frozen=True, slots=True)
class RateState:
    """A window of requests: its limit, an estimate of what is left, and the seconds until it ends."""

    scope: QuotaScope
    limit: int
    remaining: int
    left_s: float
