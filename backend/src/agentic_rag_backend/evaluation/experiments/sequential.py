"""A test of two means that stays valid however often it is read.

The mixture sequential probability ratio test of Johari, Koomen, Pekelis and Walsh, "Peeking at A/B Tests: Why It Matters, and
What to Do About It" (KDD 2017), section 5: the difference of the means is compared with 0 by a likelihood ratio that is averaged
over a normal distribution of differences. Under equal means, this ratio is a martingale that begins at 1. By Ville's inequality,
it ever reaches 1 ÷ α with a chance of at most α. So an experiment may end at the first look at which p is at most α, and the
interval covers the difference at all looks together. A p-value of a fixed number of cases has no such property.

The ratio needs means that are nearly normal: `LEAST_CASES` of each configuration are required. The variance is that around the
common mean, which is at least as large as the variance within the configurations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agentic_rag_backend.domain.experiments import Sums

LEAST_CASES = 50
"""Cases that each configuration must have. With fewer, p is 1, and there is no interval."""
SPREAD = 0.1
"""Standard deviation of the differences over which the ratio is averaged: .1 of a rate, or a tenth of a time or a cost. Any fixed
value is valid; differences near it are detected with the fewest cases."""


@dataclass(frozen=True, slots=True)
class SequentialDifference:
    """A difference of two means with its always-valid p in (0, 1], and the interval of the level 1 − α; None: too few cases."""

    value: float
    p: float
    interval: tuple[float, float] | None


def compare_means(baseline: Sums, variant: Sums, *, alpha: float) -> SequentialDifference | None:
    """Return the difference of the variant's mean from that of the baseline. None: one of them has no case.

    Args:
        alpha: the chance that the interval ever misses the difference.
    """
    if not baseline.count or not variant.count:
        return None
    difference = variant.total / variant.count - baseline.total / baseline.count
    if min(baseline.count, variant.count) < LEAST_CASES:
        return SequentialDifference(difference, 1.0, None)
    variance = _find_variance(baseline, variant) * (1 / baseline.count + 1 / variant.count)
    if variance <= 0:
        return SequentialDifference(difference, 1.0, (difference, difference))
    wide = variance + SPREAD**2
    log_ratio = 0.5 * math.log(variance / wide) + difference**2 * SPREAD**2 / (2 * variance * wide)
    margin = math.sqrt(variance * wide / SPREAD**2 * (2 * math.log(1 / alpha) + math.log(wide / variance)))
    return SequentialDifference(difference, math.exp(-max(log_ratio, 0.0)), (difference - margin, difference + margin))


def _find_variance(baseline: Sums, variant: Sums) -> float:
    """Return the variance of all cases around their common mean."""
    count, total = baseline.count + variant.count, baseline.total + variant.total
    return (baseline.squares + variant.squares - total**2 / count) / (count - 1)
