"""The third leg: chunks found through their synthetic questions. It is searched only if the query asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.stores.catalogue.base import QuestionCatalogue
from agentic_rag_backend.stores.vector.base import NodeKind, ScoredId, Vector, VectorSearch

QUESTION = "question"
"""Name of the leg in scores, weights and traces."""
QUESTION_LIMIT = 200
"""Questions that are found. A chunk has at most three."""
QUESTION_WEIGHT = 0.1
"""Weight of the leg, relative to 1.0 for the two other legs together: the best of .05 to .3, judged by the worst set."""


@dataclass(frozen=True, slots=True)
class QuestionLeg:
    """Chunks, best first, each with the cosine of its nearest question, and these questions by chunk id."""

    chunks: Sequence[ScoredId] = ()
    matched: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def question_search(query: Query, vector: Vector, filter: Filter | None) -> list[VectorSearch]:
    """Return the search of the leg. Without the leg, there is none."""
    if not query.synthetic_questions:
        return []
    return [VectorSearch(kind=NodeKind.QUESTION, dense=vector, limit=QUESTION_LIMIT, filter=filter)]


async def question_leg(questions: QuestionCatalogue, query: Query, items: Sequence[ScoredId], *, least: float) -> QuestionLeg:
    """Return the chunks of questions, whose ids are ``items``, best first.

    Questions whose text is not visible are left out, and those with a cosine below ``least`` (`Calibration.similar_question`).
    """
    similar = [item for item in items if item.score >= least]
    if not similar:
        return QuestionLeg()
    questions_by_id = await questions.by_id(query.tenant_id, [item.id for item in similar])
    chunks: dict[str, float] = {}
    matched: dict[str, str] = {}
    for item in similar:
        question = questions_by_id.get(item.id)
        if question is not None and question.chunk_id not in chunks:
            chunks[question.chunk_id] = item.score
            matched[question.chunk_id] = question.text
    return QuestionLeg([ScoredId(id, score) for id, score in chunks.items()], matched)


def weights_with_questions(query: Query, weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the weights of all legs of a query."""
    return {**weights, QUESTION: QUESTION_WEIGHT} if query.synthetic_questions else weights


def methods_with_questions(query: Query, *methods: str) -> tuple[str, ...]:
    """Return the names of the methods of a query's trace."""
    return (*methods, QUESTION) if query.synthetic_questions else methods
