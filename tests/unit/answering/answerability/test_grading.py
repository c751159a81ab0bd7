"""Grades of results by answerability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_passages import hit_of

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.answering.answerability.grading import ANSWERED, RELEVANT, AnswerabilityGrader, grade_of
from agentic_rag_backend.answering.answerability.judge import Judgement
from agentic_rag_backend.language.questions.kinds import AnswerKind


class Judge:
    """Judges that the sentences of some passages answer."""

    def __init__(self, confidence: float, *answering: int) -> None:
        self.confidence, self.answering = confidence, answering
        self.read: list[tuple[str, float]] = []

    async def judge(self, question: str, passages: Sequence[PassageText]) -> Judgement:
        self.read = [(passage.text, passage.score) for passage in passages]
        return Judgement(self.confidence, (), AnswerKind.THEME, frozenset(self.answering))


async def grades(judge: Judge) -> list[float]:
    return await AnswerabilityGrader(cast("Any", judge)).grade(
        "What?", [hit_of("one", 0.8), hit_of("two", 0.4), hit_of("three", 0.2)]
    )


async def test_results_with_an_answering_sentence_have_the_grade_of_the_confidence() -> None:
    judge = Judge(ANSWERED, 1)
    assert await grades(judge) == [0.0, pytest.approx(RELEVANT), 0.0]
    assert judge.read == [("one", 1.0), ("two", 0.5), ("three", 0.25)]
    # An account rests on all passages.
    assert await grades(Judge(1.0, 0, 1, 2)) == [1.0, 1.0, 1.0]
    assert await grades(Judge(0.0, 0, 1, 2)) == [0.0, 0.0, 0.0]


@given(st.floats(0, 1), st.floats(0, 1))
def test_grades_rise_with_the_confidence(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0.0 <= grade_of(low) <= grade_of(high) <= 1.0
    assert (grade_of(one) >= RELEVANT) == (one >= ANSWERED) or one == pytest.approx(ANSWERED)
