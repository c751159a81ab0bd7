from __future__ import annotations

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.query import BALANCED, LegWeights, LevelWeights
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.options.leg_weights import LEG_WEIGHTS, PRESETS, choose_weights, leg_weights_of, preset_for


@pytest.mark.parametrize(
    ("given_weights", "chosen"),
    [
        ((None, None), BALANCED),
        ((0.7, None), LevelWeights(0.7, 0.3)),
        ((None, 0.7), LevelWeights(0.3, 0.7)),
        ((0.7, 0.3), LevelWeights(0.7, 0.3)),
        ((0.0, None), LevelWeights(0.0, 1.0)),
        ((None, 0.0), LevelWeights(1.0, 0.0)),
        ((0, 1), LevelWeights(0.0, 1.0)),
        ((1.0, None), LevelWeights(1.0, 0.0)),
    ],
)
def test_one_weight_makes_the_other(given_weights: tuple[float | None, float | None], chosen: LevelWeights) -> None:
    weights, warnings = choose_weights(*given_weights)
    assert (weights.low, weights.high) == pytest.approx((chosen.low, chosen.high))
    assert warnings == ()


@pytest.mark.parametrize(
    ("given_weights", "share"), [((0.9, 0.9), 0.5), ((0.2, 0.6), 0.25), ((1.0, 1.0), 0.5), ((0.1, 0.0), 1.0)]
)
def test_other_sums_are_normalised_and_said_so(given_weights: tuple[float, float], share: float) -> None:
    with structlog.testing.capture_logs() as logged:
        weights, warnings = choose_weights(*given_weights)
    assert weights.low == pytest.approx(share)
    assert len(warnings) == 1
    assert "normalised" in warnings[0]
    assert [entry["event"] for entry in logged] == ["dual_level_weights_normalised"]


UNIT = st.floats(0, 1)


@given(st.none() | UNIT, st.none() | UNIT, st.none() | st.sampled_from(sorted(PRESETS)))
def test_weights_sum_to_one(low_weight: float | None, high_weight: float | None, preset: str | None) -> None:
    if low_weight == 0 and high_weight == 0:
        return
    weights, _ = choose_weights(low_weight, high_weight, preset=preset)
    assert weights.low + weights.high == pytest.approx(1.0)
    assert 0.0 <= weights.low <= 1.0
    assert 0.0 <= weights.high <= 1.0
    if low_weight and high_weight:
        assert weights.low / weights.high == pytest.approx(low_weight / high_weight)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_sum_to_one_and_stand_alone(name: str) -> None:
    assert PRESETS[name].low + PRESETS[name].high == pytest.approx(1.0)
    assert choose_weights(None, None, preset=name, default=LevelWeights(0.9, 0.1)) == (PRESETS[name], ())


def test_what_is_given_wins_over_a_preset_and_a_preset_over_the_default() -> None:
    assert choose_weights(0.9, None, preset="conceptual")[0].low == 0.9
    assert choose_weights(None, None, default=LevelWeights(0.25, 0.75))[0] == LevelWeights(0.25, 0.75)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -0.1, 1.1])
@pytest.mark.parametrize("position", [0, 1])
def test_weights_outside_their_range_are_refused(bad: float, position: int) -> None:
    values: list[float | None] = [None, None]
    values[position] = bad
    with pytest.raises(InvalidRequest, match=rf"{('low', 'high')[position]}_weight must be a number from 0 to 1; got {bad}"):
        choose_weights(*values)


def test_bad_weights_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"must not both be 0; got 0\.0 and 0\.0"):
        choose_weights(0.0, 0.0)

    with pytest.raises(InvalidRequest, match="preset must be one of factoid, conceptual, balanced, research; got 'facts'"):
        choose_weights(0.5, 0.5, preset="facts")
    with pytest.raises(InvalidRequest, match="got ''"):
        choose_weights(None, None, preset="")


def test_the_form_of_a_question_tells_its_weights() -> None:
    for question, preset in [
        ("Why was the harbour closed?", "conceptual"),
        ("What role does the bank play?", "conceptual"),
        ("Who opened the quay?", "factoid"),
        ("When was the quay opened?", "factoid"),
        ("How many boats are there?", "factoid"),
        ("harbour quay", None),
    ]:
        assert preset_for(question) == preset
        assert preset is None or preset in PRESETS


def test_literal_queries_lean_to_bm25() -> None:
    for asked, text, default, dense, by in [
        (None, "who leads the project", LEG_WEIGHTS, 0.7, "settings"),
        (None, "pump KX-4471", LEG_WEIGHTS, 0.3, "query_form"),
        (None, 'who said "no tide waits"', LEG_WEIGHTS, 0.5, "query_form"),
        (None, 'who said "no tide waits" of KX-4471', LEG_WEIGHTS, 0.3, "query_form"),
        (None, 'who said "no tide waits"', LegWeights(0.4, 0.6), 0.4, "settings"),
        (LegWeights(0.9, 0.1), "pump KX-4471", LEG_WEIGHTS, 0.9, "request"),
        (None, "pump KX-4471", LegWeights(0.2, 0.8), 0.2, "settings"),
        (None, "pump KX-4471", LegWeights(1.0, 0.0), 1.0, "settings"),
    ]:
        chosen = leg_weights_of(asked, text, default)
        assert chosen.weights == LegWeights(dense, chosen.weights.sparse)
        assert chosen.weights.dense + chosen.weights.sparse == pytest.approx(1.0)
        assert chosen.by == by


def test_scripts_that_the_embedder_does_not_read_lean_to_bm25() -> None:
    for text, languages, by in [
        ("谁粉刷了灯塔？", ("en",), "query_script"),
        ("кто покрасил маяк", ("en",), "query_script"),
        ("谁粉刷了灯塔？", None, "settings"),
        ("谁粉刷了灯塔？", ("en", "zh"), "settings"),
        ("wer hat den Leuchtturm gestrichen", ("en",), "settings"),
        ("who painted the 灯塔", ("en",), "settings"),
        ("?!", ("en",), "settings"),
    ]:
        assert leg_weights_of(None, text, LEG_WEIGHTS, languages=languages).by == by
