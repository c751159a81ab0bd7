"""Ranking metrics over a ranked list of ids and the set of relevant ids."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def recall_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of ``relevant`` among the first ``k``, in [0, 1]; 1.0 if nothing is relevant."""
    if not relevant:
        return 1.0
    return len(set(ranked[:k]) & set(relevant)) / len(set(relevant))


def all_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return 1.0 if every relevant id is among the first ``k``, else 0.0."""
    return float(set(relevant) <= set(ranked[:k]))


def ndcg_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the normalised discounted cumulative gain of binary relevance (Järvelin and Kekäläinen 2002), in [0, 1]."""
    relevant_ids = set(relevant)
    if not relevant_ids:
        return 1.0
    gain = sum(1.0 / math.log2(rank + 1) for rank, id in enumerate(ranked[:k], start=1) if id in relevant_ids)
    ideal = sum(1.0 / math.log2(rank + 1) for rank in range(1, min(len(relevant_ids), k) + 1))
    return gain / ideal


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 ÷ the rank of the first relevant id, in [0, 1]; 0.0 if none is in the list, 1.0 if nothing is relevant."""
    relevant_ids = set(relevant)
    if not relevant_ids:
        return 1.0
    return next((1.0 / rank for rank, id in enumerate(ranked, start=1) if id in relevant_ids), 0.0)


def find_percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of ``values`` do not exceed (nearest rank).

    Raises:
        ValueError: there are no values, or ``share`` is outside (0, 1].
    """
    if not values or not 0.0 < share <= 1.0:
        raise ValueError(f"needs values and a share in (0, 1]; got {len(values)} values and {share}")
    return sorted(values)[math.ceil(share * len(values)) - 1]
