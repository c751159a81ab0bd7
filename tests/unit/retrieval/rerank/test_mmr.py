"""Maximal marginal relevance: the greedy choice, its order and its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.models.embedding.calibration import BUNDLED_SCALE
from agentic_rag_backend.retrieval.passages.passage_features import marginal_relevances, similarities

SHARES = st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0])
POOLS = st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.9, 1.0]), st.integers(0, 5)), min_size=1, max_size=12)


def matrix(directions: list[int]) -> np.ndarray:
    """Return the similarities of unit vectors in the plane, 18 degrees between neighbouring numbers."""
    angles = [number * np.pi / 10 for number in directions]
    return similarities([np.array([np.cos(each), np.sin(each)], dtype=np.float32) for each in angles], BUNDLED_SCALE)


def test_a_repetition_comes_after_something_new() -> None:
    values = marginal_relevances(["a", "a2", "b"], [1.0, 0.95, 0.6], matrix([0, 0, 5]), 0.7)
    assert list(values) == ["a", "b", "a2"]
    assert values["a"] == pytest.approx(1.0)
    assert values["b"] == pytest.approx(0.7 * 0.6 + 0.3)
    assert values["a2"] == pytest.approx(0.7 * 0.95)

    assert list(marginal_relevances(["a", "a2", "b"], [1.0, 0.95, 0.6], matrix([0, 0, 5]), 1.0)) == ["a", "a2", "b"]

    similar = similarities([np.array([1.0, 0.0], dtype=np.float32), None, np.array([-1.0, 0.0], dtype=np.float32)], BUNDLED_SCALE)
    assert similar.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert similarities([None, None], BUNDLED_SCALE).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@given(pool=POOLS, share=SHARES)
def test_values_fall_within_their_bounds_and_everything_is_chosen_once(pool: list[tuple[float, int]], share: float) -> None:
    ids = [f"c{number}" for number in range(len(pool))]
    values = marginal_relevances(ids, [score for score, _ in pool], matrix([direction for _, direction in pool]), share)
    assert sorted(values) == sorted(ids)
    held = list(values.values())
    assert held == sorted(held, reverse=True)
    assert all(0 <= each <= 1 for each in held)


@given(pool=POOLS, share=SHARES)
def test_each_choice_is_the_best_of_those_left(pool: list[tuple[float, int]], share: float) -> None:
    ids = [f"c{number}" for number in range(len(pool))]
    similar = matrix([direction for _, direction in pool])
    order = [int(id[1:]) for id in marginal_relevances(ids, [score for score, _ in pool], similar, share)]
    for place, chosen in enumerate(order):
        before = order[:place]

        def value(number: int, before: list[int] = before) -> float:
            nearest = max((similar[number, each] for each in before), default=0.0)
            return share * pool[number][0] - (1 - share) * float(nearest)

        assert value(chosen) >= max(map(value, order[place:])) - 1e-12
