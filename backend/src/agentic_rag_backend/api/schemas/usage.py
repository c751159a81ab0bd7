"""Usage of tenants: model calls, tokens, cost and requests."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Annotated

from fastapi import Query
from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.quota_views import QuotaUseView
from agentic_rag_backend.domain.quota import QuotaUse
from agentic_rag_backend.domain.usage import NANOS, Usage
from agentic_rag_backend.domain.usage_report import DEFAULT_DAYS, MAX_DAYS, TenantUsage, UsageCount, UsageGroup, UsageReport

StartDay = Annotated[
    datetime.date | None,
    Query(alias="from", description=f"first day, in UTC; default: {DEFAULT_DAYS} days with `to` as the last"),
]
EndDay = Annotated[datetime.date | None, Query(alias="to", description=f"last day; at most {MAX_DAYS} days; default: today")]


class CostView(View):
    """Model calls with their tokens and their cost."""

    calls: int = Field(description="requests to language, embedding and reranking models, including retries")
    failed_calls: int = Field(description="failed requests among them")
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = Field(
        description="in units of the currency of MODEL_PRICES, at the price when the call was made; null if the price of a call "
        "is unknown"
    )
    known_cost: float = Field(description="cost of the calls whose price is known")
    unpriced_calls: int = Field(description="calls of models without a price, and replies without a number of tokens")

    @staticmethod
    def values_of(usage: Usage) -> dict[str, float | None]:
        """Return the values of these fields."""
        names = ("calls", "failed_calls", "prompt_tokens", "completion_tokens", "cost", "unpriced_calls")
        return {**{name: getattr(usage, name) for name in names}, "known_cost": usage.cost_nanos / NANOS}


class UsageCountView(CostView):
    """Model calls and requests."""

    requests: int = Field(description="HTTP requests with a key of the tenant, or of the operator for the tenant")

    @staticmethod
    def values_of_count(count: UsageCount) -> dict[str, float | None]:
        """Return the values of these fields."""
        return {**CostView.values_of(count.usage), "requests": count.requests}


class UsageGroupView(UsageCountView):
    """Usage of one group."""

    group: str = Field(
        description="day (such as 2026-05-01), stage, model or id of a key; empty: by key, automatic work; by stage and by "
        "model, the requests"
    )


class UsageReportView(UsageCountView):
    """Usage of a tenant in a period, and what its documents occupy now."""

    start: datetime.date = Field(alias="from", description="first day, in UTC")
    end: datetime.date = Field(alias="to")
    by: UsageGroup
    currency: str
    groups: list[UsageGroupView]
    documents: int
    chunks: int
    bytes: int = Field(description="size of the documents' originals")
    quota: list[QuotaUseView] = Field(description="the use of each limit of the tenant and of the key, now")

    @classmethod
    def of(cls, report: UsageReport, uses: Iterable[QuotaUse]) -> UsageReportView:
        """Return the view of a report."""
        values = {
            "from": report.period.start,
            "to": report.period.end,
            "by": report.by,
            "currency": report.currency,
            "groups": [
                UsageGroupView.model_validate({"group": name, **UsageCountView.values_of_count(count)})
                for name, count in report.groups.items()
            ],
            "documents": report.volume.documents,
            "chunks": report.volume.chunks,
            "bytes": report.volume.size_bytes,
            "quota": QuotaUseView.list_of(uses),
        }
        return cls.model_validate({**values, **cls.values_of_count(report.total)})


class TenantUsageView(UsageCountView):
    """Usage of one of the operator's tenants."""

    tenant_id: str
    name: str

    @classmethod
    def of(cls, tenant_usage: TenantUsage) -> TenantUsageView:
        """Return the view of a tenant's usage."""
        tenant, count = tenant_usage.tenant, tenant_usage.count
        return cls.model_validate({"tenant_id": tenant.id.value, "name": tenant.name, **cls.values_of_count(count)})
