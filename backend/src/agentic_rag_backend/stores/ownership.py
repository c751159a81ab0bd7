"""Ownership of stores on shared servers: each store has a mark with its deployment's id, and other deployments are refused.

A store of an earlier release has no mark. The first deployment whose catalogue has one of its tenants adopts it. An empty store
belongs to the first deployment that opens it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.tenant import Deployment, TenantId
from agentic_rag_backend.errors import ConfigurationError

OWNER, OWNED_BY = "deployment", "deployment_described"
"""Keys of a mark that is stored as JSON."""

KnownTenants = Callable[[Sequence[TenantId]], Awaitable[frozenset[TenantId]]]
"""Returns the tenants that the deployment's catalogue has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The deployment that opens a store, with access to its catalogue's tenants."""

    deployment: Deployment
    known_tenants: KnownTenants

    def mark(self) -> dict[str, str]:
        """Return the mark to write into a store."""
        return {OWNER: self.deployment.id, OWNED_BY: f"{self.deployment.name!r} on {self.deployment.described}"}

    def owns(self, what: str, mark: Mapping[str, Any], *, way_out: str) -> bool:
        """Return whether ``mark`` belongs to this deployment. False if there is no mark.

        Raises:
            ConfigurationError: it belongs to another deployment. The message names both deployments and ``way_out``.
        """
        deployment_id = mark.get(OWNER)
        if deployment_id is not None and deployment_id != self.deployment.id:
            raise ConfigurationError(
                f"{what} belongs to another deployment, {deployment_id} ({mark.get(OWNED_BY, 'of unknown origin')}); "
                f"this one is {self.deployment}. {way_out}"
            )
        return deployment_id is not None

    async def require_adoptable(self, what: str, tenants: Sequence[TenantId], *, way_out: str) -> None:
        """Refuse a store without a mark that holds only tenants that the catalogue does not have.

        Raises:
            ConfigurationError: the message has the number of tenants and ``way_out``.
        """
        if tenants and not await self.known_tenants(tenants):
            raise ConfigurationError(
                f"{what} carries no deployment's id and holds data of {len(tenants)} tenants, none of which is in the catalogue "
                f"of this deployment, {self.deployment}: another deployment of an earlier release may use it. {way_out}"
            )
