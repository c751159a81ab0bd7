"""The port of edits of the graph: records that the resolution of names applies to every document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentic_rag_backend.domain.graph_edits import EditDraft, GraphEdit
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.ports.pages import Page


class GraphEditCatalogue(Protocol):
    """Edits of each tenant, numbered from 1 in the order in which they apply."""

    async def add(self, tenant: TenantId, draft: EditDraft) -> GraphEdit:
        """Record an edit, and in the same transaction an outbox entry ``edits`` with its number. Raises ``state_version``.

        Raises:
            InvalidRequest: the tenant has `MAX_GRAPH_EDITS` edits in effect.
        """

    async def undo(self, tenant: TenantId, number: int) -> GraphEdit:
        """Mark an edit as undone, and in the same transaction record the outbox entry. Idempotent.

        Raises:
            NotFound: the tenant has no edit of this number.
        """

    async def edit(self, tenant: TenantId, number: int) -> GraphEdit:
        """Return an edit, also one that was undone. Raises `NotFound`."""

    async def page(self, tenant: TenantId, *, limit: int, cursor: str | None = None) -> Page[GraphEdit]:
        """Return edits, undone ones included, the newest first."""

    async def changes(self, tenant: TenantId) -> int:
        """Return how often an edit of the tenant was added or undone. Equal numbers mean equal edits."""

    async def in_effect(self, tenant: TenantId) -> Sequence[GraphEdit]:
        """Return the edits that were not undone, by number."""
