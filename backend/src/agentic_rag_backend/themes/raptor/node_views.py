"""Node views: each tree node joined with its summary and with the current visibility of its passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.knowledge.visible.summaries import passages_behind, visible_sources, visible_summary
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, GenerationPointer, TreeCatalogue
from agentic_rag_backend.themes.communities.theme_index import of_one_generation
from agentic_rag_backend.themes.raptor.node_writing import key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNodeView:
    """The visible part of a node. ``summary`` is empty while a passage behind it is not visible.

    ``children`` are passages at level 1 and nodes above. ``size`` is the number of passages below.
    """

    id: str
    name: str
    summary: str
    keywords: tuple[str, ...]
    findings: tuple[Finding, ...]
    level: int
    size: int
    children: tuple[str, ...]
    generation: int
    sources: tuple[Support, ...]
    stale: bool
    written_by: str


def visible_view(
    node: TreeNode, summary: CommunitySummary, visible: Mapping[str, VisibleChunk], pointer: GenerationPointer
) -> TreeNodeView | None:
    """Return the visible view of a node, or None if no passage behind its summary is visible any more."""
    sources, complete = visible_sources(summary, visible)
    if not sources:
        return None
    visible_part = visible_summary(summary, visible)
    return TreeNodeView(
        id=node.id,
        name=visible_part.name or f"Passages {node.id[:8]}",
        summary=visible_part.summary,
        keywords=visible_part.keyword_texts,
        findings=visible_part.findings,
        level=node.level,
        size=node.size,
        children=node.children,
        generation=pointer.generation,
        sources=sources,
        stale=pointer.stale or not complete,
        written_by=visible_part.model,
    )


class TreeReader:
    """Reads the current tree as a whole, never parts of two generations."""

    def __init__(self, *, documents: DocumentCatalogue, trees: TreeCatalogue) -> None:
        self._documents = documents
        self._trees = trees

    async def read(
        self,
        tenant: TenantId,
        *,
        level: int | None = None,
        ids: Sequence[str] | None = None,
        point_ids: Sequence[str] | None = None,
    ) -> tuple[GenerationPointer, list[TreeNode]]:
        """Return the pointer and its nodes; read again if the generation was replaced in between."""
        return await of_one_generation(
            lambda: self._trees.pointer(tenant),
            lambda generation: self._trees.nodes(tenant, generation, level=level, ids=ids, point_ids=point_ids),
        )

    async def make_views(
        self,
        tenant: TenantId,
        pointer: GenerationPointer,
        nodes: Sequence[TreeNode],
        *,
        passes: Callable[[VisibleChunk], bool] = lambda _: True,
    ) -> list[TreeNodeView]:
        """Return the visible views of ``nodes``, in their order; nodes without a visible passage are left out.

        A passage that does not pass counts as invisible.
        """
        if not nodes:
            return []
        summaries = await self._trees.summaries(tenant, [key_of(node) for node in nodes])
        visible = await passages_behind(self._documents, tenant, summaries.values(), passes)
        views = []
        for node in nodes:
            summary = summaries.get(key_of(node))
            view = None if summary is None else visible_view(node, summary, visible, pointer)
            if view is not None:
                views.append(view)
        return views
