"""The port of trees over passages: nodes, their summaries, and which generation is current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.stores.catalogue.liveness import Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePointer:
    """The current generation (0: none yet), and whether documents changed since ``built_from``, a state_version."""

    generation: int
    stale: bool
    built_at: datetime | None = None
    built_from: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


SummaryKey = tuple[str, str, str]
"""Fingerprint, prompt version and model."""


class TreeCatalogue(Protocol):
    """Trees and what is written about their nodes. Summaries have the shape of communities'."""

    async def pointer(self, tenant: TenantId) -> TreePointer:
        """Return the current generation; generation 0 before the first build."""

    async def next_generation(self, tenant: TenantId) -> int:
        """Return a generation number that was never used."""

    async def write_nodes(self, tenant: TenantId, generation: int, nodes: Sequence[TreeNode]) -> None:
        """Write nodes of a generation that is not current, in any batches; repeatable.

        `Conflict` if it is current, or was never handed out.
        """

    async def publish(
        self, tenant: TenantId, generation: int, *, built_from: int, details: Mapping[str, Any], fence: Fence | None = None
    ) -> None:
        """Make ``generation`` current and raise ``state_version``; repeatable.

        ``built_from`` is the state_version that the passages were read at, before they were read. `Conflict` if a newer
        generation is current, or this one was never handed out; `StoreUnavailable` if the fence is not the newest.
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

        `Conflict` if another generation is current; `StoreUnavailable` if the fence is not the newest.
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
        """Return a generation's nodes by level, falling size and id: of a level, or of some ids or vectors, if given."""

    async def above(self, tenant: TenantId, generation: int, child_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the ids of the nodes that have each of the children; one that is in none is left out."""

    async def resting_on(self, tenant: TenantId, generation: int, document_id: str) -> list[str]:
        """Return the ids of the nodes of level 1 that have passages of the document."""

    async def generations(self, tenant: TenantId) -> list[int]:
        """Return the generations that nodes are held of."""

    async def delete_generations(self, tenant: TenantId, *, keep: int) -> int:
        """Remove the nodes of every generation but ``keep``; return how many there were."""

    async def summaries(self, tenant: TenantId, keys: Sequence[SummaryKey]) -> dict[SummaryKey, CommunitySummary]:
        """Return those of the summaries that exist."""

    async def save_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries; the same fingerprint, prompt and model again replaces."""

    async def drop_summaries(self, tenant: TenantId, *, keep: Sequence[str]) -> int:
        """Remove summaries whose fingerprint is not among ``keep``; return how many went."""

    async def due(self, quiet_since: datetime, asked_before: datetime, *, limit: int) -> list[TenantId]:
        """Return active tenants with a tree that is stale, whose documents last changed at ``quiet_since`` or earlier.

        Not those that were asked after the last change and ``asked_before``, nor those with a build waiting or running.
        """

    async def asked(self, tenant: TenantId) -> None:
        """Note that a build was asked for now, by itself."""
