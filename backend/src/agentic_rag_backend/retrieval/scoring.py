"""Scores of ranked lists: their fusion, the coverage of a question's words, and relevance that is comparable across questions.

Measured on MuSiQue and HotpotQA, with each corpus asked its own and the other's questions. The measure is the nearest
passage's cosine plus half the best coverage of the question's terms by one passage. At the threshold that still answers 90 %
of a corpus' own questions it refuses 98 % of the other's (cosine alone: 94 %).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.models.embedding.calibration import Calibration
from agentic_rag_backend.stores.vector.base import ScoredId

RRF_K = 60
"""Rank constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""
DBSF_DEVIATIONS = 3.0
"""Standard deviations on each side of the mean that distribution-based score fusion scales to [0, 1]."""
DBSF_EQUAL = 0.5
"""Score of distribution-based score fusion if all scores of a leg are equal: every one is the mean."""

Fuse = Callable[[Mapping[str, Sequence[ScoredId]], Mapping[str, float]], dict[str, float]]
"""Fuses legs by name with the weights of these names. Every score is in [0, 1]."""


def min_max(leg: Sequence[ScoredId]) -> dict[str, float]:
    """Return the scores scaled to [0, 1]; all-equal scores become 1.0."""
    if not leg:
        return {}
    low = min(item.score for item in leg)
    high = max(item.score for item in leg)
    if high <= low:
        return {item.id: 1.0 for item in leg}
    return {item.id: (item.score - low) / (high - low) for item in leg}


def scale_by_distribution(leg: Sequence[ScoredId]) -> dict[str, float]:
    """Return the scores scaled so that mean − 3σ becomes 0 and mean + 3σ becomes 1, cut to [0, 1]; equal scores become 0.5.

    σ is the sample standard deviation. Unlike `min_max`, an outlier does not move the scores of all others towards 0.
    """
    scores = [item.score for item in leg]
    if not scores or max(scores) <= min(scores):
        return {item.id: DBSF_EQUAL for item in leg}
    mean = math.fsum(scores) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1))
    width = 2 * DBSF_DEVIATIONS * deviation
    if width <= 0:  # the scores differ by less than a float can square
        return {item.id: DBSF_EQUAL for item in leg}
    return {item.id: min(1.0, max(0.0, 0.5 + (item.score - mean) / width)) for item in leg}


def weighted_min_max(legs: Mapping[str, Sequence[ScoredId]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weighted sum of the legs' min-max scores for every id, in [0, 1].

    Weights are normalised over the non-empty legs, so that an empty leg does not halve all scores. Legs of weight 0 are left out.
    """
    return _weighted_sum(legs, weights, min_max)


def weighted_dbsf(legs: Mapping[str, Sequence[ScoredId]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weighted sum of the legs' `scale_by_distribution` scores for every id, in [0, 1].

    Distribution-based score fusion (Mazzeschi 2023) as Qdrant defines it, with weights, which are normalised as in
    `weighted_min_max`.
    """
    return _weighted_sum(legs, weights, scale_by_distribution)


def weighted_rrf(legs: Mapping[str, Sequence[ScoredId]], weights: Mapping[str, float], *, k: int = RRF_K) -> dict[str, float]:
    """Return the weighted reciprocal rank fusion of the legs, divided by its maximum, so in (0, 1]."""
    filled = _count_positive(legs, weights)
    best = sum(weights[name] for name in filled) / (k + 1)
    if best <= 0:
        return {}
    fused: dict[str, float] = {}
    for name, leg in filled.items():
        for rank, item in enumerate(leg, start=1):
            fused[item.id] = fused.get(item.id, 0.0) + weights[name] / (k + rank) / best
    return fused


FUSIONS: Mapping[str, Fuse] = MappingProxyType({"min_max": weighted_min_max, "rrf": weighted_rrf, "dbsf": weighted_dbsf})
"""Fusions by the name that requests use."""


def _weighted_sum(
    legs: Mapping[str, Sequence[ScoredId]],
    weights: Mapping[str, float],
    scaled: Callable[[Sequence[ScoredId]], Mapping[str, float]],
) -> dict[str, float]:
    filled = _count_positive(legs, weights)
    total = sum(weights[name] for name in filled)
    if total <= 0:
        return {}
    fused: dict[str, float] = {}
    for name, leg in filled.items():
        share = weights[name] / total
        for id, score in scaled(leg).items():
            fused[id] = fused.get(id, 0.0) + share * score
    return fused


def _count_positive(legs: Mapping[str, Sequence[ScoredId]], weights: Mapping[str, float]) -> dict[str, Sequence[ScoredId]]:
    """Return the legs that are not empty and have a weight above 0."""
    return {name: leg for name, leg in legs.items() if leg and weights[name] > 0}


def rank_scores(scores: Mapping[str, float] | Iterable[tuple[str, float]]) -> list[ScoredId]:
    """Return the ids by descending score, equal scores by id."""
    pairs = scores.items() if isinstance(scores, Mapping) else scores
    # Plain tuples: sorting them with a key function takes twice as long.
    return [ScoredId(id, -negative) for negative, id in sorted([(-score, id) for id, score in pairs])]


K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QuestionCoverage(Generic[K]):
    """The question's terms that each passage contains, and the weight of each term. Weights sum to 1."""

    held: Mapping[K, frozenset[int]]
    weights: Mapping[int, float]

    def of(self, terms: Set[int]) -> float:
        """Return the weight of ``terms``, in [0, 1]."""
        return sum(self.weights[term] for term in terms)

    def weigh_added_terms(self, source: K, target: K) -> float:
        """Return the weight of the question's terms that ``target`` has and ``source`` lacks."""
        return self.of(self.held.get(target, frozenset()) - self.held.get(source, frozenset()))

    def number_passages(self, numbers: Mapping[K, int]) -> QuestionCoverage[int]:
        """Return the same coverage keyed by the passages' numbers. Passages without a number are left out."""
        return QuestionCoverage({numbers[key]: terms for key, terms in self.held.items() if key in numbers}, self.weights)


def list_terms(question: Set[int], passages: Mapping[K, NDArray[np.int64]]) -> dict[K, frozenset[int]]:
    """Return the question's terms that each passage contains. All passages are compared at once."""
    if not passages:
        return {}
    lengths = np.array([len(terms) for terms in passages.values()])
    all_terms = np.concatenate(list(passages.values()))
    positions = np.flatnonzero(np.isin(all_terms, np.array(list(question), dtype=np.int64)))
    owners = np.searchsorted(np.cumsum(lengths), positions, side="right")
    terms_of_passages: list[list[int]] = [[] for _ in passages]
    for owner, term in zip(owners.tolist(), all_terms[positions].tolist(), strict=True):
        terms_of_passages[owner].append(term)
    return {key: frozenset(terms) for key, terms in zip(passages, terms_of_passages, strict=True)}


def cover(question: frozenset[int], passages: Mapping[K, frozenset[int]]) -> QuestionCoverage[K]:
    """Weigh the question's terms by their rarity among the passages.

    The passages serve as a sample of the corpus, so no vocabulary is stored. A term that all passages contain weighs little, a
    term that no passage contains weighs most.
    """
    shared = {passage: question & terms for passage, terms in passages.items()}
    count = len(passages)
    frequency = Counter(chain.from_iterable(shared.values()))
    weight_of = {df: float(np.log1p((count - df + 0.5) / (df + 0.5))) for df in {0, *frequency.values()}}
    raw = {term: weight_of[frequency[term]] for term in question}
    total = sum(raw.values())
    return QuestionCoverage(
        shared, {term: weight / total for term, weight in raw.items()} if total > 0 else dict.fromkeys(raw, 0.0)
    )


def best_coverage(terms: Callable[[str], frozenset[int]], question: str, texts: Iterable[str]) -> float:
    """Return the largest share of the question's term weight that one text contains.

    Args:
        terms: function from a text to its BM25 terms (`VectorStore.terms`).
    """
    passages = {number: terms(text) for number, text in enumerate(texts)}
    coverage = cover(terms(question), passages)
    return max((coverage.of(terms) for terms in coverage.held.values()), default=0.0)


COVERAGE_SHARE = 0.5
MEASURED = 5
"""Number of top hits that the relevance is measured on, regardless of the request's limit."""


def relevance(cosine: float, coverage: float, calibration: Calibration) -> float:
    """Return the relevance in [0, 1].

    Args:
        cosine: cosine of the question and the nearest passage, in [-1, 1].
        coverage: largest share of the question's term weight that one passage contains, in [0, 1].
        calibration: of the encoder of question and passage.
    """
    closeness = calibration.questions.convert_cosine(cosine)
    return max(0.0, min(1.0, (max(closeness, 0.0) + COVERAGE_SHARE * coverage) / (1.0 + COVERAGE_SHARE)))
