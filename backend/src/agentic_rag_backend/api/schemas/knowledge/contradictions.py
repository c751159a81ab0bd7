"""Contradictions between statements of documents."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.knowledge.entities import INVALID_AT, VALID_AT, EntityView
from agentic_rag_backend.domain.contradictions import Contradiction, Side
from agentic_rag_backend.domain.graph import EntityRef

ContradictionKind = Literal["denial", "exclusive", "date", "number"]


class SideView(View):
    """One of two statements that contradict each other."""

    fact: str = Field(description="the statement in short")
    value: str = Field(description="the part that differs")
    relationship_id: str | None = Field(description="the relationship that states it; null: it is none")
    chunk_id: str
    document_id: str
    title: str = Field(description="the document's title")
    quote: str = Field(description="the sentence")
    valid_at: datetime | None = Field(description=VALID_AT)
    invalid_at: datetime | None = Field(description=INVALID_AT)
    date: str | None = Field(description="date of the document: a year, a month or a day; null: unknown")

    @classmethod
    def of(cls, side: Side) -> SideView:
        """Return the view of a side."""
        return cls(
            fact=side.fact,
            value=side.value,
            relationship_id=side.relationship_id,
            chunk_id=side.chunk_id,
            document_id=side.document_id,
            title=side.title,
            quote=side.quote,
            valid_at=side.valid_at,
            invalid_at=side.invalid_at,
            date=side.date or None,
        )


class ContradictionView(View):
    """Two statements that cannot both be true."""

    id: str
    kind: ContradictionKind = Field(
        description="`denial`: one denies the other; `exclusive`: a relation that can have one value at a time has two; `date`, "
        "`number`: two values of one thing"
    )
    about: EntityView | None = Field(description="the entity that both statements are about; null: they answer the question")
    subject: str = Field(description="what of it")
    entity_a: EntityView | None = Field(description="the entity at the other end of `a`; of values that are no entities, `about`")
    entity_b: EntityView | None
    a: SideView
    b: SideView
    reason: str
    confidence: float = Field(description="estimated chance that they contradict each other, 0 to 1")

    @classmethod
    def of(cls, contradiction: Contradiction) -> ContradictionView:
        """Return the view of a contradiction."""
        return cls(
            id=contradiction.id,
            kind=contradiction.kind,
            about=_entity(contradiction.about),
            subject=contradiction.subject,
            entity_a=_entity(contradiction.entity_a),
            entity_b=_entity(contradiction.entity_b),
            a=SideView.of(contradiction.a),
            b=SideView.of(contradiction.b),
            reason=contradiction.reason,
            confidence=contradiction.confidence,
        )


def _entity(entity: EntityRef | None) -> EntityView | None:
    return None if entity is None else EntityView.of(entity)
