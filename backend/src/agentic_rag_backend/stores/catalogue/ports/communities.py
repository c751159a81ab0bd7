"""The communities port: summaries of communities, and the current generation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.ports.generations import GenerationCatalogue


class CommunityCatalogue(GenerationCatalogue, Protocol):
    """Generations of communities. The pointer of a tenant with documents is stale before the first build."""

    async def summaries(
        self, tenant: TenantId, fingerprints: Sequence[str], *, prompt_version: str | None = None, model: str | None = None
    ) -> dict[str, CommunitySummary]:
        """Return the existing summaries of those fingerprints with that prompt and model.

        Without prompt and model, return the last written summary of each fingerprint.
        """

    async def summaries_resting_on(self, tenant: TenantId, document_id: str) -> list[CommunitySummary]:
        """Return the summaries with a part that passages of the document support, in the order of writing."""

    async def replace_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries, and remove all other summaries of their fingerprints."""
