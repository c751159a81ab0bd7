"""Publish a tree or its changes: first the vectors, which no reader sees, then the rows that refer to them.

Removes the words of a document from a tree at once, before the next build: from summaries and from vectors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.jobs.coordination.tenant_locks import confirm_lock, current_fence
from agentic_rag_backend.knowledge.visible.summaries import passages_behind, visible_summary
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.summaries.trees import TreeCatalogue
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, Vector, VectorPoint, VectorStore
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.themes.communities.generations import searchable_text
from agentic_rag_backend.themes.communities.theme_index import RebuildProgress
from agentic_rag_backend.themes.raptor.node_writing import Signed, key_of

_log = get_logger(__name__)

LEVEL = "level"
"""The field of a point by which a search selects levels."""
_BATCH = 32
_PAGE = 500


@dataclass(frozen=True, slots=True)
class NodePoints:
    """Writes and removes the vectors of nodes."""

    vectors: VectorStore
    embedder: Embedder

    async def write_points(
        self,
        tenant: TenantId,
        nodes: Sequence[TreeNode],
        summaries: Mapping[str, CommunitySummary],
        known_vectors: Mapping[str, Vector] = MappingProxyType({}),
    ) -> list[str]:
        """Write a point for each node, by its summary; return their ids. The vectors of ``known_vectors`` nodes exist already."""
        if not nodes:
            return []
        fresh = [node.id for node in nodes if node.id not in known_vectors]
        embedded: Sequence[Vector] = (
            list(await self.embedder.embed([embedded_text(summaries[id]) for id in fresh])) if fresh else []
        )
        vectors = {**known_vectors, **dict(zip(fresh, embedded, strict=True))}
        points = [
            VectorPoint(
                id=node.point_id(tenant),
                kind=NodeKind.RAPTOR,
                dense=vectors[node.id],
                text=searchable_text(summaries[node.id]),
                metadata={LEVEL: node.level},
            )
            for node in nodes
        ]
        await self.vectors.upsert(tenant, Collection.NODES, points)
        return [point.id for point in points]

    async def list_stored_ids(self, tenant: TenantId, ids: Sequence[str]) -> set[str]:
        """Return the ids among ``ids`` that have points."""
        stored_ids: set[str] = set()
        for start in range(0, len(ids), _PAGE):
            pages = self.vectors.points(tenant, Collection.NODES, ids=ids[start : start + _PAGE])
            stored_ids |= {point.id async for page in pages for point in page}
        return stored_ids

    async def keep_points(self, tenant: TenantId, ids: set[str]) -> int:
        """Remove all other nodes' points. Return their number."""
        pages = self.vectors.points(tenant, Collection.NODES, kind=NodeKind.RAPTOR)
        strangers = [point.id async for page in pages for point in page if point.id not in ids]
        return await self.vectors.delete(tenant, Collection.NODES, strangers) if strangers else 0


@dataclass(frozen=True, slots=True)
class TreePublisher:
    """Makes trees current.

    Args:
        retire_after_s: seconds the old generation stays after the flip, for the readers that have begun with it.
    """

    trees: TreeCatalogue
    points: NodePoints
    retire_after_s: float = 1.0

    async def publish(
        self, tenant: TenantId, signed: Signed, *, built_from: int, details: Mapping[str, Any], report: RebuildProgress
    ) -> int:
        """Write a new generation and flip the pointer; a failure before the flip leaves the old generation."""
        generation = await self.trees.next_generation(tenant)
        point_ids: list[str] = []
        nodes = signed.nodes
        try:
            for start in range(0, len(nodes), _PAGE):
                await confirm_lock()
                await self.trees.write_nodes(tenant, generation, nodes[start : start + _PAGE])
            await self._embed_nodes(tenant, nodes, signed.summaries, point_ids, report)
            await report("publish", len(nodes), len(nodes))
            await self.points.vectors.flush()
            await self.trees.publish(tenant, generation, built_from=built_from, details=details, fence=current_fence())
        except BaseException:
            await asyncio.shield(self._withdraw_generation(tenant, generation, point_ids))
            raise
        await asyncio.sleep(self.retire_after_s)
        await self._remove_leftovers(tenant, generation, nodes)
        return generation

    async def change_tree(
        self,
        tenant: TenantId,
        generation: int,
        signed: Signed,
        *,
        before: Mapping[str, TreeNode],
        removed: Sequence[str],
        built_from: int,
        details: Mapping[str, Any],
        report: RebuildProgress,
    ) -> None:
        """Replace nodes of the current generation in one step.

        Args:
            before: the current tree, by node.
            removed: the deleted nodes.
        """
        point_ids: list[str] = []
        try:
            await self._embed_nodes(tenant, signed.nodes, signed.summaries, point_ids, report)
            await report("publish", len(signed.nodes), len(signed.nodes))
            await self.points.vectors.flush()
            await self.trees.change(
                tenant,
                generation,
                written=signed.nodes,
                removed=removed,
                built_from=built_from,
                details=details,
                fence=current_fence(),
            )
        except BaseException:
            await asyncio.shield(self._delete_points(tenant, generation, point_ids))
            raise
        if signed.nodes or removed:
            await asyncio.sleep(self.retire_after_s)
        removed_ids = set(removed)
        now = {id: node for id, node in before.items() if id not in removed_ids} | {node.id: node for node in signed.nodes}
        await self._remove_leftovers(tenant, generation, list(now.values()))

    async def _remove_leftovers(self, tenant: TenantId, generation: int, nodes: Sequence[TreeNode]) -> None:
        """Remove all data outside the current tree, including leftovers of builds that were killed before or after their flip."""
        await confirm_lock()
        await self.points.keep_points(tenant, {node.point_id(tenant) for node in nodes})
        await self.trees.delete_generations(tenant, keep=generation)
        await self.trees.drop_summaries(tenant, keep=[node.fingerprint for node in nodes])

    async def _embed_nodes(
        self,
        tenant: TenantId,
        nodes: Sequence[TreeNode],
        summaries: Mapping[str, CommunitySummary],
        point_ids: list[str],
        report: RebuildProgress,
    ) -> None:
        stored_ids = await self.points.list_stored_ids(tenant, [node.point_id(tenant) for node in nodes])
        fresh = [node for node in nodes if node.point_id(tenant) not in stored_ids]
        for start in range(0, len(fresh), _BATCH):
            await report("embed", start, len(fresh))
            await confirm_lock()
            point_ids += await self.points.write_points(tenant, fresh[start : start + _BATCH], summaries)

    async def _withdraw_generation(self, tenant: TenantId, generation: int, points: Sequence[str]) -> None:
        """Remove the data of a generation that did not become current; the next build removes data that cannot be removed now."""
        try:
            current = (await self.trees.pointer(tenant)).generation
            if current != generation:
                await self._delete_points(tenant, current, points)
                await self.trees.delete_generations(tenant, keep=current)
        except AgenticRagError as error:
            _log.warning("raptor_generation_left", tenant=str(tenant), generation=generation, reason=error.message)

    async def _delete_points(self, tenant: TenantId, generation: int, points: Sequence[str]) -> None:
        """Remove the points that no node of the current generation refers to."""
        try:
            used = await self.trees.nodes(tenant, generation, point_ids=points)
            unused = sorted(set(points) - {node.point_id(tenant) for node in used})
            if unused:
                await self.points.vectors.delete(tenant, Collection.NODES, unused)
        except AgenticRagError as error:
            _log.warning("raptor_vectors_left", tenant=str(tenant), count=len(points), reason=error.message)


def embedded_text(summary: CommunitySummary) -> str:
    """Return the text for the vector of a node."""
    return f"{summary.name}. {summary.summary}"


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
