"""Metrics of estimated chances: how well they separate right from wrong answers, and how well they are calibrated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = Sequence[float] | NDArray[np.float64]
BINS = 10
"""Bins of equal width of the calibration error."""


def auroc(right: Floats, wrong: Floats) -> float:
    """Return the chance that a right answer has a larger estimate than a wrong one; equal estimates count one half."""
    ordered = np.sort(np.asarray(wrong, dtype=float))
    below = np.searchsorted(ordered, right, side="left") + np.searchsorted(ordered, right, side="right")
    return float(below.mean() / 2 / len(ordered))


def calibration_error(estimates: Floats, right: Sequence[bool]) -> float:
    """Return the expected calibration error: mean difference of estimate and share of right answers, over ten bins."""
    return sum(share * abs(estimate - observed) for share, estimate, observed in reliability(estimates, right))


def reliability(estimates: Floats, right: Sequence[bool]) -> list[tuple[float, float, float]]:
    """Return, for each bin that is not empty, its share of the answers, their mean estimate and the share that is right."""
    chances, truth = np.asarray(estimates, dtype=float), np.asarray(right, dtype=float)
    bins = np.minimum((chances * BINS).astype(int), BINS - 1)
    chosen = [bins == number for number in range(BINS)]
    return [
        (float(chosen_bin.mean()), float(chances[chosen_bin].mean()), float(truth[chosen_bin].mean()))
        for chosen_bin in chosen
        if chosen_bin.any()
    ]
