"""Show nodes of a tree: each joined with its summary and with what is visible now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.communities.visibility import further_chunks, supporting_chunks, visible_summary
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.raptor.writing import key_of
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.trees import TreeCatalogue, TreePointer

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node as a reader may see it; ``summary`` is empty while it rests on a passage that is not visible.

    ``children`` are passages at level 1 and nodes above; ``size`` counts the passages below.
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
    node: TreeNode, summary: CommunitySummary, visible: Mapping[str, VisibleChunk], pointer: TreePointer
) -> NodeView | None:
    """Return what of a node may be shown, or None where no passage behind its summary is visible any more."""
    behind = dict.fromkeys([*summary.sources, *(source for finding in summary.findings for source in finding.sources)])
    there = (each for each in behind if each.chunk_id in visible)
    sources = tuple(replace(each, version=visible[each.chunk_id].chunk.version) for each in there)
    if not sources:
        return None
    shown = visible_summary(summary, visible)
    return NodeView(
        id=node.id,
        name=shown.name or f"Passages {node.id[:8]}",
        summary=shown.summary,
        keywords=shown.keyword_texts,
        findings=shown.findings,
        level=node.level,
        size=node.size,
        children=node.children,
        generation=pointer.generation,
        sources=sources,
        stale=pointer.stale or len(sources) < len(behind),
        written_by=shown.model,
    )


class TreeReader:
    """Reads the current tree, whole: never half of one and half of the next."""

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
    ) -> tuple[TreePointer, list[TreeNode]]:
        """Return the pointer and its nodes; read again if the generation was replaced in between."""
        pointer = await self._trees.pointer(tenant)
        for _ in range(_ATTEMPTS):
            if pointer.generation == 0:
                return pointer, []
            found = await self._trees.nodes(tenant, pointer.generation, level=level, ids=ids, point_ids=point_ids)
            again = await self._trees.pointer(tenant)
            if again.generation == pointer.generation:
                return again, found
            pointer = again
        return pointer, found

    async def views(
        self,
        tenant: TenantId,
        pointer: TreePointer,
        nodes: Sequence[TreeNode],
        *,
        passes: Callable[[VisibleChunk], bool] = lambda _: True,
    ) -> list[NodeView]:
        """Return what of ``nodes`` may be shown, in their order; those without a visible passage are left out.

        A passage that does not pass counts as one that is not visible.
        """
        if not nodes:
            return []
        summaries = await self._trees.summaries(tenant, [key_of(node) for node in nodes])
        visible = await self._visible(tenant, supporting_chunks(summaries.values()), passes)
        visible |= await self._visible(tenant, further_chunks(summaries.values(), visible), passes)
        views = []
        for node in nodes:
            summary = summaries.get(key_of(node))
            view = None if summary is None else visible_view(node, summary, visible, pointer)
            if view is not None:
                views.append(view)
        return views

    async def _visible(
        self, tenant: TenantId, ids: Sequence[str], passes: Callable[[VisibleChunk], bool]
    ) -> dict[str, VisibleChunk]:
        found = await self._documents.hydrate(tenant, ids) if ids else {}
        return {id: chunk for id, chunk in found.items() if passes(chunk)}
