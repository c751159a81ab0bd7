"""Grades of results: how likely each of them helps to answer the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.models.llm.base import INTEGER, list_of, object_of, objects_in
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, number_in


class Grader(Protocol):
    """Grades results without a language model."""

    @property
    def name(self) -> str:
        """The name in traces."""

    async def grade(self, question: str, hits: Sequence[Hit]) -> list[float]:
        """Return a grade in [0, 1] for each hit: how likely it holds the answer, or a part of it. 0.7 is enough for an answer.

        Args:
            hits: best first, at most about ten.
        """


def read_text(hit: Hit) -> str:
    """Return the text of a result that an answer reads: the passage around the chunk, or else the chunk."""
    return hit.parent.text if hit.parent is not None else hit.visible.chunk.text


HIGHEST = 5
"""The highest grade that the prompt describes."""
MAX_CHARACTERS = 2000
"""Characters of a passage that the model reads."""
TOKENS_PER_PASSAGE = 30
_SCHEMA = object_of({"grades": list_of(object_of({"passage": INTEGER, "grade": INTEGER}))})


@dataclass(frozen=True, slots=True)
class Graded:
    """The grades of results, in their order, and the name of the grader. ``failure``: the reason why the model did not grade."""

    grades: list[float]
    by: str
    failure: str | None = None


class ModelGrader:
    """Asks the cheap model for grades. Without a model, after its failure, or without a call left, another grader grades.

    Args:
        calls: calls of the cheap model.
        otherwise: grades without a model.
    """

    def __init__(self, calls: StructuredCalls, otherwise: Grader) -> None:
        self._calls = calls
        self._otherwise = otherwise

    async def grade(self, question: str, hits: Sequence[Hit], spending: Spending) -> Graded:
        """Return a grade in [0, 1] for each hit. A passage that the model's reply leaves out has the grade 0."""
        if not hits:
            return Graded([], self._otherwise.name)
        if not self._calls.possible or not spending.left:
            return Graded(await self._otherwise.grade(question, hits), self._otherwise.name)
        spending.begin()
        passages_text = "\n".join(
            fence("passage", read_text(hit)[:MAX_CHARACTERS], attributes={"number": number, "title": hit.visible.document_title})
            for number, hit in enumerate(hits, 1)
        )
        values = {"passages": passages_text, "question": fence("question", question)}
        reply = await self._calls.ask(built_in("passage_grades"), values, _SCHEMA, max_tokens=TOKENS_PER_PASSAGE * len(hits) + 50)
        spending.add_call(reply)
        if reply.parsed is None:
            failure = f"grading by the model failed: {reply.failure}"
            return Graded(await self._otherwise.grade(question, hits), self._otherwise.name, failure)
        return Graded(grades_of(reply.parsed, len(hits)), "model")


def grades_of(parsed: Mapping[str, Any], count: int) -> list[float]:
    """Return the grades of a reply in [0, 1] by passage. Of several grades of one passage, the first counts."""
    grades: dict[int, float] = {}
    for item in objects_in(parsed, "grades"):
        passage_number, grade = item.get("passage"), number_in(item, "grade", low=0, high=HIGHEST)
        if isinstance(passage_number, int) and not isinstance(passage_number, bool) and grade is not None:
            grades.setdefault(passage_number, grade / HIGHEST)
    return [grades.get(number, 0.0) for number in range(1, count + 1)]
