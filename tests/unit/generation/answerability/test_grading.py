"""Grades of results by answerability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.generation.answerability.evidence import PassageText
from agentic_rag_backend.generation.answerability.grading import ANSWERED, RELEVANT, AnswerabilityGrader, grade_of
from agentic_rag_backend.generation.answerability.judge import Judgement
from agentic_rag_backend.language.questions import AnswerKind


def hit(id: str, score: float) -> Hit:
    place = Location(start_char=0, end_char=4, start_line=1, end_line=1)
    chunk = Chunk(id=id, document_id=id, version=1, ordinal=0, text=id, size_tokens=1, content_hash=id, location=place)
    return Hit(visible=VisibleChunk(chunk=chunk, document_title="T", document_key=None, metadata={}), score=score)


class Judge:
    """Judges that the sentences of some passages answer."""

    def __init__(self, confidence: float, *answering: int) -> None:
        self.confidence, self.answering = confidence, answering
        self.read: list[tuple[str, float]] = []

    async def judge(self, question: str, passages: Sequence[PassageText]) -> Judgement:
        self.read = [(passage.text, passage.score) for passage in passages]
        return Judgement(self.confidence, (), AnswerKind.THEME, frozenset(self.answering))


async def grades(judge: Judge) -> list[float]:
    return await AnswerabilityGrader(cast("Any", judge)).grade("What?", [hit("one", 0.8), hit("two", 0.4), hit("three", 0.2)])


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
