"""A tree that adds and removes passages: only the nodes between them and the root change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode, fingerprint_children, fingerprint_leaves
from agentic_rag_backend.themes.raptor.structure.clustering import new_node_id


@dataclass(slots=True)
class _Node:
    level: int
    children: list[str]
    documents: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Grown:
    """The changes of a tree: nodes to be rewritten, children before parents, and removed nodes."""

    written: list[TreeNode]
    removed: list[str]


class GrowingTree:
    """A tree in memory, between two published states. Operations are linear in its nodes, deterministic, and need no vectors."""

    def __init__(self, tenant: TenantId, nodes: Iterable[TreeNode]) -> None:
        self._tenant = tenant
        self._before = {node.id: node for node in nodes}
        self._nodes = {node.id: _Node(node.level, list(node.children), list(node.documents)) for node in self._before.values()}
        self._parents: dict[str, set[str]] = {}
        for id, node in self._nodes.items():
            for child in node.children:
                self._parents.setdefault(child, set()).add(id)
        self._touched: set[str] = set()

    @property
    def height(self) -> int:
        """The highest level that has nodes, 0 of an empty tree."""
        return max((node.level for node in self._nodes.values()), default=0)

    def list_level(self, level: int) -> list[str]:
        """Return the ids of a level's nodes, sorted."""
        return sorted(id for id, node in self._nodes.items() if node.level == level)

    def list_roots(self) -> list[str]:
        """Return the ids of the highest level's nodes."""
        return self.list_level(self.height)

    def children_of(self, id: str) -> tuple[str, ...]:
        """Return a node's children."""
        return tuple(self._nodes[id].children)

    def map_passages(self) -> dict[str, str]:
        """Return the document of every passage in the tree."""
        return {
            chunk: document
            for node in self._nodes.values()
            if node.level == 1
            for chunk, document in zip(node.children, node.documents, strict=True)
        }

    def passages_below(self, id: str) -> list[str]:
        """Return the passages below a node, or the passage itself, each once, sorted."""
        if id not in self._nodes:
            return [id]
        level_ids = {id}
        for _ in range(self._nodes[id].level):
            level_ids = {child for parent in level_ids for child in self._nodes[parent].children}
        return sorted(level_ids)

    def list_oversized_nodes(self, level: int, ceiling: int) -> list[str]:
        """Return the nodes of a level that have changed and have more children than ``ceiling``."""
        return [id for id in self.list_level(level) if id in self._touched and len(self._nodes[id].children) > ceiling]

    def take_in(self, chunk_id: str, document_id: str, node_id: str) -> None:
        """Add a passage to a node of level 1."""
        node = self._nodes[node_id]
        node.children.append(chunk_id)
        node.documents.append(document_id)
        self._parents.setdefault(chunk_id, set()).add(node_id)
        self._touched.add(node_id)

    def take_out(self, chunk_id: str) -> None:
        """Remove a passage from every node. Nodes without children are removed."""
        for node_id in sorted(self._parents.pop(chunk_id, ())):
            node = self._nodes[node_id]
            position = node.children.index(chunk_id)
            del node.children[position], node.documents[position]
            self._changed_or_empty(node_id)

    def divide_node(self, id: str, parts: Sequence[Sequence[int]]) -> list[str]:
        """Divide a node by groups of its children. The largest part keeps the id. Return the ids of the other parts.

        If the node had parents, they become parents of the new nodes.
        """
        node = self._nodes[id]
        children, documents = node.children, node.documents
        order = sorted(parts, key=lambda part: (-len(part), part[0]))
        new_ids: list[str] = []
        for number, part in enumerate(order):
            part_children = [children[position] for position in part]
            papers = [documents[position] for position in part] if documents else []
            if number == 0:
                node.children, node.documents = part_children, papers
            else:
                new_ids.append(self.add_node(node.level, part_children, papers))
        for child in children:
            if child not in node.children:
                self._parents[child].discard(id)
        for parent in sorted(self._parents.get(id, ())):
            self._nodes[parent].children += new_ids
            for new_id in new_ids:
                self._parents.setdefault(new_id, set()).add(parent)
            self._touched.add(parent)
        self._touched.add(id)
        return new_ids

    def add_node(self, level: int, children: Sequence[str], documents: Sequence[str] = ()) -> str:
        """Create a node without parents. Return its id."""
        id = new_node_id(self._tenant, level, children)
        while id in self._nodes:  # a node keeps its id while its children change, so another node may have had these children
            id = new_node_id(self._tenant, level, [id])
        self._nodes[id] = _Node(level, list(children), list(documents))
        for child in children:
            self._parents.setdefault(child, set()).add(id)
        self._touched.add(id)
        return id

    def take_growth(self) -> Grown:
        """Return the nodes to write: changed nodes and all nodes above them."""
        self._remove_idle_roots()
        dirty = {id for id in self._touched if id in self._nodes}
        waiting = list(dirty)
        while waiting:
            above = self._parents.get(waiting.pop(), set()) - dirty
            dirty |= above
            waiting.extend(above)
        fingerprints = {id: node.fingerprint for id, node in self._before.items() if id not in dirty}
        nodes: list[TreeNode] = []
        for id in sorted(dirty, key=lambda id: (self._nodes[id].level, id)):
            node = self._nodes[id]
            if node.level == 1:
                fingerprint = fingerprint_leaves(node.children)
            else:
                fingerprint = fingerprint_children(node.level, (fingerprints[child] for child in node.children))
            fingerprints[id] = fingerprint
            nodes.append(
                TreeNode(
                    id=id,
                    level=node.level,
                    children=tuple(node.children),
                    documents=tuple(node.documents),
                    fingerprint=fingerprint,
                    size=len(self.passages_below(id)),
                )
            )
        return Grown(nodes, sorted(self._before.keys() - self._nodes.keys()))

    def unchanged_nodes(self) -> dict[str, TreeNode]:
        """Return the unchanged nodes by id."""
        dirty = {node.id for node in self.take_growth().written}
        return {id: node for id, node in self._before.items() if id in self._nodes and id not in dirty}

    def _changed_or_empty(self, id: str) -> None:
        if self._nodes[id].children:
            self._touched.add(id)
            return
        del self._nodes[id]
        self._touched.discard(id)
        for parent in sorted(self._parents.pop(id, ())):
            self._nodes[parent].children.remove(id)
            self._changed_or_empty(parent)

    def _remove_idle_roots(self) -> None:
        """Remove roots with nothing to gather: a single root over a single node repeats that node."""
        while self.height > 1:
            roots = self.list_roots()
            only = [id for id in roots if len(self._nodes[id].children) == 1]
            if len(roots) != 1 or not only:
                return
            (child,) = self._nodes[only[0]].children
            del self._nodes[only[0]]
            self._parents[child].discard(only[0])
