"""Reports on the usage of a tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum

from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import InvalidRequest

MAX_DAYS = 366
DEFAULT_DAYS = 30


class UsageGroup(StrEnum):
    """What the usage of a report is divided by."""

    DAY = "day"
    STAGE = "stage"
    MODEL = "model"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class UsageCount:
    """Model calls with tokens and cost, and HTTP requests."""

    usage: Usage = field(default_factory=Usage)
    requests: int = 0

    def __add__(self, count: UsageCount) -> UsageCount:
        return UsageCount(self.usage + count.usage, self.requests + count.requests)


@dataclass(frozen=True, slots=True)
class Period:
    """Days in UTC, both ends included.

    Raises:
        InvalidRequest: it ends before it begins, or has more than `MAX_DAYS` days.
    """

    start: date
    end: date

    def __post_init__(self) -> None:
        days = (self.end - self.start).days + 1
        if not 1 <= days <= MAX_DAYS:
            raise InvalidRequest(f"a period has 1 to {MAX_DAYS} days; {self.start} to {self.end} has {days}", field="from")

    @classmethod
    def of_request(cls, start: date | None, end: date | None, today: date) -> Period:
        """Return the period of a request. The default of its end is today, and its default length is `DEFAULT_DAYS`."""
        end = end or max(today, start or today)
        return cls(start or end - timedelta(days=min(DEFAULT_DAYS - 1, (end - date.min).days)), end)


@dataclass(frozen=True, slots=True)
class StoredVolume:
    """Documents of a tenant with their visible chunks and the bytes of their originals."""

    documents: int
    chunks: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """Usage of a tenant in a period, in total and by group, and what the tenant has now.

    Args:
        groups: by day (ISO 8601), stage, model or id of a key. The empty name has work that no request began, and, by stage or
            model, the requests.
    """

    period: Period
    by: UsageGroup
    currency: str
    total: UsageCount
    groups: Mapping[str, UsageCount]
    volume: StoredVolume


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """Usage of one tenant, for the operator."""

    tenant: Tenant
    count: UsageCount
