"""Metrics of an answer's text."""

from __future__ import annotations

import pytest

from agentic_rag_backend.evaluation.answer_metrics import contains_answer, token_f1


def test_words_count_and_nothing_else() -> None:
    assert contains_answer("It was led by Mara  VENN. [1]", ["mara venn"])
    assert not contains_answer("It was led by Mara Vennings.", ["Mara Venn"])
    assert not contains_answer("anything", [""])
    assert token_f1("The tide [2]", "tide") == 1.0
    assert token_f1("tide and time", "the tide") == pytest.approx(0.5)
    assert token_f1("", "") == 1.0
    assert token_f1("tide", "") == 0.0
