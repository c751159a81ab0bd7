"""Removes the words of a document from a tree at once, before the next build: from summaries and from vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.knowledge.visible.summaries import passages_behind, visible_summary
from agentic_rag_backend.raptor.summaries.node_writing import key_of
from agentic_rag_backend.raptor.tree_publication import NodePoints
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, TreeCatalogue
from agentic_rag_backend.stores.vector.base import Collection

_PAGE = 500
_BATCH = 32


@dataclass(frozen=True, slots=True)
class TreeScrubber:
    """Removes from the current tree, in catalogue and vectors, all statements that visible passages no longer support.

    A node gets new statements, from other passages, when the tree is built or takes in changes.
    """

    documents: DocumentCatalogue
    trees: TreeCatalogue
    points: NodePoints

    async def resting_on(self, tenant: TenantId, document_id: str) -> list[str]:
        """Return the ids of the nodes that contain passages of a document, and of all nodes above them."""
        generation = (await self.trees.pointer(tenant)).generation
        fingerprints: set[str] = set()
        level = set(await self.trees.resting_on(tenant, generation, document_id)) if generation else set()
        while level:
            fingerprints |= level
            above = await self.trees.above(tenant, generation, sorted(level))
            level = {parent for parents in above.values() for parent in parents} - fingerprints
        return sorted(fingerprints)

    async def scrub(self, tenant: TenantId, document_id: str) -> int:
        """Remove statements that rest on a document whose passages are not visible any more. Repeatable. Return the number of
        nodes.
        """
        ids = await self.resting_on(tenant, document_id)
        generation = (await self.trees.pointer(tenant)).generation
        for start in range(0, len(ids), _PAGE):
            nodes = await self.trees.nodes(tenant, generation, ids=ids[start : start + _PAGE])
            summaries = await self.visible_summaries(tenant, nodes)
            await self.trees.save_summaries(tenant, list(summaries.values()))
            searchable_nodes = [node for node in nodes if node.id in summaries and has_searchable_text(summaries[node.id])]
            silent = [node.point_id(tenant) for node in nodes if node not in searchable_nodes]
            if silent:
                await self.points.vectors.delete(tenant, Collection.NODES, silent)
            for batch_start in range(0, len(searchable_nodes), _BATCH):
                await self._write_points(tenant, searchable_nodes[batch_start : batch_start + _BATCH], summaries)
        return len(ids)

    async def _write_points(
        self, tenant: TenantId, nodes: Sequence[TreeNode], summaries: Mapping[str, CommunitySummary]
    ) -> list[str]:
        """Write the points of nodes of the current tree; return the ids of points that are still in it.

        During the embedding, a build may publish another tree and remove all other points before these points are written. So
        the tree is read again afterwards; a later build removes them itself.
        """
        point_ids = await self.points.write_points(tenant, nodes, summaries)
        generation = (await self.trees.pointer(tenant)).generation
        used = {node.point_id(tenant) for node in await self.trees.nodes(tenant, generation, point_ids=point_ids)}
        unused = sorted(set(point_ids) - used)
        if unused:
            await self.points.vectors.delete(tenant, Collection.NODES, unused)
        return [id for id in point_ids if id in used]

    async def visible_summaries(self, tenant: TenantId, nodes: Sequence[TreeNode]) -> dict[str, CommunitySummary]:
        """Return the summaries of nodes, by node, without statements that rest on invisible passages."""
        summaries = await self.trees.summaries(tenant, [key_of(node) for node in nodes])
        visible = await passages_behind(self.documents, tenant, summaries.values())
        return {node.id: visible_summary(summaries[key_of(node)], visible) for node in nodes if key_of(node) in summaries}

    async def list_missing_nodes(self, tenant: TenantId, nodes: Sequence[TreeNode]) -> list[TreeNode]:
        """Return the nodes that have searchable text and no point."""
        lacking_nodes: list[TreeNode] = []
        for start in range(0, len(nodes), _PAGE):
            batch = nodes[start : start + _PAGE]
            there = await self.points.list_stored_ids(tenant, [node.point_id(tenant) for node in batch])
            missing_nodes = [node for node in batch if node.point_id(tenant) not in there]
            visible_summaries = await self.visible_summaries(tenant, missing_nodes) if missing_nodes else {}
            lacking_nodes += [
                node for node in missing_nodes if node.id in visible_summaries and has_searchable_text(visible_summaries[node.id])
            ]
        return lacking_nodes

    async def restore(self, tenant: TenantId, nodes: Sequence[TreeNode]) -> list[str]:
        """Write the points of ``nodes`` again and return their ids; makes no model call."""
        point_ids: list[str] = []
        for start in range(0, len(nodes), _BATCH):
            batch = nodes[start : start + _BATCH]
            visible_summaries = await self.visible_summaries(tenant, batch)
            point_ids += await self._write_points(
                tenant, [node for node in batch if node.id in visible_summaries], visible_summaries
            )
        return point_ids


def has_searchable_text(summary: CommunitySummary) -> bool:
    """Return whether the summary has any text to search."""
    return bool(summary.summary or summary.findings)
