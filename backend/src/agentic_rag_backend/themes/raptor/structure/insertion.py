"""Apply changes to a tree: new passages join their nearest clusters, removed passages leave theirs.

Only the nodes between these passages and the root change. A node that has grown too large is divided; if its parent is then
too large, it is divided too. The peers of this tree rebuild everything for every document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.stores.catalogue.base import Visibility
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, Vector, VectorSearch
from agentic_rag_backend.themes.raptor.build_options import TreeOptions
from agentic_rag_backend.themes.raptor.reading import PassageReader
from agentic_rag_backend.themes.raptor.structure.clustering import Leaves, Vectors, centre_of, cluster_rows, split_rows
from agentic_rag_backend.themes.raptor.structure.growing_tree import GrowingTree
from agentic_rag_backend.themes.raptor.tree_publication import LEVEL

_CANDIDATES = 12
"""Clusters, by their summaries, whose centres a new passage is compared with."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Passages that a tree lacks, and passages in the tree that are not visible any more."""

    new: tuple[str, ...]
    gone: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.new) + len(self.gone)


async def find_difference(reader: PassageReader, tenant: TenantId, tree: GrowingTree, visibility: Visibility) -> Difference:
    """Compare a tree with the visible passages: of documents that changed since it was built, or of all if that is not known."""
    known_ids: dict[str, set[str]] = {}
    for chunk, document in tree.map_passages().items():
        known_ids.setdefault(document, set()).add(chunk)
    visible = sorted(document for document, version in visibility.versions.items() if version)
    looked_at = set(visibility.versions) | (set(known_ids) if visibility.whole else set())
    visible_ids = await reader.chunk_ids(tenant, visible)
    new: list[str] = []
    removed_ids: list[str] = []
    for document in sorted(looked_at):
        now, before = visible_ids.get(document, []), known_ids.get(document, set())
        new += [chunk for chunk in now if chunk not in before]
        removed_ids += sorted(before - set(now))
    return Difference(tuple(new), tuple(removed_ids))


@dataclass(slots=True)
class Insertion:
    """Changes one tree; caches the vectors that it has read.

    Args:
        points: the searchable nodes of level 1, by the id of their vectors.
    """

    tenant: TenantId
    reader: PassageReader
    tree: GrowingTree
    points: Mapping[str, str]
    options: TreeOptions
    _vectors: dict[str, Vector] = field(default_factory=dict)

    async def apply_difference(self, removed_ids: Sequence[str], new: Leaves) -> None:
        """Remove and add passages, then divide nodes that have become too large."""
        for chunk in removed_ids:
            self.tree.take_out(chunk)
        self._vectors.update(zip(new.ids, new.vectors, strict=True))
        for chunk, document, vector in zip(new.ids, new.documents, new.vectors, strict=True):
            node = await self._find_nearest(vector)
            if node is None:
                self.tree.add_node(1, [chunk], [document])
            else:
                self.tree.take_in(chunk, document, node)
        level = 1
        while level <= self.tree.height:
            waiting = self.tree.list_oversized_nodes(level, self.options.ceiling)
            while waiting:
                id = waiting.pop()
                await self._divide_node(id)
                waiting = self.tree.list_oversized_nodes(level, self.options.ceiling)
            level += 1
        await self._raise_roots()

    async def _find_nearest(self, vector: Vector) -> str | None:
        """Return the cluster with the nearest centre, among the clusters with the nearest summaries."""
        alive = set(self.tree.list_level(1))
        candidates = await self.select_candidates(vector, alive)
        fresh = sorted(alive - set(self.points.values()))  # created since: not searchable yet
        best, score = None, -np.inf
        for id in dict.fromkeys([*(candidates or sorted(alive)), *fresh]):
            closeness = float(vector @ centre_of(await self._stack_vectors(self.tree.children_of(id))))
            if closeness > score:
                best, score = id, closeness
        return best

    async def select_candidates(self, vector: Vector, alive: Set[str]) -> list[str]:
        """Return the `_CANDIDATES` nodes of ``alive`` with the nearest summaries, fewer if fewer are searchable.

        The search also finds nodes that this build has replaced, and nodes of a build that was killed before they were current.
        """
        candidate_limit = min(_CANDIDATES, len(alive & set(self.points.values())))
        limit = _CANDIDATES
        while True:
            search = VectorSearch(kind=NodeKind.RAPTOR, dense=vector, limit=limit, filter=Comparison(LEVEL, "eq", 1))
            legs = (await self.reader.vectors.search(self.tenant, Collection.NODES, [search]))[0]
            candidates = [self.points[item.id] for item in legs.dense if self.points.get(item.id) in alive]
            if len(candidates) >= candidate_limit or len(legs.dense) < limit:
                return candidates[:_CANDIDATES]
            limit *= 4

    async def _divide_node(self, id: str) -> None:
        centres = [centre_of(await self._stack_vectors(self.tree.passages_below(child))) for child in self.tree.children_of(id)]
        self.tree.divide_node(id, split_rows(np.stack(centres), self.options))

    async def _raise_roots(self) -> None:
        """Gather roots that have become too many, as long as there may be another level."""
        while (height := self.tree.height) and height < self.options.max_levels:
            roots = self.tree.list_roots()
            if len(roots) < 2:
                return
            centres = np.stack([centre_of(await self._stack_vectors(self.tree.passages_below(id))) for id in roots])
            for group in cluster_rows(centres, self.options):
                self.tree.add_node(height + 1, [roots[position] for position in group])

    async def _stack_vectors(self, chunk_ids: Sequence[str]) -> Vectors:
        missing_ids = [id for id in chunk_ids if id not in self._vectors]
        if missing_ids:
            vectors = await self.reader.read_vectors(self.tenant, missing_ids)
            self._vectors |= vectors
        vectors_held = [self._vectors[id] for id in chunk_ids if id in self._vectors]
        # A vector may be missing; the reconciler repairs that. The remaining vectors decide, or zeros if there are none.
        return np.stack(vectors_held) if vectors_held else np.zeros((1, self.reader.dimensions), np.float32)


def map_vectors_to_nodes(tenant: TenantId, nodes: Sequence[TreeNode]) -> dict[str, str]:
    """Return the nodes of level 1 by the id of their vectors."""
    return {node.point_id(tenant): node.id for node in nodes if node.level == 1}
