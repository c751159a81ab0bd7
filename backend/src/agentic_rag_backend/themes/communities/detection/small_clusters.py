"""Joins clusters that are too small to be a theme to others, by links or by shared contexts."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_MAX_PAIRED = 30
"""Members of a context above which only neighbours in the order are paired, so that the work stays linear.

In a context with more large clusters, small clusters compare only the large ones with most members in the context.
"""

Links = defaultdict[int, defaultdict[int, float]]


@dataclass(frozen=True, slots=True)
class CoOccurrence:
    """Entities that occur together, such as in one chunk.

    ``weight`` is the strength of this tie relative to other contexts. It is a whole number, so that sums are exact.
    """

    weight: int
    members: tuple[str, ...]


def join_small_clusters(
    clusters: Sequence[list[int]],
    *,
    links: Callable[[Mapping[int, int]], Links],
    contexts: Sequence[tuple[int, list[int]]],
    min_size: int,
    force: bool = False,
) -> list[list[int]]:
    """Join each cluster below ``min_size`` (and any single node) to the larger one with most links, or with most shared
    contexts.

    A small cluster with no such tie stays unchanged; with ``force`` it joins the largest. Returns sorted clusters, in order.
    """
    small = {index for index, cluster in enumerate(clusters) if len(cluster) < max(min_size, 2)}
    largest = max(range(len(clusters)), key=lambda index: (len(clusters[index]), -clusters[index][0]), default=0)
    homes = {index: list(cluster) for index, cluster in enumerate(clusters) if index not in small or (force and index == largest)}
    if not homes or len(homes) == len(clusters):
        return sorted(clusters)
    cluster_of = {member: index for index, cluster in enumerate(clusters) for member in cluster}
    linked = links(cluster_of)
    shared = _shared_contexts(contexts, cluster_of, homes, clusters)
    merged = {index: list(cluster) for index, cluster in homes.items()}
    for index in small - homes.keys():
        home = _select_heaviest(linked[index], homes, clusters)
        if home is None:
            home = _select_heaviest(shared[index], homes, clusters)
        if home is None and force:
            home = largest
        merged.setdefault(index if home is None else home, []).extend(clusters[index])
    return sorted(sorted(cluster) for cluster in merged.values())


def link_small_clusters(
    clusters: Sequence[list[int]], *, contexts: Sequence[tuple[int, list[int]]], min_size: int
) -> list[tuple[int, int, float]]:
    """Return edges between the clusters (by index) that are still too small, from the contexts they share."""
    small = {member: index for index, cluster in enumerate(clusters) if len(cluster) < max(min_size, 2) for member in cluster}
    weights: Counter[tuple[int, int]] = Counter()
    for weight, members in contexts:
        present = sorted({small[member] for member in members if member in small})
        reach = len(present) if len(present) <= _MAX_PAIRED else 2
        for at, cluster_id in enumerate(present):
            for other_cluster in present[at + 1 : at + reach]:
                weights[cluster_id, other_cluster] += weight
    return [(a, b, float(weight)) for (a, b), weight in sorted(weights.items())]


def _shared_contexts(
    contexts: Sequence[tuple[int, list[int]]],
    cluster_of: Mapping[int, int],
    homes: Mapping[int, object],
    clusters: Sequence[list[int]],
) -> defaultdict[int, Counter[int]]:
    """Return the shared contexts of each small cluster with each large one, by weight."""
    shared: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for weight, members in contexts:
        present = Counter(cluster_of[member] for member in members if member in cluster_of)
        hosts = [(index, weight * count) for index, count in present.items() if index in homes]
        if len(hosts) > _MAX_PAIRED:
            hosts = heapq.nlargest(_MAX_PAIRED, hosts, key=lambda host: (host[1], -clusters[host[0]][0]))
        for index in present.keys() - homes.keys():
            for host, share in hosts:
                shared[index][host] += share
    return shared


def _select_heaviest(weights: Mapping[int, float], candidates: Mapping[int, object], clusters: Sequence[list[int]]) -> int | None:
    """Return the candidate of the largest weight; of equals, the cluster whose first member comes first."""
    possible = [index for index in weights if index in candidates]
    return max(possible, key=lambda index: (weights[index], -clusters[index][0]), default=None)
