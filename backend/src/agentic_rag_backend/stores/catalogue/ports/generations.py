"""The part that the ports of communities and of trees share: generations, of which one is current, and summaries.

A generation is built from a tenant's documents. It is written next to the current generation, and becomes current in one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.ports.leases import Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPointer:
    """The current generation (0: none yet), and whether documents changed since it was built."""

    generation: int
    stale: bool
    built_at: datetime | None = None
    built_from: int = 0
    """The tenant's state_version that the generation was built from."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Counts of the build, by name, and the summaries that it wrote and reused."""


class GenerationCatalogue(Protocol):
    """Which generation is current, and the summaries of its parts."""

    async def pointer(self, tenant: TenantId) -> GenerationPointer:
        """Return the current generation; generation 0 before the first build."""

    async def next_generation(self, tenant: TenantId) -> int:
        """Return a generation number that was never used."""

    async def publish(
        self, tenant: TenantId, generation: int, *, built_from: int, details: Mapping[str, Any], fence: Fence | None = None
    ) -> None:
        """Make ``generation`` current and raise ``state_version``; repeatable.

        ``built_from`` is the state_version at which the documents were read; take it before you read them. If documents
        changed since, the pointer is stale at once. Flags and generations do not make it stale. `Conflict` if a newer
        generation is current, or this one was never handed out; `StoreUnavailable` if the fence is not the newest.
        """

    async def asked(self, tenant: TenantId) -> None:
        """Record that the schedule asked for a build now."""

    async def save_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries; the same fingerprint, prompt and model again replaces."""

    async def drop_summaries(self, tenant: TenantId, *, keep: Sequence[str]) -> int:
        """Remove summaries whose fingerprint is not among ``keep``; return how many went."""
