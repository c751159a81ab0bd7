"""Fuses ranked lists of scored ids. Ties are broken by id."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

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
