"""The tenants port: tenants, their keys and their flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.tenant import ApiKey, Principal, Scope, Tenant, TenantId
from agentic_rag_backend.stores.catalogue.ports.pages import Page


class TenantDirectory(Protocol):
    """Tenants, their keys and flags. Its methods are not tenant-scoped. Only `tenancy` uses it."""

    async def create(self, name: str, *, tenant_id: TenantId | None = None) -> Tenant:
        """Create a tenant. `Conflict` if the name is taken; the message has the id of the tenant with this name."""

    async def tenant(self, tenant: TenantId) -> Tenant:
        """Return the tenant or raise `NotFound`."""

    async def tenant_by_name(self, name: str) -> Tenant | None:
        """Return the tenant of that name."""

    async def tenants(self, *, limit: int, cursor: str | None = None, newest_first: bool = False) -> Page[Tenant]:
        """List tenants in order of creation, or the newest first.

        In order of creation, a pass over all pages also reaches tenants that are created meanwhile.
        """

    async def known(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return the ids that are tenants of this catalogue."""

    async def removed(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return the ids of tenants that were removed from this catalogue."""

    async def mark_deleting(self, tenant: TenantId) -> None:
        """Refuse new requests of the tenant."""

    async def remove(self, tenant: TenantId) -> Mapping[str, int]:
        """Remove all rows of the tenant and record the removal. Return the counts by table."""

    async def add_key(
        self, tenant: TenantId, *, name: str, secret_sha256: str, scopes: Sequence[Scope], key_id: str | None = None
    ) -> ApiKey:
        """Record a key by the SHA-256 (hex) of its secret.

        ``key_id`` is its id, which only one of several processes can assign. `Conflict` if the id or the secret is in use,
        revoked
        keys included.
        """

    async def keys(self, tenant: TenantId) -> Sequence[ApiKey]:
        """List a tenant's keys, newest first, including revoked ones."""

    async def revoke_key(self, tenant: TenantId, key_id: str) -> None:
        """Revoke a key, from the next request on. `NotFound` if there is no such key."""

    async def authenticate(self, secret_sha256: str) -> Principal | None:
        """Return the principal of the key, with tenant, flags and state_version, in one statement. None for an unknown key."""

    async def flags(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the flags that the tenant has set."""

    async def set_flags(self, tenant: TenantId, flags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set flags (None removes a flag) and raise ``state_version``. Return the tenant's flags."""

    async def ontology(self, tenant: TenantId) -> Ontology | None:
        """Return the ontology that the tenant has set. None: it uses the deployment's."""

    async def set_ontology(self, tenant: TenantId, ontology: Ontology | None) -> None:
        """Set the tenant's ontology (None removes it) and raise ``state_version``. `NotFound` if there is no such tenant."""
