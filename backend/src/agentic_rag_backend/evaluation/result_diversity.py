"""Variety of results over many questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean, median
from typing import Any

from agentic_rag_backend.language.words import content_forms


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The results of one question. ``ids``, ``documents`` and ``texts`` have one item per result."""

    ids: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    communities: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Number of distinct items, number of places, and the total number of items (None: unknown)."""

    distinct: int
    places: int
    total: int | None = None

    @property
    def ratio(self) -> float:
        """Distinct items ÷ places, in [0, 1]. 0.0 without a place."""
        return self.distinct / self.places if self.places else 0.0

    @property
    def bound(self) -> float | None:
        """The greatest possible ratio: 1.0, or all items ÷ places if there are fewer items. None if the total is unknown."""
        return min(1.0, self.total / self.places) if self.total is not None and self.places else None

    @property
    def coverage(self) -> float | None:
        """Distinct items ÷ all items, in [0, 1]. None if the total is unknown or 0."""
        return min(1.0, self.distinct / self.total) if self.total else None

    def as_result(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "distinct": self.distinct,
            "places": self.places,
            "ratio": round(self.ratio, 4),
            "coverage": None if self.coverage is None else round(self.coverage, 4),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """How varied the results of one strategy are.

    ``identical_pairs`` is the share of pairs of questions, both with results, that got the same results in any order;
    ``intra_list_similarity`` the mean cosine of the words of two results of one list (Ziegler et al., "Improving recommendation
    lists through topic diversification", 2005), over the lists with two or more; both in [0, 1], None without such a pair.
    """

    questions: int
    unanswered: int
    documents: Distinct
    communities: Distinct
    entities: Distinct
    identical_pairs: float | None
    intra_list_similarity: float | None

    @property
    def ratio(self) -> float:
        """The diversity ratio: distinct documents ÷ results of all questions."""
        return self.documents.ratio

    @property
    def of_bound(self) -> float | None:
        """The diversity ratio ÷ its greatest possible value, in [0, 1]. None if the number of documents is unknown.

        A corpus with fewer documents than results cannot reach a ratio of 1: 40 documents in 250 results have at most 0.16.
        """
        bound = self.documents.bound
        return min(1.0, self.ratio / bound) if bound else None

    def as_result(self) -> dict[str, Any]:
        """Return the figures by name, shares rounded to four places."""
        return {
            "questions": self.questions,
            "unanswered": self.unanswered,
            "diversity_ratio": round(self.ratio, 4),
            "diversity_bound": _round_value(self.documents.bound),
            "diversity_of_bound": _round_value(self.of_bound),
            "identical_pairs": _round_value(self.identical_pairs),
            "intra_list_similarity": _round_value(self.intra_list_similarity),
            "documents": self.documents.as_result(),
            "communities": self.communities.as_result(),
            "entities": self.entities.as_result(),
        }


def measure_diversity(listings: Sequence[Listing], totals: Mapping[str, int | None]) -> Diversity:
    """Measure the results of many questions to one strategy.

    Args:
        listings: one per question.
        totals: total number of ``documents``, ``communities`` and ``entities``.
    """

    def count_distinct(name: str, rankings: Iterable[tuple[str, ...]]) -> Distinct:
        places = [result_id for ranking in rankings for result_id in ranking]
        return Distinct(distinct=len(set(places)), places=len(places), total=totals.get(name))

    similar = [similarity for similarity in map(_mean_similarity, listings) if similarity is not None]
    return Diversity(
        questions=len(listings),
        unanswered=sum(not (listing.ids or listing.communities) for listing in listings),
        documents=count_distinct("documents", (listing.documents for listing in listings)),
        communities=count_distinct("communities", (listing.communities for listing in listings)),
        entities=count_distinct("entities", (listing.entities for listing in listings)),
        identical_pairs=_identical_pairs(listings),
        intra_list_similarity=mean(similar) if similar else None,
    )


def measure_sizes(entity_counts: Mapping[int, Sequence[int]]) -> dict[str, dict[str, float]]:
    """Return count, least, median, mean and largest number of members of communities, by level."""
    return {
        str(level): {
            "communities": len(counts),
            "min": min(counts),
            "median": median(counts),
            "mean": round(mean(counts), 2),
            "max": max(counts),
        }
        for level, counts in sorted(entity_counts.items())
        if counts
    }


def _identical_pairs(listings: Sequence[Listing]) -> float | None:
    """Return the share of equal pairs, counted by equal sets: linear in questions."""
    counts = Counter(
        frozenset((*listing.ids, *listing.communities)) for listing in listings if listing.ids or listing.communities
    )
    pairs = math.comb(counts.total(), 2)
    return sum(math.comb(count, 2) for count in counts.values()) / pairs if pairs else None


def _mean_similarity(listing: Listing) -> float | None:
    forms = [content_forms(text) for text in listing.texts]
    pairs = [(text_forms, other_forms) for text_forms, other_forms in combinations(forms, 2) if text_forms and other_forms]
    return (
        mean(len(text_forms & other_forms) / math.sqrt(len(text_forms) * len(other_forms)) for text_forms, other_forms in pairs)
        if pairs
        else None
    )


def _round_value(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
