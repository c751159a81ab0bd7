"""The second hop: from the best passages, over the entities they name, to passages that answer the rest of the question.

A two-hop question names the first passage and describes the second: "Who was the first president of the association which
published X?" finds X by its name, and the text about X leads to the association. A candidate scores well if a strong passage
names the candidate's subject, if it is near the question, and if it covers words of the question that the first passage lacks.
A hop leads to another subject: passages of one article are linked by much the same entities for every question.

An entity is worth less the more passages share it. Among the links of right passages of MuSiQue and HotpotQA, the odds that one
leads to another right passage fall with the number of passages to the power 1.1 to 1.2, and are 3 to 12 times as high for a
passage about the entity (logistic regression on 6,476 links). Long documents, whose chunks are about several entities, want a
smaller factor: the weight of the mention, 2, serves all sets.

Measured on MuSiQue and HotpotQA (`docs/reference/benchmarks/retrieval.md`). Small changes of the constants do not change the
results.

Subjects: the entities that a passage is about, by its title, headings and fields.

Passages of one article have one subject. They mention much the same entities, so that differences of what the graph finds for
them come from their length, and not from the question. The graph therefore decides between subjects, and the text decides between
passages about one subject.

Measured on MuSiQue, HotpotQA and SQuAD (`docs/reference/benchmarks/retrieval.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.tenant_graph.graph import ABOUT_WEIGHT, TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.rows import Floats, Ints
from agentic_rag_backend.retrieval.scoring import QuestionCoverage

SUBJECT_SHARE = 0.75
"""Share of the subject's value in a passage's value. With 1, R@5 of SQuAD is .970 and of MuSiQue .737; with .5, .953 and .745."""


def subject_keys(graph: TenantGraph, chunks: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return a hash of the subject of each chunk: equal for equal subjects, 0 without a subject.

    It is the sum of the keys of the entities, which are hashes. Two of a million subjects share one with probability 3e-8.
    """
    numbers, group = np.unique(chunks, return_inverse=True)
    position, entities, weights = graph.mentions.gather(numbers)
    about = weights == ABOUT_WEIGHT
    sums = np.zeros(len(numbers), dtype=np.uint64)
    np.add.at(sums, position[about], graph.entity_keys[entities[about]])
    return sums[group]


def share(values: Floats, subjects: NDArray[np.uint64]) -> Floats:
    """Return values of chunks, each moved by `SUBJECT_SHARE` to the greatest value of a chunk about the same subject.

    Args:
        values: shape (n,), ≥ 0.
        subjects: the `subject_keys` of the same chunks. Chunks without a subject keep their value.
    """
    _, group = np.unique(subjects, return_inverse=True)
    greatest = np.zeros(len(values))
    np.maximum.at(greatest, group, values)
    shared: Floats = np.where(subjects == 0, values, values + SUBJECT_SHARE * (greatest[group] - values))
    return shared


M = TypeVar("M", float, Floats)

BEAM = 15
"""Passages that are expanded."""
CANDIDATES = 64
"""Linked passages whose texts are read. Others are dropped by the cheap part of the score."""
HUB_SHARE = 0.01
HUB_MINIMUM = 20
HUB_MAXIMUM = 500
"""Entities in more chunks than this share of all, within the two bounds, are not followed: they connect everything."""
SHARING = 0.75
"""Power of the number of other passages that share an entity, by which the weight of a link over it is divided."""
UNRELATED = frozenset({"date", "number", "quantity"})
"""Types of entities that are not followed: passages that share a date or a number say nothing about each other."""
HALF_LINK = 2.0
"""Weight at which a link has half of its maximum strength."""
COVERAGE_WEIGHT = 1.5
LEAST_BEST = 0.1
"""A best hop below this score does not become 1.0: where all links are weak, none of them leads anywhere."""
HOP_WEIGHT = 0.5
"""Score of the best hop relative to the best direct passage."""


@dataclass(frozen=True, slots=True)
class HopLink:
    """A connection from a passage of the beam to a candidate: chunk numbers, and the strongest shared entity with its weight."""

    source: int
    target: int
    weight: float
    entity: int


@dataclass(frozen=True, slots=True)
class HopLinks:
    """Links as arrays of one length. In a large corpus, a beam has tens of thousands, and `prune` keeps few."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: Floats
    entity: NDArray[np.int64]

    @classmethod
    def of(cls, links: Sequence[HopLink] = ()) -> HopLinks:
        """Return single links as arrays."""
        source, target, entity = (
            np.array([getattr(link, name) for link in links], dtype=np.int64) for name in ("source", "target", "entity")
        )
        return cls(source, target, np.array([link.weight for link in links], dtype=np.float64), entity)

    def where(self, selection: NDArray[np.bool_] | NDArray[np.intp]) -> HopLinks:
        """Return the links of a mask, in order, or of places."""
        return HopLinks(self.source[selection], self.target[selection], self.weight[selection], self.entity[selection])

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[HopLink]:
        return starmap(
            HopLink, zip(self.source.tolist(), self.target.tolist(), self.weight.tolist(), self.entity.tolist(), strict=True)
        )


def expand(graph: TenantGraph, beam: Sequence[int]) -> HopLinks:
    """Return the links from the chunks of ``beam``, one per (source, target), over the strongest shared entity.

    The weight of an entity is that of its mention in the target ÷ (other passages that mention it) ^ `SHARING`. Entities of the
    types `UNRELATED` and in too many passages are not followed.
    """
    rows = np.array(beam, dtype=np.int64)
    position, entities, _ = graph.mentions.gather(rows)
    followed = _follow_links(graph, entities)
    sources, entities = rows[position[followed]], entities[followed]
    position, targets, weights = graph.links.gather(entities)
    divisors = np.maximum(graph.document_frequency[entities] - 1, 1).astype(np.float64)
    weights = weights / (divisors**SHARING)[position]
    return _strongest(graph, HopLinks(sources[position], targets.astype(np.int64), weights, entities[position].astype(np.int64)))


def _follow_links(graph: TenantGraph, entities: Ints) -> NDArray[np.bool_]:
    """Return which entities lead to other passages."""
    texts = graph.entity_texts
    unrelated = [number for number, name in enumerate(texts.types) if name in UNRELATED]
    limit = min(max(HUB_MINIMUM, HUB_SHARE * graph.chunk_count), HUB_MAXIMUM)
    followed: NDArray[np.bool_] = (graph.document_frequency[entities] <= limit) & ~np.isin(texts.type_of[entities], unrelated)
    return followed


def _strongest(graph: TenantGraph, links: HopLinks) -> HopLinks:
    """Return the strongest link of each source and target, in the order of their keys."""
    links = links.where(links.source != links.target)
    if not len(links):
        return HopLinks.of()
    # Ties are ordered by the nodes' keys, because numbers depend on the order in which nodes were added.
    pair = links.source * graph.chunk_places + links.target
    keys, entity_keys = graph.chunk_keys, graph.entity_keys
    order = np.lexsort((entity_keys[links.entity], -links.weight, pair, keys[links.target], keys[links.source]))
    pair = pair[order]
    return links.where(order[np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]])])


def to_other_subjects(graph: TenantGraph, links: HopLinks) -> HopLinks:
    """Return the links between passages that are not about one subject."""
    source, target = subject_keys(graph, links.source), subject_keys(graph, links.target)
    return links.where((source == 0) | (source != target))


def strength(link: HopLink) -> float:
    """Return the strength of a link, in [0, 1)."""
    return strength_of(link.weight)


def strength_of(weight: M) -> M:
    """Return the strength of a link of this weight, or of links, in [0, 1)."""
    return weight / (weight + HALF_LINK)


def prune(links: HopLinks, direct: Mapping[int, float], similarity: Mapping[int, float], floor: float) -> list[HopLink]:
    """Keep the links to the `CANDIDATES` best targets, scored without their texts. For ties, the first target wins.

    Args:
        direct: scores of the beam's passages, at most 1.0.
        similarity: calibrated cosine with the question for chunks that a leg found. For other chunks it is at most ``floor``.
    """
    targets, first_index, group = np.unique(links.target, return_index=True, return_inverse=True)
    if len(targets) > CANDIDATES:
        closeness = np.array([similarity.get(number, floor) for number in targets.tolist()])
        sources, source_place = np.unique(links.source, return_inverse=True)
        start = np.array([direct[number] for number in sources.tolist()])
        promise = start[source_place] * strength_of(links.weight) * (closeness[group] + COVERAGE_WEIGHT / 2)
        best = np.full(len(targets), 0.0)
        np.maximum.at(best, group, promise)
        mask = np.zeros(len(targets), dtype=np.bool_)
        mask[np.lexsort((first_index, -best))[:CANDIDATES]] = True
        links = links.where(mask[group])
    return list(links)


@dataclass(frozen=True, slots=True)
class Hop:
    """A candidate's best link and its score."""

    link: HopLink
    score: float


def score_hops(
    links: Sequence[HopLink], direct: Mapping[int, float], similarity: Mapping[int, float], coverage: QuestionCoverage[int]
) -> dict[int, Hop]:
    """Return each target's best hop, scaled so that the best score is 1.0 if it is at least `LEAST_BEST`.

    ``direct × strength × (cosine with the question + COVERAGE_WEIGHT × newly covered share of the question)``.
    """
    hops: dict[int, Hop] = {}
    for link in links:
        relevance = max(similarity.get(link.target, 0.0), 0.0) + COVERAGE_WEIGHT * coverage.weigh_added_terms(
            link.source, link.target
        )
        score = direct[link.source] * strength(link) * relevance
        best_hop = hops.get(link.target)
        if best_hop is None or score > best_hop.score:
            hops[link.target] = Hop(link, score)
    best = max((hop.score for hop in hops.values()), default=0.0)
    if best <= 0:
        return {}
    return {target: Hop(hop.link, hop.score / max(best, LEAST_BEST)) for target, hop in hops.items()}


def with_hops(direct: Mapping[str, float], hops: Mapping[str, float]) -> dict[str, float]:
    """Return the scores of passages by id: the weighted mean of the direct score and `HOP_WEIGHT` times the hop's, in [0, 1]."""
    return {id: (direct.get(id, 0.0) + HOP_WEIGHT * hops.get(id, 0.0)) / (1 + HOP_WEIGHT) for id in {*direct, *hops}}


def reached_by_hop(direct: Mapping[str, float], hops: Mapping[str, float]) -> set[str]:
    """Return the passages whose score comes from a hop more than from the search."""
    return {id for id, score in hops.items() if HOP_WEIGHT * score > direct.get(id, 0.0)}
