"""The engine: Leiden until nothing moves, from nothing or from the previous division, on nodes or on groups of nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import graspologic_native

Members = list[int]
Edges = Sequence[tuple[int, int, float]]

_ITERATIONS = 2
MAX_ROUNDS = 50
"""Leiden is run two iterations at a time until nothing moves: on MuSiQue the modularity and stability of fifty, in a third of
the time."""
_LARGE, _LEAST_GAIN = 100_000, 1e-5
"""Edges above which a round that gains less modularity than this is the last: thousands would follow that move a few nodes
each, and a round takes seconds."""
_LEAST_WEIGHT = 1e-9


def run_leiden(
    edges: Edges,
    *,
    seed: int,
    resolution: float,
    starting: Mapping[int, int] | None = None,
    rounds: int = MAX_ROUNDS,
) -> list[Members]:
    """Return the clusters of the nodes that have edges, each sorted, in order; nodes without are absent."""
    if not edges:
        return []
    named_edges = [(str(a), str(b), weight) for a, b, weight in edges]
    nodes = sorted({node for a, b, _ in edges for node in (a, b)})
    assignment = None
    if starting is not None:
        # a node that is new starts alone, under a label that no other has
        fresh = 1 + max(starting.values(), default=0)
        assignment = _divide_by_connection({node: starting.get(node, fresh + node) for node in nodes}, nodes, edges)
    quality = -math.inf
    for _ in range(rounds):
        begin = None if assignment is None else {str(node): label for node, label in assignment.items()}
        reached, node_clusters = graspologic_native.leiden(
            named_edges, starting_communities=begin, resolution=resolution, iterations=_ITERATIONS, seed=seed, trials=1
        )
        moved = _relabel_clusters({node: node_clusters[str(node)] for node in nodes}, nodes)
        if moved == assignment:
            break
        assignment = moved
        if len(edges) > _LARGE and reached - quality < _LEAST_GAIN:
            break
        quality = reached
    clusters: dict[int, Members] = defaultdict(list)
    for node, label in (assignment or {}).items():
        clusters[label].append(node)
    return sorted(clusters.values())


def leiden_of_groups(
    edges: Edges, groups: Iterable[Members], *, seed: int, resolution: float, starting: Mapping[int, int]
) -> list[Members]:
    """Return the clusters of nodes; no cluster divides one of the disjoint ``groups``.

    A group is one node: its cost is the number of edges around it. Members without edges stay with their group.
    """
    group_by_name = {group[0]: group for group in groups}
    representative = {member: name for name, group in group_by_name.items() for member in group}
    around: dict[tuple[int, int], float] = defaultdict(float)
    inside: dict[int, float] = defaultdict(float)
    for a, b, weight in edges:
        source, target = representative.get(a, a), representative.get(b, b)
        if source == target:
            inside[source] += weight
        else:
            around[min(source, target), max(source, target)] += weight
    contracted = [(a, b, weight) for (a, b), weight in around.items()]
    leaves = 1 + max((max(a, b) for a, b, _ in edges), default=0) + max(representative, default=0)
    linked = {node for pair in around for node in pair}
    labels = {node: starting[node] for node in linked if node in starting}
    labels |= {leaves + node: labels[node] for node in inside if node in labels}
    contracted += hang_leaves({node: weight for node, weight in inside.items() if node in linked}, leaves)
    clusters = run_leiden(sorted(contracted), seed=seed, resolution=resolution, starting=labels)
    clusters = [
        [member for node in cluster if node < leaves for member in group_by_name.get(node, [node])] for cluster in clusters
    ]
    covered = {member for cluster in clusters for member in cluster}
    clusters += [group for group in group_by_name.values() if group[0] not in covered]
    return sorted(sorted(cluster) for cluster in clusters if cluster)


def hang_leaves(inside: Mapping[int, float], leaves: int) -> list[tuple[int, int, float]]:
    """Return edges that stand for the weight inside groups that are nodes, each to a node of its own, ``leaves`` + its number.

    Leiden has no loops; such a node always stays with its group.
    """
    return [(node, leaves + node, weight or _LEAST_WEIGHT) for node, weight in inside.items()]


def compute_modularity(edges: Edges, clusters: Iterable[Members], resolution: float) -> float:
    """Return the modularity of clusters of the nodes that have edges; 0 without edges."""
    if not edges:
        return 0.0
    linked = {node for a, b, _ in edges for node in (a, b)}
    labels = {str(member): index for index, cluster in enumerate(clusters) for member in cluster if member in linked}
    return float(
        graspologic_native.modularity([(str(a), str(b), weight) for a, b, weight in edges], labels, resolution=resolution)
    )


def _divide_by_connection(assignment: Mapping[int, int], nodes: Sequence[int], edges: Edges) -> dict[int, int]:
    """Divide clusters into parts that hang together by edges: the engine panics on others, such as a deletion leaves."""
    label = {node: node for node in nodes}
    for part in group_by_connection((a, b) for a, b, _ in edges if assignment[a] == assignment[b]):
        label.update(dict.fromkeys(part, part[0]))
    return _relabel_clusters(label, nodes)


def group_by_connection(pairs: Iterable[tuple[int, int]]) -> list[Members]:
    """Return the nodes of ``pairs`` in the groups that hang together by them, all sorted."""
    above: dict[int, int] = {}

    def find_top(node: int) -> int:
        while above.setdefault(node, node) != node:
            above[node] = node = above[above[node]]
        return node

    for a, b in pairs:
        above[find_top(b)] = find_top(a)
    parts: dict[int, Members] = defaultdict(list)
    for node in sorted(above):
        parts[find_top(node)].append(node)
    return sorted(parts.values())


def _relabel_clusters(assignment: Mapping[int, int], nodes: Sequence[int]) -> dict[int, int]:
    """Number clusters by first appearance, so that equal partitions are equal values."""
    numbers: dict[int, int] = {}
    return {node: numbers.setdefault(assignment[node], len(numbers)) for node in nodes}


@dataclass(frozen=True, slots=True)
class PreviousDivision:
    """The previous division of the graph: entities by cluster, of the ``base`` and of each level.

    ``unchanged`` are the members of the communities that did not change since.
    """

    base: Mapping[str, int]
    levels: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    unchanged: frozenset[frozenset[str]] = frozenset()


def held_groups(
    previous: PreviousDivision, ids: Sequence[str], members: Iterable[int], edges: Edges, *, level: int
) -> list[Members]:
    """Return disjoint groups of ``members`` that stay together while ``members`` are divided for ``level``.

    The groups are the largest unchanged communities, and the smallest changed ones as far as relationships connect them. New
    entities are free, and so are entities with stronger links to another cluster than to their own.

    Args:
        ids: the entities by number.
        edges: the edges among ``members``.
    """
    clusters = previous.base if level == 0 else previous.levels.get(level, {})
    label = {member: clusters[ids[member]] for member in members if ids[member] in clusters}
    members_left = set(label)
    groups_found: list[Members] = []
    smallest: dict[int, tuple[int, int]] = {}
    for deeper in sorted(lower_level for lower_level in previous.levels if lower_level >= level):
        numbers = previous.levels[deeper]
        groups: defaultdict[int, Members] = defaultdict(list)
        for member in sorted(members_left):
            if ids[member] in numbers:
                groups[numbers[ids[member]]].append(member)
                smallest[member] = deeper, numbers[ids[member]]
        for group in groups.values():
            # a root that only groups clusters holds nothing together
            if len({label[member] for member in group}) == 1 and frozenset(ids[member] for member in group) in previous.unchanged:
                groups_found.append(group)
                members_left.difference_update(group)
    groups_found += _hanging_together(edges, {member: smallest[member] for member in members_left if member in smallest})
    astray = _find_astray(edges, label)
    return [members_kept for group in groups_found if (members_kept := [member for member in group if member not in astray])]


def _hanging_together(edges: Edges, label: Mapping[int, tuple[int, int]]) -> list[Members]:
    """Return the connected parts of groups; a node without edges joins the largest part of its group."""
    parts: defaultdict[tuple[int, int], list[Members]] = defaultdict(list)
    for part in group_by_connection((a, b) for a, b, _ in edges if a in label and b in label and label[a] == label[b]):
        parts[label[part[0]]].append(part)
    linked = {node for a, b, _ in edges for node in (a, b)}
    for node in sorted(label.keys() - linked):
        of = parts[label[node]]
        if of:
            max(of, key=len).append(node)
        else:
            of.append([node])
    return [sorted(part) for of in parts.values() for part in of]


def _find_astray(edges: Edges, label: Mapping[int, int]) -> set[int]:
    """Return the nodes that are linked more with one other cluster than with their own."""
    weights: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for a, b, weight in edges:
        if a in label and b in label:
            weights[a][label[b]] += weight
            weights[b][label[a]] += weight
    return {node for node, of in weights.items() if max(of.values()) > of.get(label[node], 0.0)}
