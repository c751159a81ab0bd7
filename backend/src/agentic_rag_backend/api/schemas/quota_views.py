"""Quotas of tenants and keys, and their use."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Number, View, Whole
from agentic_rag_backend.domain.quota import MAX_LIMIT, QuotaName, QuotaScope, QuotaUse, QuotaValues
from agentic_rag_backend.domain.tenant import Tenant

_Count = Annotated[Whole, Field(ge=0, le=MAX_LIMIT)]
_Amount = Annotated[Number, Field(ge=0, le=MAX_LIMIT)]


class KeyQuotaBody(Body):
    """Limits of a key, within those of its tenant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"requests_per_minute": 60, "tokens_per_day": 100_000}]})

    requests_per_minute: _Count | None = Field(None, description="requests in each minute of the clock")
    concurrent_requests: _Count | None = Field(None, description="requests that run at once")
    tokens_per_day: _Count | None = Field(None, description="tokens that models read and write in a day (UTC)")
    tokens_per_month: _Count | None = Field(None, description="the same in a calendar month")
    cost_per_day: _Amount | None = Field(None, description="cost of models in a day, in the currency of MODEL_PRICES")
    cost_per_month: _Amount | None = Field(None, description="the same in a calendar month")

    def to_values(self) -> QuotaValues:
        """Return the limits that the body has, nulls included."""
        return {QuotaName(name): getattr(self, name) for name in self.model_fields_set}


class QuotaBody(KeyQuotaBody):
    """Limits of a tenant. null: no limit. A limit that is left out has its default, `QUOTA_…`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"requests_per_minute": 600, "documents": 1000, "chunks": None}]})

    documents: _Count | None = Field(None, description="documents that are not deleted")
    chunks: _Count | None = Field(None, description="chunks of all documents")
    bytes: _Count | None = Field(None, description="bytes of all uploaded files")
    jobs_waiting: _Count | None = Field(None, description="jobs that wait for their turn")


class QuotaUseView(View):
    """The use of a limit."""

    name: QuotaName
    scope: QuotaScope = Field(description="whether the limit is the tenant's or the key's")
    limit: int | float
    used: int | float
    resets_at: datetime | None = Field(description="time from which on nothing of it is used; null: it does not start again")
    warning: bool = Field(description="whether 80 % or more is used")

    @classmethod
    def list_of(cls, uses: Iterable[QuotaUse]) -> list[QuotaUseView]:
        """Return the views of the uses of limits."""
        return [cls.model_validate(use) for use in uses]


class QuotaView(View):
    """The limits that were set, by name, and the use of all limits that apply."""

    quota: dict[QuotaName, int | float | None] = Field(description="limits that were set; null: no limit")
    limits: list[QuotaUseView]

    @classmethod
    def of(cls, tenant: Tenant, uses: Iterable[QuotaUse]) -> QuotaView:
        """Return the view of a tenant's quota."""
        return cls(quota=dict(tenant.quota), limits=QuotaUseView.list_of(uses))
