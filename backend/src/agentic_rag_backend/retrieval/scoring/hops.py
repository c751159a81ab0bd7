"""The second hop: from the best passages, over the entities they name, to passages that answer the rest of the question.

A two-hop question names the first passage and describes the second: "Who was the first president of the association which
published X?" finds X by its name, and the text about X leads to the association. A candidate scores well if a strong passage
names the candidate's subject, if it is near the question, and if it covers words of the question that the first passage lacks.
A hop leads to another subject: passages of one article are linked by much the same entities for every question.

Measured on MuSiQue and HotpotQA (`docs/reference/benchmarks.md`). Small changes of the constants do not change the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import starmap
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.tenant_graph.graph import Floats, Ints, TenantGraph
from agentic_rag_backend.retrieval.scoring.coverage import Coverage
from agentic_rag_backend.retrieval.scoring.subjects import subject_keys

M = TypeVar("M", float, Floats)

BEAM = 15
"""Passages that are expanded."""
CANDIDATES = 64
"""Linked passages whose texts are read. Others are dropped by the cheap part of the score."""
HUB_SHARE = 0.01
HUB_MINIMUM = 20
HUB_MAXIMUM = 500
"""Entities in more chunks than this share of all, within the two bounds, are not followed: they connect everything."""
HALF_LINK = 6.0
"""Shared idf mass at which a link has half of its maximum strength."""
COVERAGE_WEIGHT = 1.0
HOP_WEIGHT = 0.5
"""Score of the best hop relative to the best direct passage."""
HOP_WEIGHT_UNNAMED = 0.25
"""The same for a question that names no entity: its direct passages are less certain to be the beginning of a chain."""


@dataclass(frozen=True, slots=True)
class Link:
    """A connection from a passage of the beam to a candidate: chunk numbers, shared idf mass and its strongest entity."""

    source: int
    target: int
    mass: float
    entity: int


@dataclass(frozen=True, slots=True)
class Links:
    """Links as arrays of one length. In a large corpus, a beam has tens of thousands, and `prune` keeps few."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    mass: Floats
    entity: NDArray[np.int64]

    @classmethod
    def of(cls, links: Sequence[Link] = ()) -> Links:
        """Return single links as arrays."""
        source, target, entity = (
            np.array([getattr(link, name) for link in links], dtype=np.int64) for name in ("source", "target", "entity")
        )
        return cls(source, target, np.array([link.mass for link in links], dtype=np.float64), entity)

    def where(self, wanted: NDArray[np.bool_]) -> Links:
        """Return the links of a mask, in order."""
        return Links(self.source[wanted], self.target[wanted], self.mass[wanted], self.entity[wanted])

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[Link]:
        return starmap(
            Link, zip(self.source.tolist(), self.target.tolist(), self.mass.tolist(), self.entity.tolist(), strict=True)
        )


def expand(graph: TenantGraph, beam: Sequence[int], *, without: Set[int]) -> Links:
    """Return the links from the chunks of ``beam``, one per (source, target). Entities in ``without`` are not followed.

    The mass of a link is the idf of the shared entities, doubled if the target is *about* the entity.
    """
    limit = min(max(HUB_MINIMUM, HUB_SHARE * graph.chunk_count), HUB_MAXIMUM)
    sources: list[int] = []
    entities: list[int] = []
    for chunk in beam:
        for entity in graph.entities_of(chunk).tolist():
            if entity not in without and graph.document_frequency[entity] <= limit:
                sources.append(chunk)
                entities.append(entity)
    if not entities:
        return Links.of()
    rows = np.array(entities, dtype=np.int32)
    position, targets, weights = graph.links.gather(rows)
    return _merge(graph, np.array(sources, dtype=np.int64), rows, (position, targets, weights))


def _merge(graph: TenantGraph, sources: NDArray[np.int64], rows: Ints, gathered: tuple[Ints, Ints, Floats]) -> Links:
    position, targets, weights = gathered
    source, entity = sources[position], rows[position]
    mass = weights * graph.idf[entity]
    other = source != targets
    source, targets, entity, mass = source[other], targets[other], entity[other], mass[other]
    if not len(source):
        return Links.of()
    width = graph.chunk_places
    key = source * width + targets
    # Within a key, the heaviest first: the first of each run then names the strongest entity. Ties are ordered by the nodes'
    # keys,
    # because numbers depend on the order in which nodes were added.
    keys, entity_keys = graph.chunk_keys, graph.entity_keys
    order = np.lexsort((entity_keys[entity], -mass, key, keys[targets], keys[source]))
    key, entity, mass = key[order], entity[order], mass[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    ends = key[first]
    return Links(ends // width, ends % width, np.add.reduceat(mass, first), entity[first].astype(np.int64))


def to_other_subjects(graph: TenantGraph, links: Links) -> Links:
    """Return the links between passages that are not about one subject."""
    source, target = subject_keys(graph, links.source), subject_keys(graph, links.target)
    return links.where((source == 0) | (source != target))


def strength(link: Link) -> float:
    """Return the strength of a link, in [0, 1)."""
    return strength_of(link.mass)


def strength_of(mass: M) -> M:
    """Return the strength of a link of this shared idf mass, or of links, in [0, 1)."""
    return mass / (mass + HALF_LINK)


def prune(links: Links, direct: Mapping[int, float], similarity: Mapping[int, float], floor: float) -> list[Link]:
    """Keep the links to the `CANDIDATES` best targets, scored without their texts. For ties, the first target wins.

    Args:
        direct: scores of the beam's passages, at most 1.0.
        similarity: calibrated cosine with the question for chunks that a leg found. For other chunks it is at most ``floor``.
    """
    targets, first, place = np.unique(links.target, return_index=True, return_inverse=True)
    if len(targets) > CANDIDATES:
        near = np.array([similarity.get(number, floor) for number in targets.tolist()])
        sources, source_place = np.unique(links.source, return_inverse=True)
        start = np.array([direct[number] ** 0.5 for number in sources.tolist()])
        promise = start[source_place] * strength_of(links.mass) * (near[place] + COVERAGE_WEIGHT / 2)
        best = np.full(len(targets), 0.0)
        np.maximum.at(best, place, promise)
        kept = np.zeros(len(targets), dtype=np.bool_)
        kept[np.lexsort((first, -best))[:CANDIDATES]] = True
        links = links.where(kept[place])
    return list(links)


@dataclass(frozen=True, slots=True)
class Hop:
    """A candidate's best link and its score."""

    link: Link
    score: float


def score_hops(
    links: Sequence[Link], direct: Mapping[int, float], similarity: Mapping[int, float], coverage: Coverage[int]
) -> dict[int, Hop]:
    """Return each target's best hop, scaled so that the best score is 1.0.

    ``direct^½ × strength × (cosine with the question + newly covered share of the question)``.
    """
    hops: dict[int, Hop] = {}
    for link in links:
        relevance = max(similarity.get(link.target, 0.0), 0.0) + COVERAGE_WEIGHT * coverage.added(link.source, link.target)
        score = direct[link.source] ** 0.5 * strength(link) * relevance
        held = hops.get(link.target)
        if held is None or score > held.score:
            hops[link.target] = Hop(link, score)
    best = max((hop.score for hop in hops.values()), default=0.0)
    if best <= 0:
        return {}
    return {target: Hop(hop.link, hop.score / best) for target, hop in hops.items()}
