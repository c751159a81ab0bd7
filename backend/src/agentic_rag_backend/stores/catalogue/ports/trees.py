"""The trees port: nodes of trees over passages, their summaries, and the current generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.stores.catalogue.ports.generations import GenerationCatalogue
from agentic_rag_backend.stores.catalogue.ports.leases import Fence

SummaryKey = tuple[str, str, str]
"""Fingerprint, prompt version and model."""


class TreeCatalogue(GenerationCatalogue, Protocol):
    """Generations of trees. The first tree is built on request, so generation 0 is not stale."""

    async def write_nodes(self, tenant: TenantId, generation: int, nodes: Sequence[TreeNode]) -> None:
        """Write nodes of a generation that is not current, in batches of any size. Idempotent.

        `Conflict` if the generation is current or was never allocated.
        """

    async def change(
        self,
        tenant: TenantId,
        generation: int,
        *,
        written: Sequence[TreeNode],
        removed: Sequence[str],
        built_from: int,
        details: Mapping[str, Any],
        fence: Fence | None = None,
    ) -> None:
        """Replace and remove nodes of the current generation, and raise ``state_version``, in one transaction.

        Raises:
            Conflict: another generation is current.
            StoreUnavailable: the fence is not the newest.
        """

    async def nodes(
        self,
        tenant: TenantId,
        generation: int,
        *,
        level: int | None = None,
        ids: Sequence[str] | None = None,
        point_ids: Sequence[str] | None = None,
    ) -> list[TreeNode]:
        """Return a generation's nodes by level, descending size and id, optionally of one level or of some ids or vectors."""

    async def above(self, tenant: TenantId, generation: int, child_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each of the children, the ids of the nodes that contain it. Children without a node are absent."""

    async def resting_on(self, tenant: TenantId, generation: int, document_id: str) -> list[str]:
        """Return the ids of the nodes of level 1 that contain passages of the document."""

    async def generations(self, tenant: TenantId) -> list[int]:
        """Return the generations that have nodes."""

    async def delete_generations(self, tenant: TenantId, *, keep: int) -> int:
        """Remove the nodes of all generations except ``keep``. Return their number."""

    async def summaries(self, tenant: TenantId, keys: Sequence[SummaryKey]) -> dict[SummaryKey, CommunitySummary]:
        """Return the summaries that exist."""
