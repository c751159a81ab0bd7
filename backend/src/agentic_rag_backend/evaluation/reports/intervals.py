"""Intervals and significance of means over the same cases: bootstrap by cases, and permutation of signs.

A difference of two configurations is resampled on the cases that both have (Sakai, "Statistical reform in information
retrieval?", 2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
PERMUTATIONS = 2000
LEVEL = 0.95
"""Share of resamples inside of an interval."""
_AT_ONCE = 2_000_000
"""Numbers of a matrix of resamples: 16 MB."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over ``count`` cases with its interval ``[low, high]``."""

    value: float
    low: float
    high: float
    count: int

    def as_result(self) -> dict[str, object]:
        """Return the figures by name, rounded to six places."""
        bounds = [round(self.low, 6), round(self.high, 6)]
        return {"value": round(self.value, 6), "interval": bounds, "count": self.count}


def estimate_mean(values: Floats) -> MeanEstimate:
    """Return the mean of one or more values with its percentile bootstrap interval. Equal values give equal intervals.

    Raises:
        ValueError: there is no value.
    """
    if not len(values):
        raise ValueError("the mean of no values is not defined")
    mean = float(values.mean())
    if np.ptp(values) == 0:
        return MeanEstimate(mean, mean, mean, len(values))
    from scipy.stats import bootstrap  # takes a second to import

    batch = max(1, _AT_ONCE // len(values))
    resampled = bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, confidence_level=LEVEL, method="percentile", batch=batch, rng=0
    )
    low, high = resampled.confidence_interval
    return MeanEstimate(mean, float(low), float(high), len(values))


def permutation_p(differences: Floats) -> float:
    """Return the chance of a mean difference at least as large if the signs were random, in (0, 1]: a two-sided test.

    Cases without a difference have no sign. Few cases are tested exactly.
    """
    moved = differences[differences != 0]
    if len(moved) < 2:
        return 1.0
    from scipy.stats import permutation_test

    batch = max(1, _AT_ONCE // len(moved))
    result = permutation_test(
        (moved,), np.mean, permutation_type="samples", vectorized=True, n_resamples=PERMUTATIONS, batch=batch, rng=0
    )
    return float(result.pvalue)


def is_significant(difference: Mapping[str, Any]) -> bool:
    """Return whether a difference, with ``interval`` and ``p``, is more than chance.

    The interval of fewer than six cases may be too narrow, even without width, so the permutation test must agree with it.
    """
    low, high = difference["interval"]
    return bool((low > 0 or high < 0) and difference["p"] <= 1 - LEVEL)
