"""Clusters of passages: recursive division of their embeddings, with soft membership.

Sarthi et al. (2024), "RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval", section 3: Gaussian mixtures in
a reduced space, the number of components by BIC, global clusters divided again into local ones, and a passage belongs to each
cluster that it has a share in. The reduced space here consists of the first principal components of the given points, not
UMAP's: it costs a thousandth, is the same on every machine, and a mixture in it finds clusters that are as tight.

The result depends on the vectors and their order. If the caller sorts them by text, the clusters do not depend on the order of
documents.

Plans a tree over passages: clusters of passages, then clusters of those clusters' centres, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode, fingerprint_children, fingerprint_leaves
from agentic_rag_backend.themes.raptor.build_options import TreeOptions
from agentic_rag_backend.themes.raptor.structure.mixture import Floats, Ints, assign_points, best_mixture

Vectors = NDArray[np.float32]

DIMENSIONS = 10
"""Dimensions of the reduced space, as in the paper."""
MAX_PARTS = 50
"""Maximum number of components of one mixture, as in the paper."""
SHARE = 0.1
"""Least probability at which a passage also belongs to a component, as in the paper."""
_LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50)
"""Numbers of components that are tried."""
_OVERALL = 64
"""Principal components of all points, computed once; each division takes its components from them. They separate text well."""
_COMPARED = 512
"""Clusters of a part up to which a point on its edge is compared with each; comparing with all would take n² in all."""
_WAYS = 8
"""Otherwise, the number of parts to compare with: those with the nearest centres contain the nearest clusters."""


@dataclass(frozen=True, slots=True)
class _Space:
    """All points, and their first principal components."""

    points: Vectors
    reduced: Floats


@dataclass(frozen=True, slots=True)
class _Division:
    """The parts of a set of points by their indices, and for points on the edge the second part that they belong to."""

    parts: list[Ints]
    edges: list[tuple[int, int]]


def cluster_rows(vectors: Vectors, options: TreeOptions) -> list[tuple[int, ...]]:
    """Return clusters of row numbers, each sorted, in the order of their first rows; every row is in one or two.

    No cluster is larger than ``options.ceiling`` unless `max_clusters_per_level` makes it so; none is smaller than
    ``options.floor`` unless there are fewer rows than that.

    Args:
        vectors: shape (n, d), finite; n may be 0.
    """
    if not len(vectors):
        return []
    points = np.ascontiguousarray(vectors, dtype=np.float32)
    # If fewer clusters are allowed, make them larger from the beginning: merging them later compares each with all others.
    sized_options = replace(options, cluster_size=max(options.cluster_size, -(-len(points) // options.max_clusters_per_level)))
    clusters = _Clusters(points, len(points))
    _divide_rows(_Space(points, _principal_components(points, _OVERALL)), np.arange(len(points)), sized_options, clusters)
    return sorted(tuple(sorted(set(rows))) for rows in _at_most(points, clusters.rows, options.max_clusters_per_level))


def split_rows(vectors: Vectors, options: TreeOptions) -> list[tuple[int, ...]]:
    """Return two clusters of row numbers without a row in common, for a node that has grown too large."""
    reduced = _principal_components(np.ascontiguousarray(vectors, np.float32), DIMENSIONS)
    parts = _divide_evenly(reduced, np.arange(len(vectors)), 2, options.floor)
    return sorted(tuple(sorted(int(row) for row in part)) for part in parts)


def centre_of(vectors: Vectors) -> NDArray[np.float32]:
    """Return the mean direction of the rows, of length 1 (0 if they cancel out)."""
    mean: Floats = vectors.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    direction: Vectors = (mean / (length or 1.0)).astype(np.float32)
    return direction


class _Clusters:
    """The finished, small enough clusters, with their current centres."""

    def __init__(self, points: Vectors, row_count: int) -> None:
        self._points = points
        self._centres = np.empty((row_count, points.shape[1]), np.float32)  # unwritten rows take no memory
        self.rows: list[list[int]] = []

    def add_cluster(self, rows: list[int]) -> None:
        """Append a cluster."""
        self._centres[len(self.rows)] = centre_of(self._points[rows])
        self.rows.append(rows)

    def join_row(self, row: int, part: _Part, limit: int) -> None:
        """Add a point to the nearest cluster of a part, unless it is already there or the cluster has ``limit`` points."""
        number = self._find_nearest(self._points[row], part)
        rows = self.rows[number]
        if row not in rows and len(rows) < limit:
            rows.append(row)
            self._centres[number] = centre_of(self._points[rows])

    def _find_nearest(self, point: NDArray[np.float32], part: _Part) -> int:
        nearest_parts: Sequence[_Part] = (part,)
        while any(near_part.last - near_part.first > _COMPARED for near_part in nearest_parts):
            below = [child for near_part in nearest_parts for child in (near_part.parts or (near_part,))]
            nearest_parts = nlargest(_WAYS, below, key=lambda near_part: float(near_part.centre @ point))
        candidates = []
        for near_part in nearest_parts:
            scores = self._centres[near_part.first : near_part.last] @ point
            best = int(scores.argmax())
            candidates.append((float(scores[best]), -(near_part.first + best)))
        return -max(candidates)[1]


@dataclass(frozen=True, slots=True)
class _Part:
    """A set of points that was divided: its clusters have the indexes from ``first`` to before ``last``."""

    first: int
    last: int
    centre: NDArray[np.float32]
    parts: tuple[_Part, ...] = ()


def _divide_rows(space: _Space, rows: Ints, options: TreeOptions, clusters: _Clusters) -> _Part:
    start = len(clusters.rows)
    parts: tuple[_Part, ...] = ()
    # Below the ceiling by the number of points on the edge that may be added.
    if len(rows) <= max(options.floor, options.cluster_size + options.cluster_size // 2):
        clusters.add_cluster(rows.tolist())
    else:
        division = _choose_division(_principal_components(space.reduced[rows], DIMENSIONS), rows, options)
        parts = tuple(_divide_rows(space, part, options, clusters) for part in division.parts)
        for row, part_number in division.edges:
            clusters.join_row(row, parts[part_number], options.ceiling)
    return _Part(start, len(clusters.rows), centre_of(space.points[rows]), parts)


def _choose_division(reduced: Floats, rows: Ints, options: TreeOptions) -> _Division:
    part_count = min(MAX_PARTS, max(2, -(-len(rows) // options.cluster_size)))
    if options.method == "mixture":
        largest_count = min(MAX_PARTS, max(2, len(rows) // options.floor))
        # If the criterion finds only one component, divide nevertheless: the cluster is too large for one summary.
        for counts in ([count for count in _LADDER if count <= largest_count], [part_count]):
            shares = best_mixture(reduced, counts).compute_responsibilities(reduced)
            labels = shares.argmax(axis=1)
            parts, number = _join_small_parts(reduced, labels, options.floor)
            if len(parts) > 1:
                return _Division([rows[part] for part in parts], _find_edges(rows, shares, labels, number))
    return _Division(_divide_evenly(reduced, rows, part_count, options.floor), [])


def _find_edges(rows: Ints, shares: Floats, labels: Ints, number: dict[int, int]) -> list[tuple[int, int]]:
    """Return (row, part) for points whose second component has a share in them and is in another part."""
    if shares.shape[1] < 2:
        return []
    remaining_shares = shares.copy()
    remaining_shares[np.arange(len(labels)), labels] = 0.0
    second_part = remaining_shares.argmax(axis=1)
    soft = np.flatnonzero(remaining_shares[np.arange(len(labels)), second_part] >= SHARE)
    pairs = [(int(rows[at]), number.get(int(second_part[at])), number[int(labels[at])]) for at in soft.tolist()]
    return [(row, second_label) for row, second_label, label in pairs if second_label is not None and second_label != label]


def _divide_evenly(reduced: Floats, rows: Ints, count: int, floor: int) -> list[Ints]:
    """Divide by k-means. If that divides nothing, as for equal points, divide by position."""
    parts, _ = _join_small_parts(reduced, assign_points(reduced, count), floor)
    if len(parts) < 2:
        parts = [part for part in np.array_split(np.arange(len(rows)), max(2, min(count, len(rows) // floor))) if len(part)]
    return [rows[part] for part in parts]


def _join_small_parts(reduced: Floats, labels: Ints, floor: int) -> tuple[list[Ints], dict[int, int]]:
    """Return the parts by position, with parts below ``floor`` joined to the nearest, and the resulting part of each label."""
    parts = {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}
    became = {label: label for label in parts}
    centres = {label: reduced[part].mean(axis=0) for label, part in parts.items()}
    while len(parts) > 1:
        least = min(parts, key=lambda label: (len(parts[label]), parts[label][0]))
        if len(parts[least]) >= floor:
            break
        small = parts.pop(least)
        removed_centre = centres.pop(least)
        nearest_label = min(parts, key=lambda label: (float(((centres[label] - removed_centre) ** 2).sum()), parts[label][0]))
        parts[nearest_label] = np.sort(np.concatenate([parts[nearest_label], small]))
        centres[nearest_label] = reduced[parts[nearest_label]].mean(axis=0)
        became = {label: nearest_label if new_label == least else new_label for label, new_label in became.items()}
    order = sorted(parts, key=lambda label: int(parts[label][0]))
    position = {label: number for number, label in enumerate(order)}
    return [parts[label] for label in order], {label: position[new_label] for label, new_label in became.items()}


def _at_most(points: Vectors, clusters: list[list[int]], limit: int) -> list[list[int]]:
    """Join the smallest clusters to their nearest until there are at most ``limit``."""
    if len(clusters) <= limit:
        return clusters
    centres = np.stack([centre_of(points[rows]) for rows in clusters])
    alive = np.ones(len(clusters), bool)
    sizes = np.array([len(rows) for rows in clusters])
    for _ in range(len(clusters) - limit):
        least = int(np.where(alive, sizes, np.iinfo(sizes.dtype).max).argmin())
        alive[least] = False
        nearest_index = int(np.where(alive, centres @ centres[least], -np.inf).argmax())
        clusters[nearest_index] = sorted({*clusters[nearest_index], *clusters[least]})
        sizes[nearest_index] = len(clusters[nearest_index])
        centres[nearest_index] = centre_of(points[clusters[nearest_index]])
    return [rows for rows, is_alive in zip(clusters, alive, strict=True) if is_alive]


def _principal_components(points: Vectors | Floats, count: int) -> Floats:
    """Return the points' first ``count`` principal components, shape (n, at most count)."""
    centred = points - points.mean(axis=0, dtype=np.float64)
    if len(points) < points.shape[1]:
        _, _, axes = np.linalg.svd(centred, full_matrices=False)
    else:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        axes = vectors.T[::-1]
    reduced: Floats = centred @ axes[: min(count, points.shape[1], max(1, len(points) - 1))].T
    return reduced


@dataclass(frozen=True, slots=True)
class Leaves:
    """Passages ordered by their texts: chunk ids, their documents, and their vectors, shape (n, d)."""

    ids: tuple[str, ...]
    documents: tuple[str, ...]
    vectors: Vectors


def plan_tree(tenant: TenantId, leaves: Leaves, options: TreeOptions) -> list[TreeNode]:
    """Return the nodes, children before their parents; each level has fewer than the one below it.

    The centres of the passages below the nodes divide a level, not the embeddings of the nodes' summaries as in the paper.
    The tree is then the same for every writer, and the cost of a build is known before it begins. A node's id derives from its
    set of children.
    """
    nodes: list[TreeNode] = []
    below: list[TreeNode] = []
    members: list[tuple[int, ...]] = []
    centres = leaves.vectors
    for level in range(1, options.max_levels + 1):
        groups = cluster_rows(centres, options)
        members = [_list_rows(group, members) for group in groups]
        level_nodes = [_make_node(tenant, level, group, leaves, below) for group in groups]
        level_nodes = [replace(node, size=len(rows)) for node, rows in zip(level_nodes, members, strict=True)]
        nodes += level_nodes
        below = level_nodes
        if len(level_nodes) < 2:
            break
        centres = np.stack([centre_of(leaves.vectors[list(rows)]) for rows in members])
    return nodes


def new_node_id(tenant: TenantId, level: int, children: Sequence[str]) -> str:
    """Return the id of a new node with these children."""
    return stable_id("raptor-node", tenant, level, *sorted(children))


def _make_node(tenant: TenantId, level: int, group: tuple[int, ...], leaves: Leaves, below: Sequence[TreeNode]) -> TreeNode:
    if level == 1:
        children = tuple(leaves.ids[row] for row in group)
        documents = tuple(leaves.documents[row] for row in group)
        fingerprint = fingerprint_leaves(children)
    else:
        children, documents = tuple(below[row].id for row in group), ()
        fingerprint = fingerprint_children(level, (below[row].fingerprint for row in group))
    return TreeNode(
        id=new_node_id(tenant, level, children),
        level=level,
        children=children,
        documents=documents,
        fingerprint=fingerprint,
        size=len(group),
    )


def _list_rows(group: tuple[int, ...], members: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the passages below a group of children, each once."""
    if not members:
        return group
    return tuple(sorted({row for child in group for row in members[child]}))
