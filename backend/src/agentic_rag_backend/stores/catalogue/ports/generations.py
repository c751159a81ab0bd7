"""The common part of the communities and trees ports: generations, one of them current, and summaries.

A generation is built from a tenant's documents. It is written next to the current generation and becomes current in one step.
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
    """Counts of the build by name, and the numbers of summaries written and reused."""

    @property
    def levels(self) -> frozenset[int]:
        """The levels of the generation. Empty before the first one, and for a build without this count."""
        return frozenset(int(level) for level in self.details.get("levels", {}))


class GenerationCatalogue(Protocol):
    """The current generation, and the summaries of its parts."""

    async def pointer(self, tenant: TenantId) -> GenerationPointer:
        """Return the current generation. Generation 0 before the first build."""

    async def next_generation(self, tenant: TenantId) -> int:
        """Return a generation number that was never used."""

    async def publish(
        self, tenant: TenantId, generation: int, *, built_from: int, details: Mapping[str, Any], fence: Fence | None = None
    ) -> None:
        """Make ``generation`` current and raise ``state_version``. Idempotent.

        ``built_from`` is the state_version from before the documents were read. If documents changed since, the pointer is stale
        at once. Flags and generations do not make it stale.

        Raises:
            Conflict: a newer generation is current, or this one was never allocated.
            StoreUnavailable: the fence is not the newest.
        """

    async def asked(self, tenant: TenantId) -> None:
        """Record that the schedule requested a build now."""

    async def due(self, quiet_since: datetime, asked_before: datetime, *, stale_since: datetime, limit: int) -> list[TenantId]:
        """Return active tenants whose generation is stale and due for a build, the longest stale first.

        It is due if no document is queued, in processing or being deleted and documents last changed at ``quiet_since`` or
        earlier, or if the generation has been stale since ``stale_since`` or earlier. Tenants with a queued or running build are
        left out, and tenants for which a build was requested both after the last change and after ``asked_before``.
        """

    async def save_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries. An existing summary of the same fingerprint, prompt and model is replaced."""

    async def drop_summaries(self, tenant: TenantId, *, keep: Sequence[str]) -> int:
        """Remove summaries whose fingerprint is not in ``keep``, and raise ``state_version``. Return their number.

        It is the last step of a rebuild, after the removal of what other stores held of older generations.
        """
