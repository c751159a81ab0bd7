"""The test of two means keeps its level under repeated looks, covers the difference, and finds planted differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.experiments import ActiveExperiment, Sums
from agentic_rag_backend.evaluation.experiments.sequential import LEAST_CASES, compare_means

ALPHA = 0.05
NO_CASE = Sums(count=0, total=0.0, squares=0.0)


def sums_of(values: np.ndarray) -> Sums:
    return Sums(count=len(values), total=float(values.sum()), squares=float((values**2).sum()))


def is_ever_significant(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether a look after each ten cases finds a difference."""
    for count in range(LEAST_CASES, len(first) + 1, 10):
        compared = compare_means(sums_of(first[:count]), sums_of(second[:count]), alpha=ALPHA)
        if compared is not None and compared.p <= ALPHA:
            return True
    return False


@pytest.mark.parametrize("kind", ["rare", "often", "skewed"])
def test_equal_configurations_are_seldom_told_apart_at_any_look(kind: str) -> None:
    """The result of each experiment is read 96 times."""
    random, repetitions = np.random.default_rng(7), 200
    size = (repetitions, 2, 1000)
    values = {
        "rare": (random.random(size) < 0.05).astype(float),
        "often": (random.random(size) < 0.5).astype(float),
        "skewed": np.log(random.lognormal(5, 1, size)),
    }[kind]
    false = sum(is_ever_significant(first, second) for first, second in values)
    assert false <= 0.05 * repetitions + 3 * math.sqrt(0.05 * 0.95 * repetitions)


def test_a_planted_difference_ends_an_experiment() -> None:
    random = np.random.default_rng(3)
    ended = [
        is_ever_significant((random.random(1000) < 0.5).astype(float), (random.random(1000) < 0.65).astype(float))
        for _ in range(40)
    ]
    assert sum(ended) >= 36


@given(st.integers(LEAST_CASES, 500), st.integers(LEAST_CASES, 500), st.floats(0.02, 0.98), st.floats(0.02, 0.98))
def test_p_and_interval_agree(first: int, second: int, low: float, high: float) -> None:
    """p is at most alpha if and only if the interval excludes 0. Exchanged configurations exchange the sign."""
    sums = [Sums(count=count, total=count * rate, squares=count * rate) for count, rate in ((first, low), (second, high))]
    compared = compare_means(*sums, alpha=ALPHA)
    assert compared is not None
    assert compared.interval is not None
    below, above = compared.interval
    assert below <= compared.value <= above
    if abs(compared.p - ALPHA) > 1e-9:
        assert (compared.p <= ALPHA) == (below > 0 or above < 0)
    exchanged = compare_means(*reversed(sums), alpha=ALPHA)
    assert exchanged is not None
    assert (exchanged.value, exchanged.p) == (pytest.approx(-compared.value), pytest.approx(compared.p))


def test_few_or_equal_cases_decide_nothing() -> None:
    few, many = sums_of(np.zeros(LEAST_CASES - 1)), sums_of(np.ones(1000))
    assert compare_means(NO_CASE, many, alpha=ALPHA) is None
    compared = compare_means(few, many, alpha=ALPHA)
    assert compared is not None
    assert (compared.value, compared.p, compared.interval) == (1.0, 1.0, None)
    equal = compare_means(many, many, alpha=ALPHA)
    assert equal is not None
    assert (equal.p, equal.interval) == (1.0, (0.0, 0.0))


@given(st.text(min_size=1), st.floats(0.05, 1))
def test_the_assignment_of_a_question_is_stable(question: str, share: float) -> None:
    experiment = ActiveExperiment(id="e", name="e", configurations=({"name": "a"}, {"name": "b"}), share=share)
    assigned = experiment.assign_question("t", question)
    assert experiment.assign_question("t", f"  {question} ") == assigned
    assert assigned is None or assigned.configuration in experiment.configurations


def test_assignments_are_balanced_and_independent_of_other_experiments_and_tenants() -> None:
    def assign(tenant: str, id: str, share: float = 1.0) -> list[str | None]:
        experiment = ActiveExperiment(id=id, name="e", configurations=({"name": "a"}, {"name": "b"}), share=share)
        assigned = (experiment.assign_question(tenant, f"question {number}") for number in range(2000))
        return [None if item is None else str(item.configuration["name"]) for item in assigned]

    one = assign("t", "e")
    assert 900 < one.count("a") < 1100
    for other in (assign("t", "f"), assign("u", "e")):
        assert 900 < sum(left == right for left, right in zip(one, other, strict=True)) < 1100
    part = assign("t", "e", share=0.3)
    assert 500 < 2000 - part.count(None) < 700
    assert all(left in (None, right) for left, right in zip(part, one, strict=True)), "a larger share keeps assignments"
