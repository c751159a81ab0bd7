"""Tenants and keys, for the operator."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Switch, View, Whole
from agentic_rag_backend.api.schemas.quota_views import QuotaUseView
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.quota import QuotaName, QuotaUse
from agentic_rag_backend.domain.size_limits import MAX_NAME_CHARACTERS
from agentic_rag_backend.domain.tenant import MAX_LABEL_CHARACTERS, MAX_LABELS, ApiKey, Scope, Tenant, TenantChange, TenantState
from agentic_rag_backend.retrieval.options.filters import AsOf
from agentic_rag_backend.tenancy.service import LONGEST_OVERLAP


class NewTenant(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "acme"}]})

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARACTERS)


class TenantPatch(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"labels": {"plan": "trial"}, "suspended": True}]})

    name: str | None = Field(None, min_length=1, max_length=MAX_NAME_CHARACTERS)
    suspended: Switch | None = Field(
        None, description="true: the tenant's keys are refused and its jobs wait; false: the tenant is active again"
    )
    labels: dict[str, str] | None = Field(
        None, description=f"replace the tenant's labels; at most {MAX_LABELS}, each of at most {MAX_LABEL_CHARACTERS} characters"
    )

    def to_change(self) -> TenantChange:
        """Return the new values."""
        return TenantChange(name=self.name, labels=self.labels, suspended=self.suspended)


class TenantView(View):
    id: str
    name: str
    state: TenantState
    labels: dict[str, str]
    quota: dict[QuotaName, int | float | None] = Field(description="limits that the operator set, by name; null: no limit")
    created_at: datetime

    @classmethod
    def of(cls, tenant: Tenant) -> TenantView:
        """Return the view of a tenant."""
        return cls(
            id=tenant.id.value,
            name=tenant.name,
            state=tenant.state,
            labels=dict(tenant.labels),
            quota=dict(tenant.quota),
            created_at=tenant.created_at,
        )


class OwnTenantView(TenantView):
    """The caller's tenant, with the use of its limits and of the limits of the key."""

    limits: list[QuotaUseView]

    @classmethod
    def with_limits(cls, tenant: Tenant, uses: Iterable[QuotaUse]) -> OwnTenantView:
        """Return the view of the caller's tenant."""
        return cls(**TenantView.of(tenant).model_dump(), limits=QuotaUseView.list_of(uses))


class NewKey(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ci", "scopes": ["read"]}]})

    name: str = Field(
        "default", min_length=1, max_length=MAX_NAME_CHARACTERS, description="unique among the tenant's keys that work"
    )
    scopes: list[Scope] = Field(default_factory=lambda: [Scope.READ], min_length=1, max_length=3)
    expires_at: AsOf = Field(
        None,
        description="time from which on the key is refused; a year, month or day means its end; default zone: UTC; "
        "null: it does not expire",
    )
    filter: dict[str, Any] | None = Field(
        None,
        min_length=1,
        description="the key reads only documents that pass this filter, and may only have the scope `read`; "
        "null: it reads all documents; see docs/guide/restricted-keys.md",
        examples=[{"team": ["sales"]}],
    )


class KeyRotation(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"overlap_s": 86_400}]})

    overlap_s: Whole = Field(
        3600,
        ge=0,
        le=int(LONGEST_OVERLAP.total_seconds()),
        description="seconds for which the replaced key still works; 0: it ends immediately",
    )


class KeyView(View):
    id: str
    name: str
    prefix: str | None = Field(description="beginning of the secret; null: an earlier release issued the key")
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="exact to a minute")
    replaced_by: str | None = Field(description="id of the key that a rotation issued instead")
    revoked_at: datetime | None
    filter: dict[str, Any] | None = Field(description="documents that the key may read; null: all")
    quota: dict[QuotaName, int | float | None] = Field(description="limits of the key, by name; null: no limit")
    key: str | None = Field(None, description="the secret, only in the response that issues the key")

    @classmethod
    def of(cls, key: ApiKey, secret: str | None = None) -> KeyView:
        """Return the view of a key, with ``secret`` if it was just issued."""
        return cls(
            id=key.id,
            name=key.name,
            prefix=key.prefix,
            scopes=sorted(key.scopes),
            created_at=key.created_at,
            expires_at=key.expires_at,
            last_used_at=key.last_used_at,
            replaced_by=key.replaced_by,
            revoked_at=key.revoked_at,
            filter=None if key.filter is None else dict(key.filter),
            quota=dict(key.quota),
            key=secret,
        )


class DeletedTenant(View):
    """Receipt with the removed numbers by store and table. The state is ``deleting`` while data is still being removed."""

    id: str
    state: Literal["deleted", "deleting"]
    removed: dict[str, int]


class ImportAccepted(View):
    """A queued import. The job belongs to the tenant."""

    tenant_id: str
    job_id: str
    state: JobState
