from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client.http import models
from qdrant_client.hybrid.fusion import distribution_based_score_fusion

from agentic_rag_backend.retrieval.scoring import FUSIONS as BY_NAME
from agentic_rag_backend.retrieval.scoring import (
    RRF_K,
    Fuse,
    min_max,
    rank_scores,
    scale_by_distribution,
    weighted_dbsf,
    weighted_min_max,
    weighted_rrf,
)
from agentic_rag_backend.stores.vector.base import ScoredId

SCORES = st.floats(-1e6, 1e6, allow_nan=False)
LEG = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), SCORES, max_size=12).map(
    lambda scores: [ScoredId(id, score) for id, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]
)
WEIGHTS = {"dense": 0.7, "sparse": 0.3}
FUSIONS = pytest.mark.parametrize("fuse", BY_NAME.values(), ids=BY_NAME)


def leg(**scores: float) -> list[ScoredId]:
    return [ScoredId(id, score) for id, score in scores.items()]


def test_min_max_spans_zero_to_one() -> None:
    assert min_max(leg(a=4.0, b=3.0, c=2.0)) == {"a": 1.0, "b": 0.5, "c": 0.0}

    assert min_max(leg(a=0.2, b=0.2)) == {"a": 1.0, "b": 1.0}
    assert min_max(leg(a=-3.0)) == {"a": 1.0}

    assert min_max([]) == {}


@given(LEG)
def test_min_max_keeps_the_order_and_the_bounds(found: list[ScoredId]) -> None:
    scaled = min_max(found)
    assert all(0.0 <= score <= 1.0 for score in scaled.values())
    values = [scaled[item.id] for item in found]
    assert values == sorted(values, reverse=True)
    assert not found or max(values) == 1.0


@given(LEG)
def test_min_max_does_not_depend_on_scale_or_offset(found: list[ScoredId]) -> None:
    # With powers of two, the arithmetic is exact.
    moved = [ScoredId(item.id, item.score * 4) for item in found]
    assert min_max(moved) == min_max(found)


@FUSIONS
def test_an_empty_leg_leaves_the_other_whole(fuse: Fuse) -> None:
    only = leg(a=3.0, b=2.0, c=1.0)
    both = fuse({"dense": only, "sparse": []}, WEIGHTS)
    assert both == pytest.approx(fuse({"dense": only}, {"dense": 1.0}))
    assert rank_scores(both)[0].id == "a"
    assert fuse({"dense": [], "sparse": []}, WEIGHTS) == {}
    assert fuse({}, WEIGHTS) == {}


@FUSIONS
def test_weights_of_zero_find_nothing(fuse: Fuse) -> None:
    assert fuse({"dense": leg(a=1.0), "sparse": []}, {"dense": 0.0, "sparse": 1.0}) == {}


@FUSIONS
@given(dense=LEG, sparse=LEG)
def test_every_id_of_any_leg_has_a_score_in_bounds(fuse: Fuse, dense: list[ScoredId], sparse: list[ScoredId]) -> None:
    fused = fuse({"dense": dense, "sparse": sparse}, WEIGHTS)
    assert set(fused) == {item.id for item in [*dense, *sparse]}
    assert all(0.0 <= score <= 1.0 + 1e-12 for score in fused.values())


@FUSIONS
@given(dense=LEG, sparse=LEG)
def test_the_order_of_legs_does_not_matter(fuse: Fuse, dense: list[ScoredId], sparse: list[ScoredId]) -> None:
    one = fuse({"dense": dense, "sparse": sparse}, WEIGHTS)
    other = fuse({"sparse": sparse, "dense": dense}, dict(reversed(WEIGHTS.items())))
    assert rank_scores(one) == rank_scores(other)


@given(dense=LEG, sparse=LEG)
def test_min_max_does_not_depend_on_the_order_within_a_leg(dense: list[ScoredId], sparse: list[ScoredId]) -> None:
    one = weighted_min_max({"dense": dense, "sparse": sparse}, WEIGHTS)
    assert weighted_min_max({"dense": dense[::-1], "sparse": sparse[::-1]}, WEIGHTS) == one


def test_weighted_min_max_is_the_weighted_sum() -> None:
    fused = weighted_min_max({"dense": leg(a=1.0, b=0.5, c=0.0), "sparse": leg(b=9.0, d=1.0)}, WEIGHTS)
    assert fused == pytest.approx({"a": 0.7, "b": 0.7 * 0.5 + 0.3, "c": 0.0, "d": 0.0})


def test_weighted_rrf_reads_ranks_only() -> None:
    one = weighted_rrf({"dense": leg(a=1.0, b=0.9), "sparse": leg(b=70.0, c=1.0)}, WEIGHTS)
    best = 1.0 / (RRF_K + 1)
    assert one["a"] == pytest.approx(0.7)
    assert one["b"] == pytest.approx((0.7 / (RRF_K + 2) + 0.3 / (RRF_K + 1)) / best)
    assert one == weighted_rrf({"dense": leg(a=0.3, b=0.1), "sparse": leg(b=5.0, c=4.0)}, WEIGHTS)


def test_distribution_based_scales_three_deviations_on_each_side_of_the_mean() -> None:
    scaled = scale_by_distribution(leg(a=3.0, b=2.0, c=1.0))  # mean 2, sample deviation 1
    assert scaled == pytest.approx({"a": 4 / 6, "b": 3 / 6, "c": 2 / 6})
    assert scale_by_distribution([]) == {}
    assert scale_by_distribution(leg(a=7.0)) == {"a": 0.5}
    assert scale_by_distribution(leg(a=7.0, b=7.0)) == {"a": 0.5, "b": 0.5}

    scaled = scale_by_distribution(leg(far=1000.0, **{f"n{number}": float(number) for number in range(30)}))
    assert scaled["far"] == 1.0
    assert min(scaled.values()) > 0.4


# Only of eleven scores or more can one be beyond three deviations. We cut it to 1, and the client does not.
@given(dense=LEG.map(lambda leg: leg[:10]), sparse=LEG.map(lambda leg: leg[:10]))
def test_dbsf_with_equal_weights_ranks_as_the_client_of_qdrant(dense: list[ScoredId], sparse: list[ScoredId]) -> None:
    ours = weighted_dbsf({"dense": dense, "sparse": sparse}, {"dense": 0.5, "sparse": 0.5})
    legs = [[models.ScoredPoint(id=item.id, version=0, score=item.score) for item in found] for found in (dense, sparse)]
    theirs = {str(point.id): point.score for point in distribution_based_score_fusion(legs, limit=100)}
    filled = sum(1 for found in (dense, sparse) if found) or 1
    assert ours == pytest.approx({id: score / filled for id, score in theirs.items()}, abs=1e-6)


def test_weighted_dbsf_is_the_weighted_sum() -> None:
    fused = weighted_dbsf({"dense": leg(a=3.0, b=2.0, c=1.0), "sparse": leg(b=9.0)}, WEIGHTS)
    assert fused == pytest.approx({"a": 0.7 * 4 / 6, "b": 0.7 * 0.5 + 0.3 * 0.5, "c": 0.7 * 2 / 6})


@given(st.dictionaries(st.text(max_size=3), st.sampled_from([0.0, 0.5, 1.0]), max_size=10), st.randoms())
def test_ranked_breaks_ties_by_id_whatever_came_first(scores: dict[str, float], random: Random) -> None:
    pairs = list(scores.items())
    random.shuffle(pairs)
    order = rank_scores(pairs)
    assert order == rank_scores(scores)
    assert [(item.score, item.id) for item in order] == sorted(
        ((score, id) for id, score in scores.items()), key=lambda pair: (-pair[0], pair[1])
    )
