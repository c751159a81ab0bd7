"""Group clusters under few roots: by the relationships between them, the documents they share, and the similarity of documents.

A person names a theme by the documents that it is in. So documents are nodes as well: Leiden runs over the clusters and the
documents that mention them, with an edge for each pair of similar documents. The cost is linear in all of these.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.themes.communities.detection.leiden import Edges, Members, run_leiden

LARGEST_SHARE = 0.5
"""Share of the entities above which a root is too large to be one, unless one document has most of them."""
_MAX_STEPS = 12
_STEP = 0.6
"""Factor on the resolution until few enough roots are left."""


@dataclass(frozen=True, slots=True)
class DocumentMentions:
    """The documents of a graph.

    ``mentions`` has the number of mentions of each entity id by document, in an order that does not depend on ids. ``similar``
    are pairs of documents, by position, with a weight above 0.
    """

    mentions: Sequence[Mapping[str, int]] = ()
    similar: Sequence[tuple[int, int, float]] = ()


def group_clusters(
    base: Sequence[Members],
    links: Edges,
    mentions: Sequence[Mapping[int, int]],
    similar: Sequence[tuple[int, int, float]],
    *,
    most: int,
    resolution: float,
    seed: int,
) -> list[list[int]]:
    """Return groups of clusters, by their positions in ``base``: if possible at most ``most``. Every cluster is in one.

    Args:
        links: weights between clusters.
        mentions: the members of clusters that each document mentions, with their numbers of mentions.
        similar: weights between documents.
    """
    edges = [*links, *_document_edges(base, mentions, similar)]
    edges.sort()
    groups = [[index] for index in range(len(base))]
    limit = max(LARGEST_SHARE, _largest_document(base, mentions)) * sum(map(len, base))
    for step in range(_MAX_STEPS):
        coarser = [
            group
            for nodes in run_leiden(edges, seed=seed, resolution=resolution * _STEP**step)
            if (group := [node for node in nodes if node < len(base)])
        ]
        if max((sum(len(base[index]) for index in group) for group in coarser), default=0) > limit:
            break
        grouped = {index for group in coarser for index in group}
        groups = sorted([*coarser, *([index] for index in range(len(base)) if index not in grouped)])
        if len(groups) <= most:
            break
    return groups


def _document_edges(
    base: Sequence[Members], mentions: Sequence[Mapping[int, int]], similar: Sequence[tuple[int, int, float]]
) -> list[tuple[int, int, float]]:
    """Return the edges of documents, which are the nodes after the clusters: to clusters, and to similar documents.

    Each member has the weight 1, divided over the documents that mention it. So a document weighs as much as the entities that
    are its own, and a similarity of two documents as the geometric mean of their weights.
    """
    cluster_of = {member: index for index, cluster in enumerate(base) for member in cluster}
    total: Counter[int] = Counter()
    for members in mentions:
        total.update(members)
    edges: list[tuple[int, int, float]] = []
    weights: defaultdict[int, float] = defaultdict(float)
    for document, members in enumerate(mentions):
        shares: defaultdict[int, list[float]] = defaultdict(list)
        for member, count in members.items():
            shares[cluster_of[member]].append(count / total[member])
        edges += [(cluster, len(base) + document, math.fsum(of)) for cluster, of in sorted(shares.items())]
        weights[document] = math.fsum(share for of in shares.values() for share in of)
    for a, b, weight in similar:
        if weights[a] > 0 and weights[b] > 0:
            edges.append((len(base) + a, len(base) + b, weight * math.sqrt(weights[a] * weights[b])))
    return edges


def _largest_document(base: Sequence[Members], mentions: Sequence[Mapping[int, int]]) -> float:
    """Return the largest share of entities that one document mentions: it may be a theme by itself."""
    return max(map(len, mentions), default=0) / max(1, sum(map(len, base)))
