"""Grades results by the estimate of answerability: no language model is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.answering.answerability.judge import AnswerJudge
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.language.languages import language_in
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.retrieval.grading import read_text

ANSWERED = 0.25
"""Confidence at which an answer is given (default of ``ANSWER_MIN_CONFIDENCE``)."""
RELEVANT = 0.7
"""Grade at which a result is relevant (default of ``options.relevance_threshold``)."""


class AnswerabilityGrader:
    """A `Grader` of results.

    A result with a sentence that answers has the grade of the confidence that the results answer the question. Other results have
    0. A question for an account rests on no single sentence, so all results have the same grade.
    """

    name = "answerability"

    def __init__(self, judge: AnswerJudge) -> None:
        self._judge = judge

    async def grade(self, question: str, hits: Sequence[Hit]) -> list[float]:
        """See `Grader`."""
        top = max((hit.score for hit in hits), default=0.0) or 1.0
        judgement = await self._judge.judge(question, [_read_passage(hit, hit.score / top) for hit in hits])
        grade = grade_of(judgement.confidence)
        return [grade if number in judgement.passages else 0.0 for number in range(len(hits))]


def grade_of(confidence: float) -> float:
    """Return the grade in [0, 1] of a confidence in [0, 1]. It rises with it and is `RELEVANT` at `ANSWERED`."""
    return math.pow(confidence, math.log(RELEVANT) / math.log(ANSWERED))


def _read_passage(hit: Hit, score: float) -> PassageText:
    visible = hit.visible
    return PassageText(
        title=visible.document_title,
        text=read_text(hit),
        score=score,
        document=visible.chunk.document_id,
        date=document_date(visible.document_title, visible.metadata),
        header=visible.chunk.location.header if hit.parent is None else "",
        language=language_in(visible.metadata),
    )
