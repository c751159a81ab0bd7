"""The port of tenants, their keys and their flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from agentic_rag_backend.domain.tenant import ApiKey, Principal, Scope, Tenant, TenantId
from agentic_rag_backend.stores.catalogue.ports.pages import Page


class TenantDirectory(Protocol):
    """Tenants, their keys and flags; not tenant-scoped itself, used by `tenancy` only."""

    async def create(self, name: str, *, tenant_id: TenantId | None = None) -> Tenant:
        """Create a tenant; `Conflict` if the name is taken."""

    async def tenant(self, tenant: TenantId) -> Tenant:
        """Return the tenant or raise `NotFound`."""

    async def tenant_by_name(self, name: str) -> Tenant | None:
        """Return the tenant of that name."""

    async def tenants(self, *, limit: int, cursor: str | None = None) -> Page[Tenant]:
        """List tenants by creation."""

    async def known(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return those of ``ids`` that are tenants here."""

    async def removed(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return those of ``ids`` whose removal is on record."""

    async def mark_deleting(self, tenant: TenantId) -> None:
        """Refuse further requests of the tenant."""

    async def remove(self, tenant: TenantId) -> Mapping[str, int]:
        """Remove every row of the tenant in every table and record its removal; return the counts by table."""

    async def add_key(
        self, tenant: TenantId, *, name: str, secret_sha256: str, scopes: Sequence[Scope], key_id: str | None = None
    ) -> ApiKey:
        """Record a key by its secret's SHA-256 (hex). ``key_id``: its id, which only one of several processes can give;
        `Conflict` if it or the secret is in use, revoked keys included."""

    async def keys(self, tenant: TenantId) -> Sequence[ApiKey]:
        """List a tenant's keys, revoked ones included."""

    async def revoke_key(self, tenant: TenantId, key_id: str) -> None:
        """Make a key useless from the next request on, or raise `NotFound`."""

    async def authenticate(self, secret_sha256: str) -> Principal | None:
        """Return the principal of the key, with tenant, flags and state_version, in one statement. None for an unknown key."""

    async def flags(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the flags the tenant has set."""

    async def set_flags(self, tenant: TenantId, flags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set flags (None removes one) and raise ``state_version``; return those now set."""
