"""Find communities: a hierarchy of clusters of the weighted relationship graph, as a pure function of the graph.

The engine is Leiden (Traag, Waltman, van Eck, "From Louvain to Leiden", 2019) of `graspologic_native`, run from its own last
assignment until nothing moves. The hierarchy is ours: if there are many clusters Leiden runs once more over the graph of
clusters and documents, and it divides a cluster that is too large on its own subgraph. (The engine's own hierarchical function
rewrites a fifth of the communities when one passage is added; this construction half a percent.)

A continued detection holds unchanged communities together: others may join them, and they may join each other, but none is
divided. Only a member that is linked more with another community may leave.

The result depends on names, types and weights alone: not on the order of edges, nor of their ends, nor on ids.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.graph import WeightedEdge, normalise_name
from agentic_rag_backend.themes.communities.detection.leiden import (
    MAX_ROUNDS,
    Members,
    PreviousDivision,
    compute_modularity,
    hang_leaves,
    held_groups,
    leiden_of_groups,
    run_leiden,
)
from agentic_rag_backend.themes.communities.detection.small_clusters import (
    CoOccurrence,
    Links,
    join_small_clusters,
    link_small_clusters,
)
from agentic_rag_backend.themes.communities.detection.top_level import DocumentMentions, group_clusters

METHOD = 3
"""Version of the division method. Increase it with every change, so that graphs divided by another version are divided again."""
_SEED = 20_240_613
_DIVISIONS = (1.0, 2.0, 4.0)
"""Factors on the resolution that are tried until a cluster that is too large falls apart."""

_COMPARED_WHOLE = 20_000
"""Edges up to which an assignment that was continued is compared with a converged one."""
_TOLERATED = 0.01
"""Share of modularity that may be lost to keep communities stable."""

NO_DOCUMENTS = DocumentMentions()


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionOptions:
    """The granularity of the division.

    ``max_cluster_size`` is the number of members above which a cluster is divided. A cluster with fewer than ``min_size``
    members
    joins a neighbour if it has one. ``resolution`` is Leiden's (> 0; higher gives more clusters), ``max_levels`` the depth
    of the hierarchy, ``max_roots`` the number of clusters above which a coarser level is added on top.
    """

    max_cluster_size: int = 25
    min_size: int = 3
    resolution: float = 1.0
    max_levels: int = 3
    max_roots: int = 15


@dataclass(frozen=True, slots=True)
class EntityName:
    """The sort key of entities: never an id, which may hold the tenant."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedCommunity:
    """A cluster; ``level`` 0 is the coarsest, ``parent`` an index into the result, ``members`` entity ids at any depth.

    ``base`` marks the clusters of Leiden's run over the whole graph: the assignment from which the next run may start.
    """

    level: int
    parent: int | None
    members: tuple[str, ...]
    base: bool


@dataclass(frozen=True, slots=True)
class Detection:
    """The hierarchy, parents before their children, and the modularity of its ``base`` clusters (0 without edges).

    ``afresh`` is true if the detection started from nothing, even with ``previous`` given.
    """

    communities: tuple[DetectedCommunity, ...] = ()
    modularity: float = 0.0
    afresh: bool = True


def detect_communities(
    edges: Iterable[WeightedEdge],
    *,
    entities: Mapping[str, EntityName],
    options: DetectionOptions,
    contexts: Sequence[CoOccurrence] = (),
    documents: DocumentMentions = NO_DOCUMENTS,
    previous: PreviousDivision | None = None,
) -> Detection:
    """Return the communities of a graph; every entity is in exactly one root. CPU-bound: run it in a thread.

    Leiden releases the interpreter lock, so that `asyncio.to_thread` leaves the event loop free.

    Args:
        edges: undirected; several between the same two entities add up, loops are ignored.
        entities: every entity, by id.
        contexts: groups of entities that occur together; an entity without edges joins the cluster it shares most with.
        documents: what the coarsest level groups clusters by, besides relationships.
        previous: the previous division as the start; new entities start alone. If the resulting modularity is more than
            1 % below the modularity of a detection from nothing, the latter is the result.

    Raises:
        ValueError: a weight is not a finite number above 0, or an edge names an unknown entity.
    """
    if not entities:
        return Detection()
    graph = _Graph.build_graph(edges, entities, contexts)
    base, afresh = _partition_graph(graph, options, previous)
    hierarchy = _Hierarchy(graph, options, None if afresh else previous)
    for group in _coarsen_clusters(graph, base, options, documents):
        if len(group) == 1:
            hierarchy.add_cluster(group[0], level=0, parent=None, base=True)
            continue
        root = hierarchy.append_community(
            sorted(member for cluster in group for member in cluster), level=0, parent=None, base=False
        )
        for cluster in group:
            hierarchy.add_cluster(cluster, level=1, parent=root, base=True)
    return Detection(tuple(hierarchy.communities), compute_modularity(graph.edges, base, options.resolution), afresh)


@dataclass(frozen=True, slots=True)
class _Graph:
    """The input in canonical order: entity ``i`` is ``ids[i]``, edges are (i, j, weight) with i < j, sorted."""

    ids: list[str]
    keys: list[EntityName]
    edges: list[tuple[int, int, float]]
    neighbours: list[list[tuple[int, float]]]
    contexts: list[tuple[int, Members]]
    contexts_of: dict[int, list[int]]

    @classmethod
    def build_graph(
        cls, edges: Iterable[WeightedEdge], entities: Mapping[str, EntityName], contexts: Sequence[CoOccurrence]
    ) -> _Graph:
        weights: dict[tuple[str, str], list[float]] = defaultdict(list)
        for edge in edges:
            if not (math.isfinite(edge.weight) and edge.weight > 0):
                raise ValueError(f"an edge's weight must be a finite number above 0; got {edge.weight!r}")
            if edge.source_id not in entities or edge.target_id not in entities:
                raise ValueError(f"an edge names an entity that is not given: {edge.source_id!r} – {edge.target_id!r}")
            if edge.source_id != edge.target_id:
                low, high = sorted((edge.source_id, edge.target_id))
                weights[low, high].append(edge.weight)
        # fsum is exact, so that the order in which parallel edges arrive does not matter
        summed = {pair: math.fsum(parts) for pair, parts in weights.items()}
        order = _canonical_order(summed, entities)
        position = {entity: index for index, entity in enumerate(order)}
        pairs = sorted((*sorted((position[a], position[b])), weight) for (a, b), weight in summed.items())
        numbered = [(int(a), int(b), weight) for a, b, weight in pairs]
        neighbours: list[list[tuple[int, float]]] = [[] for _ in order]
        for a, b, weight in numbered:
            neighbours[a].append((b, weight))
            neighbours[b].append((a, weight))
        ordered_edges = sorted(
            (context.weight, sorted({position[member] for member in context.members if member in position}))
            for context in contexts
        )
        ordered_edges = [context for context in ordered_edges if len(context[1]) > 1]
        contexts_of: dict[int, list[int]] = defaultdict(list)
        for number, (_, members) in enumerate(ordered_edges):
            for member in members:
                contexts_of[member].append(number)
        return cls(order, [entities[entity] for entity in order], numbered, neighbours, ordered_edges, contexts_of)

    def link_weights(self, cluster_of: Mapping[int, int]) -> Links:
        """Return the weight between each two clusters; nodes without a cluster are left out."""
        links: Links = defaultdict(lambda: defaultdict(float))
        for a, cluster in cluster_of.items():
            for b, weight in self.neighbours[a]:
                neighbour = cluster_of.get(b, cluster)
                if neighbour != cluster:
                    links[cluster][neighbour] += weight
        return links

    def group_members(self, members: Iterable[int], label: Mapping[str, int]) -> dict[int, Members]:
        """Return the members that have a label by it, sorted."""
        groups: dict[int, Members] = defaultdict(list)
        for member in members:
            if self.ids[member] in label:
                groups[label[self.ids[member]]].append(member)
        return groups

    def edges_inside(self, members: Members) -> list[tuple[int, int, float]]:
        """Return the edges among ``members``, sorted."""
        chosen = set(members)
        return [(a, b, weight) for a in members for b, weight in self.neighbours[a] if a < b and b in chosen]


def _canonical_order(weights: Mapping[tuple[str, str], float], entities: Mapping[str, EntityName]) -> list[str]:
    """Order entities by (normalised name, type). Entities with equal keys are ordered by their neighbours, then by id."""
    key = {entity_id: (normalise_name(entity.name), entity.type, entity.name) for entity_id, entity in entities.items()}
    shared: dict[tuple[str, str, str], int] = defaultdict(int)
    for value in key.values():
        shared[value] += 1
    around: dict[str, list[tuple[tuple[str, str, str], float]]] = {
        entity_id: [] for entity_id, value in key.items() if shared[value] > 1
    }
    if around:
        for (a, b), weight in weights.items():
            if a in around:
                around[a].append((key[b], weight))
            if b in around:
                around[b].append((key[a], weight))
    return sorted(entities, key=lambda entity_id: (key[entity_id], sorted(around.get(entity_id, ())), entity_id))


class _Hierarchy:
    """Collects communities and divides communities that are too large."""

    def __init__(self, graph: _Graph, options: DetectionOptions, previous: PreviousDivision | None) -> None:
        self._graph = graph
        self._options = options
        self._previous = previous or PreviousDivision({})
        self.communities: list[DetectedCommunity] = []

    def append_community(self, members: Members, *, level: int, parent: int | None, base: bool) -> int:
        ids = tuple(self._graph.ids[member] for member in members)
        self.communities.append(DetectedCommunity(level=level, parent=parent, members=ids, base=base))
        return len(self.communities) - 1

    def add_cluster(self, members: Members, *, level: int, parent: int | None, base: bool) -> None:
        index = self.append_community(members, level=level, parent=parent, base=base)
        if len(members) <= self._options.max_cluster_size or level + 1 >= self._options.max_levels:
            return
        for part in self._divide_cluster(members, level + 1):
            self.add_cluster(part, level=level + 1, parent=index, base=False)

    def _divide_cluster(self, members: Members, level: int) -> list[Members]:
        """Return the parts of a cluster: the previous parts if it is unchanged, none if it does not fall apart."""
        groups = self._graph.group_members(members, self._previous.levels.get(level, {}))
        covers_all = sum(map(len, groups.values())) == len(members)
        if (
            len(groups) > 1
            and covers_all
            and frozenset(self._graph.ids[member] for member in members) in self._previous.unchanged
        ):
            return sorted(groups.values())
        return _divide_members(self._graph, members, self._options, self._previous, level)


def _partition_graph(graph: _Graph, options: DetectionOptions, previous: PreviousDivision | None) -> tuple[list[Members], bool]:
    """Return clusters of the whole graph, every entity in one, and whether they were found from nothing."""
    if previous is not None and previous.base:
        starting = {index: previous.base[id] for index, id in enumerate(graph.ids) if id in previous.base}
        groups = held_groups(previous, graph.ids, range(len(graph.ids)), graph.edges, level=0)
        partition_found = leiden_of_groups(graph.edges, groups, seed=_SEED, resolution=options.resolution, starting=starting)
        continued = _settle_clusters(graph, partition_found, options)
        # A large graph has almost converged after one round. The rest would take many more rounds.
        rounds = 1 if len(graph.edges) > _COMPARED_WHOLE else MAX_ROUNDS
        afresh = _settle_clusters(
            graph, run_leiden(graph.edges, seed=_SEED, resolution=options.resolution, rounds=rounds), options
        )
        reached, possible = (compute_modularity(graph.edges, partition, options.resolution) for partition in (continued, afresh))
        if reached >= possible - _TOLERATED * abs(possible):
            return continued, False
    return _settle_clusters(graph, run_leiden(graph.edges, seed=_SEED, resolution=options.resolution), options), True


def _settle_clusters(graph: _Graph, clusters: list[Members], options: DetectionOptions) -> list[Members]:
    """Return clusters that cover every entity: small clusters join others, or are gathered by the contexts they share."""
    clustered = {member for cluster in clusters for member in cluster}
    clusters += [[index] for index in range(len(graph.ids)) if index not in clustered]
    clusters = join_small_clusters(clusters, links=graph.link_weights, contexts=graph.contexts, min_size=options.min_size)
    pairs = link_small_clusters(clusters, contexts=graph.contexts, min_size=options.min_size)
    groups = run_leiden(pairs, seed=_SEED, resolution=options.resolution)
    gathered = {index for group in groups for index in group}
    merged = [sorted(member for index in group for member in clusters[index]) for group in groups]
    return sorted(merged + [cluster for index, cluster in enumerate(clusters) if index not in gathered])


def _coarsen_clusters(
    graph: _Graph, base: list[Members], options: DetectionOptions, documents: DocumentMentions
) -> list[list[Members]]:
    """Group clusters under roots: each alone or, if there are too many, by `group_clusters`."""
    if options.max_levels < 2 or len(base) <= options.max_roots:
        return [[cluster] for cluster in base]
    links = graph.link_weights({member: index for index, cluster in enumerate(base) for member in cluster})
    edges = [(a, b, weight) for a, row in links.items() for b, weight in row.items() if a < b]
    inside = {index: math.fsum(weight for _, _, weight in graph.edges_inside(base[index])) for index in links}
    position = {id: index for index, id in enumerate(graph.ids)}
    mentions = [{position[id]: count for id, count in counts.items() if id in position} for counts in documents.mentions]
    groups = group_clusters(
        base,
        [*edges, *hang_leaves(inside, len(base) + len(mentions))],
        mentions,
        documents.similar,
        most=options.max_roots,
        resolution=options.resolution,
        seed=_SEED,
    )
    return [[base[index] for index in group] for group in groups]


def _divide_members(
    graph: _Graph, members: Members, options: DetectionOptions, previous: PreviousDivision, level: int
) -> list[Members]:
    """Return the parts of a cluster; nothing if it does not fall apart.

    Most parts survive one member more or less only if the division starts from them.
    """
    inside = graph.edges_inside(members)
    labels = previous.levels.get(level, {})
    starting = {member: labels[graph.ids[member]] for member in members if graph.ids[member] in labels}
    groups = held_groups(previous, graph.ids, members, inside, level=level) if starting else []
    covered = {node for a, b, _ in inside for node in (a, b)} | {node for group in groups for node in group}
    alone = [member for member in members if member not in covered]
    touched = sorted({number for member in alone for number in graph.contexts_of.get(member, ())})
    contexts = [graph.contexts[number] for number in touched]
    seed = _seed_of(graph, members)
    for factor in _DIVISIONS:
        resolution = options.resolution * factor
        if starting:
            parts = leiden_of_groups(inside, groups, seed=seed, resolution=resolution, starting=starting)
        else:
            parts = run_leiden(inside, seed=seed, resolution=resolution)
        parts += [[member] for member in alone]
        parts = join_small_clusters(parts, links=graph.link_weights, contexts=contexts, min_size=options.min_size, force=True)
        if len(parts) > 1:
            return parts
    return []


def _seed_of(graph: _Graph, members: Members) -> int:
    names = "\x1f".join(f"{graph.keys[member].name}\x1e{graph.keys[member].type}" for member in members)
    return int.from_bytes(hashlib.sha256(names.encode()).digest()[:4], "big")
