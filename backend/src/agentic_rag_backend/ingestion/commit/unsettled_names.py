"""Records names that may mean other entities after a write, for `settlement`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity.identities import Identities
from agentic_rag_backend.stores.catalogue.base import Outbox, Topic


@dataclass(frozen=True, slots=True)
class UnsettledNames:
    """Records names that may mean other entities after a write.

    Args:
        recorded: called after new entries, so that they are delivered soon.
    """

    identities: Identities
    outbox: Outbox
    recorded: Callable[[], None] = lambda: None

    async def record_names(self, tenant: TenantId, names: Iterable[str]) -> None:
        """Record normalised names. Call it before the write, or within a step that is repeated until it ends."""
        sorted_names = sorted(names)
        if sorted_names:
            await self.outbox.add_all(tenant, Topic.NAMES, sorted_names)
            self.recorded()

    async def before_removal(self, tenant: TenantId, document_id: str) -> None:
        """Record the names whose meaning may change when the knowledge of a document is removed."""
        await self.record_names(tenant, await self.identities.before_removal(tenant, document_id))
