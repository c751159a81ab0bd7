"""Feedback on answers, and the record of answers on which it can be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4, uuid5

from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.asked_questions import Rating as Rating
from agentic_rag_backend.domain.asked_questions import hash_question
from agentic_rag_backend.domain.contradictions import Side
from agentic_rag_backend.domain.graph import Support
from agentic_rag_backend.domain.query import FactHit
from agentic_rag_backend.errors import InvalidRequest

MAX_REASON_CHARACTERS = 2_000
MAX_CORRECTION_CHARACTERS = 8_000
MAX_QUESTION_CHARACTERS = 8_000
MAX_ANSWERS = 10_000
"""Number of the newest answers of a tenant that can get feedback."""
_NAMESPACE = UUID("d2b0c5b4-6a55-4d5b-8b0a-6d1f6e7c9a41")
_PREFIX = "a_"


def new_answer_id() -> str:
    """Return the id of an answer: ``a_`` and 32 hex digits."""
    return f"{_PREFIX}{uuid4().hex}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """What is kept of an answer: how it was made and what it used, without any text of it.

    ``estimate`` is the confidence before a tuned scale; None: equal. ``question`` is None unless the tenant allows to keep
    questions.
    ``question_hash`` is that of `hash_question`; None: an earlier release recorded the answer. ``citations`` has the chunk by
    marker, ``documents`` the document of each chunk that was cited or retrieved, or that supports a fact, a theme or a
    contradiction of the answer.
    """

    id: str
    key_id: str
    strategy: str
    generator: str
    confidence: float
    grounded: bool
    created_at: datetime
    estimate: float | None = None
    question_hash: str | None = None
    question: str | None = None
    citations: Mapping[int, str] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_answer(cls, answer: Answer, *, key_id: str, question: str, created_at: datetime) -> AnswerRecord:
        """Return the record of an answer for a key, without the question's text."""
        retrieval = answer.retrieval
        cited_documents = {citation.chunk_id: citation.document_id for citation in (*answer.citations, *answer.nearest)}
        hits = (*retrieval.hits, *(retrieval.backing.hits if retrieval.backing is not None else ()))
        retrieved_documents = {hit.id: hit.visible.chunk.document_id for hit in hits}
        supports = [source for theme in retrieval.themes for finding in theme.findings for source in finding.sources]
        contradictions = (*answer.contradictions, *retrieval.contradictions)
        sides = [side for contradiction in contradictions for side in (contradiction.a, contradiction.b)]
        sources: list[FactHit | Support | Side] = [*retrieval.facts, *supports, *sides]
        retrieved_documents |= {source.chunk_id: source.document_id for source in sources}
        return cls(
            id=answer.id,
            key_id=key_id,
            strategy=answer.retrieval.trace.strategy,
            generator=answer.generator,
            confidence=answer.confidence,
            estimate=answer.estimate,
            grounded=answer.grounded,
            created_at=created_at,
            question_hash=hash_question(question),
            citations={citation.marker: citation.chunk_id for citation in answer.citations},
            documents={**retrieved_documents, **cited_documents},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackDraft:
    """Feedback as a caller gives it: on an answer, or on one of its citations (``citation``) or results (``result``).

    ``question`` is the question that was answered. With it, tuning can learn from the feedback.
    """

    answer_id: str
    rating: Rating
    citation: int | None = None
    result: str | None = None
    reason: str | None = None
    correction: str | None = None
    question: str | None = None

    def find_chunk(self, answer: AnswerRecord) -> str | None:
        """Return the chunk that the feedback is about. None: it is about the whole answer.

        Raises:
            InvalidRequest: the answer has no such citation or result, or both are named.
        """
        if self.citation is not None and self.result is not None:
            raise InvalidRequest("feedback is about a citation or a result; got both", field="result")
        if self.citation is not None:
            if self.citation not in answer.citations:
                markers = ", ".join(map(str, answer.citations)) or "none"
                raise InvalidRequest(f"the answer has no citation {self.citation}; its citations are {markers}", field="citation")
            return answer.citations[self.citation]
        if self.result is not None and self.result not in answer.documents:
            raise InvalidRequest(f"the answer has no result {self.result[:64]!r}", field="result")
        return self.result

    def make_id(self, key_id: str) -> str:
        """Return the id, which is the same for every feedback of a key on the same subject."""
        return str(uuid5(_NAMESPACE, f"{self.answer_id}/{key_id}/{self.citation}/{self.result}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Recorded feedback with the properties of the answer that it is about.

    ``texts_removed``: reason, correction and question were removed, because a document that the answer used was deleted.
    """

    id: str
    draft: FeedbackDraft
    key_id: str
    chunk_id: str | None
    strategy: str
    generator: str
    confidence: float
    estimate: float | None
    grounded: bool
    question_hash: str | None
    texts_removed: bool
    created_at: datetime
    updated_at: datetime
