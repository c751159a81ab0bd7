"""Feedback on answers."""

from __future__ import annotations

from datetime import datetime

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, View, Whole
from agentic_rag_backend.domain.feedback import (
    MAX_CORRECTION_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    MAX_REASON_CHARACTERS,
    Feedback,
    FeedbackDraft,
    Rating,
)


class FeedbackBody(Body):
    """Feedback on an answer, on one of its citations, or on one of its results."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "answer_id": "a_5f0c2a9be3d14c7f8a61b2c3d4e5f607",
                    "rating": "bad",
                    "citation": 1,
                    "reason": "The quoted article was repealed.",
                    "correction": "The corridor is 350 metres wide since 2019.",
                }
            ]
        }
    )

    answer_id: str = Field(
        min_length=1, max_length=64, description="`id` of `POST /answers`, `answer_id` of `POST /search/dual-level`"
    )
    rating: Rating
    citation: Whole | None = Field(None, ge=1, le=2**31 - 1, description="marker of one citation of the answer")
    result: str | None = Field(None, min_length=1, max_length=64, description="id of a chunk among the answer's `sources`")
    reason: str | None = Field(None, min_length=1, max_length=MAX_REASON_CHARACTERS)
    correction: str | None = Field(
        None, min_length=1, max_length=MAX_CORRECTION_CHARACTERS, description="what the answer should have said"
    )
    question: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_QUESTION_CHARACTERS,
        description="the question that was answered: tuning learns only from feedback that has it",
    )

    def draft(self) -> FeedbackDraft:
        """Return the feedback as a value."""
        return FeedbackDraft(**{name: getattr(self, name) for name in type(self).model_fields})


class FeedbackView(View):
    """Feedback, and how its answer was made."""

    id: str
    answer_id: str
    rating: Rating
    citation: int | None
    result: str | None
    chunk_id: str | None = Field(description="the chunk of the citation or result")
    reason: str | None
    correction: str | None
    question: str | None
    texts_removed: bool = Field(
        description="a document that the answer used was deleted, and with it `reason`, `correction` and `question`"
    )
    key_id: str
    strategy: str
    generator: str
    confidence: float
    grounded: bool
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, feedback: Feedback) -> FeedbackView:
        """Return the view of feedback."""
        draft = feedback.draft
        values = {name: getattr(draft if hasattr(draft, name) else feedback, name) for name in cls.model_fields}
        return cls.model_validate(values)
