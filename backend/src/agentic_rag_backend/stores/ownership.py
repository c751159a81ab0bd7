"""Who owns what a shared server holds: the mark that a deployment leaves there, and how another one's is refused.

Every store on a server keeps the id of the deployment that it belongs to. A store that an earlier release made has no id:
the first deployment whose catalogue knows one of its tenants adopts it, and an empty one belongs to the first that comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.deployment import Deployment
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError

OWNER, OWNED_BY = "deployment", "deployment_described"
"""Keys of the mark where a store keeps one as JSON."""

Knows = Callable[[Sequence[TenantId]], Awaitable[frozenset[TenantId]]]
"""Returns those tenants that the deployment's catalogue has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The deployment that opens a store, and its catalogue's knowledge of tenants."""

    deployment: Deployment
    knows: Knows

    def mark(self) -> dict[str, str]:
        """Return what is written into a store."""
        return {OWNER: self.deployment.id, OWNED_BY: f"{self.deployment.name!r} on {self.deployment.described}"}

    def owns(self, what: str, mark: Mapping[str, Any], *, way_out: str) -> bool:
        """Tell whether ``mark`` is this deployment's; False where there is none.

        Raises:
            ConfigurationError: it is another deployment's; the message names both and ``way_out``.
        """
        held = mark.get(OWNER)
        if held is not None and held != self.deployment.id:
            raise ConfigurationError(
                f"{what} belongs to another deployment, {held} ({mark.get(OWNED_BY, 'of unknown origin')}); "
                f"this one is {self.deployment}. {way_out}"
            )
        return held is not None

    async def require_adoptable(self, what: str, tenants: Sequence[TenantId], *, way_out: str) -> None:
        """Refuse a store without a mark that holds data of tenants none of which the catalogue knows.

        Raises:
            ConfigurationError: it does; the message names how many and ``way_out``.
        """
        if tenants and not await self.knows(tenants):
            raise ConfigurationError(
                f"{what} carries no deployment's id and holds data of {len(tenants)} tenants, none of which is in the catalogue "
                f"of this deployment, {self.deployment}: another deployment of an earlier release may use it. {way_out}"
            )
