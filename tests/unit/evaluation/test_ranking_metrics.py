from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.evaluation.ranking_metrics import all_at, find_percentile, ndcg_at, recall_at

IDS = st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True)


def test_recall() -> None:
    for ranked, relevant, k, recall, everything in [
        ("abc", "a", 1, 1.0, 1.0),
        ("abc", "ab", 1, 0.5, 0.0),
        ("abc", "ab", 2, 1.0, 1.0),
        ("abc", "xc", 3, 0.5, 0.0),
        ("", "a", 5, 0.0, 0.0),
        ("abc", "", 3, 1.0, 1.0),
        ("abc", "a", 0, 0.0, 0.0),
        ("abc", "aab", 3, 1.0, 1.0),
    ]:
        assert recall_at(list(ranked), list(relevant), k) == recall
        assert all_at(list(ranked), list(relevant), k) == everything


def test_ndcg_by_hand() -> None:
    gained = 1 / math.log2(2) + 1 / math.log2(4)
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    assert ndcg_at(["a", "x", "b"], {"a", "b"}, 10) == pytest.approx(gained / ideal)
    assert ndcg_at(["x", "y"], {"a"}, 10) == 0.0
    assert ndcg_at([], {"a"}, 10) == 0.0
    assert ndcg_at(["x"], [], 10) == 1.0
    assert ndcg_at(["a", "b"], ["a", "b", "c"], 2) == 1.0


def test_values_of_ir_measures() -> None:
    """The expected values are those of ir-measures 0.4.3 (trec_eval); 299 further random rankings were equal, too."""
    ranked, relevant = ["7", "9", "3", "12", "15", "2", "1", "13", "0", "6"], ["9", "1", "7", "16", "11"]
    assert ndcg_at(ranked, relevant, 5) == pytest.approx(0.5531464700081437)
    assert ndcg_at(ranked, relevant, 10) == pytest.approx(0.6661998717660157)
    assert recall_at(ranked, relevant, 5) == 0.4


@given(IDS, st.sets(st.sampled_from("abcdefgh"), min_size=1), st.integers(1, 10))
def test_bounds_and_growth(ranked: list[str], relevant: set[str], k: int) -> None:
    for metric in (recall_at, ndcg_at, all_at):
        assert 0.0 <= metric(ranked, relevant, k) <= 1.0
    assert recall_at(ranked, relevant, k) <= recall_at(ranked, relevant, k + 1)
    assert (all_at(ranked, relevant, k) == 1.0) == (recall_at(ranked, relevant, k) == 1.0)
    best_first = sorted(ranked, key=lambda id: id not in relevant)
    assert ndcg_at(ranked, relevant, k) <= ndcg_at(best_first, relevant, k)


@pytest.mark.parametrize(("share", "value"), [(0.5, 5), (0.51, 6), (0.9, 9), (0.95, 10), (1.0, 10), (0.1, 1), (0.01, 1)])
def test_percentile_is_the_nearest_rank(share: float, value: int) -> None:
    assert find_percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], share) == value


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0.01, 1.0))
def test_percentile_is_the_least_value_that_covers_the_share(values: list[float], share: float) -> None:
    found = find_percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.1), ([1.0], -0.5), ([1.0], float("nan"))])
def test_percentile_of_nothing_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match=f"got {len(values)} values"):
        find_percentile(values, share)
