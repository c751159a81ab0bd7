"""The confidence of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.generation.confidence import (
    account_answerability,
    answerability,
    breadth,
    confidence,
    question_coverage,
)

SHARE = st.floats(0, 1)


@given(SHARE, SHARE, st.integers(0, 9), st.integers(0, 9))
def test_it_is_a_probability(relevance: float, covered: float, kept: int, dropped: int) -> None:
    assert 0.0 <= answerability(relevance, covered) <= 1.0
    assert 0.0 <= confidence(answerability(relevance, covered), kept, dropped) <= 1.0


@given(SHARE, SHARE, SHARE)
def test_it_grows_with_relevance_and_coverage(relevance: float, covered: float, more: float) -> None:
    assert answerability(max(relevance, more), covered) >= answerability(relevance, covered)
    assert answerability(relevance, max(covered, more)) >= answerability(relevance, covered)


def test_dropped_sentences_cost_and_none_kept_is_none() -> None:
    assert confidence(0.9, 2, 0) == pytest.approx(0.9)
    assert confidence(0.9, 1, 1) < 0.9
    assert confidence(0.9, 0, 3) == 0.0


def test_measured_extremes() -> None:
    assert answerability(0.6, 1.0) > 0.99
    assert answerability(0.3, 0.5) < 0.05


def test_names_weigh_double_in_coverage() -> None:
    question = "Where did Ola Brandt work?"
    assert question_coverage(question, ["the work of others"]) == pytest.approx(1 / 5)
    assert question_coverage(question, ["Ola Brandt"]) == pytest.approx(4 / 5)
    assert question_coverage("What is this about?", []) == 1.0


def test_an_account_rests_on_breadth() -> None:
    assert breadth([0.5] * 5) == pytest.approx(0.5)
    assert breadth([0.5, -1.0]) == pytest.approx(0.1), "what is missing counts as nothing"
    assert breadth([0.9, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0]) == pytest.approx(0.26)
    assert account_answerability(0.35) > 0.9
    assert account_answerability(0.27) < 0.1
