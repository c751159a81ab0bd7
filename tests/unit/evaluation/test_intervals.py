"""Intervals against the theory of the mean, and the permutation test against exact values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.evaluation.reports.intervals import estimate_mean, permutation_p


def test_the_interval_is_that_of_the_normal_distribution_for_many_values() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.2, 2000)
    estimate = estimate_mean(values)
    margin = 1.96 * values.std() / np.sqrt(len(values))
    assert estimate.value == pytest.approx(values.mean())
    assert (estimate.low, estimate.high) == pytest.approx((values.mean() - margin, values.mean() + margin), abs=0.001)
    assert estimate_mean(values) == estimate, "equal values have equal intervals"


def test_intervals_cover_the_true_mean_as_often_as_they_say() -> None:
    random = np.random.default_rng(2)
    estimates = [estimate_mean(random.binomial(1, 0.7, 60).astype(float)) for _ in range(100)]
    assert 88 <= sum(estimate.low <= 0.7 <= estimate.high for estimate in estimates) <= 100


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_the_mean_is_inside(values: list[float]) -> None:
    estimate = estimate_mean(np.array(values))
    assert min(values) - 1e-9 <= estimate.low <= estimate.value + 1e-9
    assert estimate.value - 1e-9 <= estimate.high <= max(values) + 1e-9


def test_the_test_is_exact_for_few_differences() -> None:
    # Of the 8 signs of three equal differences, two are as extreme.
    assert permutation_p(np.array([1.0, 1.0, 1.0, 0.0])) == pytest.approx(0.25)
    assert permutation_p(np.array([2.0, -1.0])) == pytest.approx(1.0)
    assert permutation_p(np.zeros(5)) == 1.0
    assert permutation_p(np.full(40, 0.1)) < 0.01
    with pytest.raises(ValueError, match="no values"):
        estimate_mean(np.zeros(0))
