"""Transfer of the tree over passages to another tenant, including its paid summaries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import CommunitySummary, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode, fingerprint_children, fingerprint_leaves
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.visible.summaries import passages_behind, visible_summary
from agentic_rag_backend.stores.catalogue.base import Catalogue, TreeCatalogue
from agentic_rag_backend.stores.vector.base import Collection, VectorStore
from agentic_rag_backend.themes.raptor.node_writing import key_of
from agentic_rag_backend.themes.raptor.tree_publication import NodePoints
from agentic_rag_backend.transfer.identity import Passages
from agentic_rag_backend.transfer.record_lines import pack_vector, unpack_vector
from agentic_rag_backend.transfer.records import Generation, TreeNodeRecord

_PAGE = 500
_BATCH = 32


@dataclass(frozen=True, slots=True)
class ExportedTree:
    """The current tree. Without a tree, ``generation`` is None."""

    generation: Generation | None = None
    nodes: tuple[TreeNodeRecord, ...] = ()
    summaries: tuple[CommunitySummary, ...] = ()


async def read_tree(catalogue: Catalogue, vectors: VectorStore, tenant: TenantId) -> ExportedTree:
    """Return the current tree. Its summaries omit statements that rest on invisible passages."""
    trees, documents = catalogue.trees, catalogue.documents
    pointer = await trees.pointer(tenant)
    if pointer.generation == 0:
        return ExportedTree()
    nodes = await trees.nodes(tenant, pointer.generation)
    summaries: list[CommunitySummary] = []
    stored: dict[str, str] = {}
    for start in range(0, len(nodes), _PAGE):
        summaries_of_page = list(
            (await trees.summaries(tenant, [key_of(node) for node in nodes[start : start + _PAGE]])).values()
        )
        visible = await passages_behind(documents, tenant, summaries_of_page)
        summaries += [visible_summary(summary, visible) for summary in summaries_of_page]
        points = {node.point_id(tenant): node.id for node in nodes[start : start + _PAGE]}
        vectors_of = await vectors.vectors(tenant, Collection.NODES, list(points))
        stored |= {points[point]: pack_vector(vector) for point, vector in vectors_of.items()}
    generation = Generation(
        number=pointer.generation, stale=pointer.stale, built_at=pointer.built_at, details=dict(pointer.details)
    )
    records = (TreeNodeRecord.from_value(node, vector=stored.get(node.id)) for node in nodes)
    return ExportedTree(generation, tuple(records), tuple(summaries))


@dataclass(slots=True)
class ImportedTree:
    """Import of a tree. Nodes come before summaries, and children before parents."""

    tenant: TenantId
    passages: Passages
    nodes: dict[str, TreeNode] = field(default_factory=dict)
    """Nodes by their id in the archive."""
    _fingerprints: dict[str, str] = field(default_factory=dict)
    _vectors: dict[str, str] = field(default_factory=dict)
    _summaries: dict[tuple[str, str, str], CommunitySummary] = field(default_factory=dict)

    def read_records(self, records: Sequence[TreeNodeRecord]) -> None:
        """Add nodes, with their ids and fingerprints in this tenant.

        Raises:
            InvalidRequest: the nodes do not form a tree.
        """
        for record in sorted(records, key=lambda record: record.level):
            if record.id in self.nodes or len(record.documents) != (len(record.children) if record.level == 1 else 0):
                raise InvalidRequest(f"node {record.id} of the archive's tree is duplicate, or has no documents")
            node = self._make_leaf(record) if record.level == 1 else self._make_inner(record)
            self.nodes[record.id] = node
            self._fingerprints[record.fingerprint] = node.fingerprint
            if record.vector is not None:
                self._vectors[node.id] = record.vector

    async def write_summaries(self, trees: TreeCatalogue, records: Sequence[CommunitySummary]) -> None:
        """Record the summaries of nodes."""
        new_summaries = await asyncio.to_thread(self._rewrite_summaries, records)
        await trees.save_summaries(self.tenant, new_summaries)
        self._summaries.update(
            {(summary.fingerprint, summary.prompt_version, summary.model): summary for summary in new_summaries}
        )

    async def write_tree(
        self, trees: TreeCatalogue, points: NodePoints, generation: Generation | None, *, dimensions: int | None
    ) -> int:
        """Write nodes and vectors, and make them the current tree. Return the number of embedded texts. It can be repeated.

        Args:
            dimensions: of the archive's vectors, if this deployment's embedder made them; otherwise the texts are embedded
                again.
        """
        if generation is None:
            return 0
        nodes = sorted(self.nodes.values(), key=lambda node: (node.level, node.id))
        number = await trees.next_generation(self.tenant)
        for start in range(0, len(nodes), _PAGE):
            await trees.write_nodes(self.tenant, number, nodes[start : start + _PAGE])
        embedded = 0
        summarized = [node for node in nodes if key_of(node) in self._summaries and _has_text(self._summaries[key_of(node)])]
        for start in range(0, len(summarized), _BATCH):
            batch = summarized[start : start + _BATCH]
            packings = {node.id: self._vectors[node.id] for node in batch if node.id in self._vectors}
            known_vectors = (
                {id: unpack_vector(text, dimensions=dimensions) for id, text in packings.items()} if dimensions else {}
            )
            await points.write_points(
                self.tenant, batch, {node.id: self._summaries[key_of(node)] for node in batch}, known_vectors
            )
            embedded += len(batch) - len(known_vectors)
        await trees.publish(self.tenant, number, built_from=0, details=generation.details)
        await trees.delete_generations(self.tenant, keep=number)
        return embedded

    def _rewrite_summaries(self, records: Sequence[CommunitySummary]) -> list[CommunitySummary]:
        return [
            replace(self.passages.rewrite_value(summary), fingerprint=self._fingerprints[summary.fingerprint])
            for summary in records
            if summary.fingerprint in self._fingerprints
        ]

    def _make_leaf(self, record: TreeNodeRecord) -> TreeNode:
        supports = [
            self.passages.map_support(Support(document, 0, chunk))
            for document, chunk in zip(record.documents, record.children, strict=True)
        ]
        children = tuple(support.chunk_id for support in supports)
        documents = tuple(support.document_id for support in supports)
        return self._make_node(record, children, documents, fingerprint_leaves(children))

    def _make_inner(self, record: TreeNodeRecord) -> TreeNode:
        below = [self.nodes[child] for child in record.children if child in self.nodes]
        if len(below) < len(record.children) or any(child.level != record.level - 1 for child in below):
            raise InvalidRequest(f"node {record.id} of the archive's tree has missing children")
        fingerprint = fingerprint_children(record.level, (child.fingerprint for child in below))
        return self._make_node(record, tuple(child.id for child in below), (), fingerprint)

    def _make_node(
        self, record: TreeNodeRecord, children: tuple[str, ...], documents: tuple[str, ...], fingerprint: str
    ) -> TreeNode:
        id = record.id if self.passages.identity.kept else stable_id("imported-node", self.tenant, record.id)
        return record.to_value(TreeNode, id=id, children=children, documents=documents, fingerprint=fingerprint)


def _has_text(summary: CommunitySummary) -> bool:
    return bool(summary.summary or summary.findings)
