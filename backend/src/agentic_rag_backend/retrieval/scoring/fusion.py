"""Fuses ranked lists of scored ids. Ties are broken by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentic_rag_backend.stores.vector.base import ScoredId

RRF_K = 60
"""Rank constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""


def min_max(leg: Sequence[ScoredId]) -> dict[str, float]:
    """Return the scores scaled to [0, 1]; all-equal scores become 1.0."""
    if not leg:
        return {}
    low = min(item.score for item in leg)
    high = max(item.score for item in leg)
    if high <= low:
        return {item.id: 1.0 for item in leg}
    return {item.id: (item.score - low) / (high - low) for item in leg}


def weighted_min_max(legs: Mapping[str, Sequence[ScoredId]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weighted sum of the legs' min-max scores for every id, in [0, 1].

    Weights are normalised over the non-empty legs, so that an empty leg does not halve all scores. Legs of weight 0 are left out.
    """
    filled = _counting(legs, weights)
    total = sum(weights[name] for name in filled)
    if total <= 0:
        return {}
    fused: dict[str, float] = {}
    for name, leg in filled.items():
        share = weights[name] / total
        for id, score in min_max(leg).items():
            fused[id] = fused.get(id, 0.0) + share * score
    return fused


def weighted_rrf(legs: Mapping[str, Sequence[ScoredId]], weights: Mapping[str, float], *, k: int = RRF_K) -> dict[str, float]:
    """Return the weighted reciprocal rank fusion of the legs, divided by its maximum, so in (0, 1]."""
    filled = _counting(legs, weights)
    best = sum(weights[name] for name in filled) / (k + 1)
    if best <= 0:
        return {}
    fused: dict[str, float] = {}
    for name, leg in filled.items():
        for rank, item in enumerate(leg, start=1):
            fused[item.id] = fused.get(item.id, 0.0) + weights[name] / (k + rank) / best
    return fused


def _counting(legs: Mapping[str, Sequence[ScoredId]], weights: Mapping[str, float]) -> dict[str, Sequence[ScoredId]]:
    """Return the legs that are not empty and have a weight above 0."""
    return {name: leg for name, leg in legs.items() if leg and weights[name] > 0}


def ranked(scores: Mapping[str, float] | Iterable[tuple[str, float]]) -> list[ScoredId]:
    """Return the ids by descending score, equal scores by id."""
    pairs = scores.items() if isinstance(scores, Mapping) else scores
    return [ScoredId(id, score) for id, score in sorted(pairs, key=lambda pair: (-pair[1], pair[0]))]
