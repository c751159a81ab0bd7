"""Entities, the relationships between them, and contradictions between statements about them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.domain.contradictions import Contradiction, Side
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef
from agentic_rag_backend.knowledge.visible.entity_reader import ListedEntity, VisibleEntity
from agentic_rag_backend.knowledge.visible.facts import VisibleFact

VALID_AT = "when it begins to hold; null: unknown"
INVALID_AT = "when it ceases to hold, by its passages or because a newer one takes its place; null: it holds, or unknown"
CREATED_AT = "when the first visible version that states it was added"
EXPIRED_AT = "since when the documents have it and the relationship that took its place; null: none did"


class EntityView(View):
    id: str
    name: str
    type: str
    description: str = Field(
        default="", description="in results: who it is, if several entities have its name: `nurse; female`; empty if nobody says"
    )

    @classmethod
    def of(cls, entity: EntityRef) -> EntityView:
        """Return the view of an entity."""
        return cls(id=entity.id, name=entity.name, type=entity.type, description=entity.description)


class EntityItem(EntityView):
    """An entity of a list."""

    mention_count: int = Field(description="number of visible chunks that mention it")
    match: Literal["whole", "beginning", "word"] | None = Field(
        None, description="what of a name the search matches: the whole name, its beginning, or a later word; null: no search"
    )

    @classmethod
    def at(cls, item: ListedEntity) -> EntityItem:
        """Return the view of an entity of a list."""
        entity = item.entity
        match: Literal["whole", "beginning", "word"] | None = None
        if item.match is not None:
            match = ("whole", "beginning", "word")[item.match]
        return cls(id=entity.id, name=entity.name, type=entity.type, mention_count=item.mention_count, match=match)


class StatementView(View):
    """A passage that states a relationship."""

    chunk_id: str
    document_id: str
    fact: str = Field(description="the sentence")


class RelationshipView(View):
    """A relationship, with the passages that state it."""

    id: str
    source: EntityView
    relation: str
    target: EntityView
    fact: str = Field(description="the sentence of the first passage")
    chunk_id: str = Field(description="the first passage")
    document_id: str
    weight: float = Field(description="confidence of its sentences, added up over documents; older documents count less")
    valid_at: datetime | None = Field(description=VALID_AT)
    invalid_at: datetime | None = Field(description=INVALID_AT)
    created_at: datetime | None = Field(description=CREATED_AT)
    expired_at: datetime | None = Field(description=EXPIRED_AT)
    passages: list[StatementView] = Field(description="visible passages that state it, at most 20, the weightiest first")

    @classmethod
    def of(cls, fact: VisibleFact) -> RelationshipView:
        """Return the view of a relationship."""
        passages = [
            StatementView(chunk_id=passage.support.chunk_id, document_id=passage.support.document_id, fact=passage.fact)
            for passage in fact.passages
        ]
        return cls(
            id=fact.id,
            source=EntityView.of(fact.source),
            relation=fact.relation,
            target=EntityView.of(fact.target),
            fact=fact.fact,
            chunk_id=passages[0].chunk_id,
            document_id=passages[0].document_id,
            weight=fact.weight,
            valid_at=fact.valid_at,
            invalid_at=fact.invalid_at,
            created_at=fact.created_at,
            expired_at=fact.expired_at,
            passages=passages,
        )

    @classmethod
    def every(cls, facts: Iterable[VisibleFact]) -> list[RelationshipView]:
        """Return the view of each relationship."""
        return [cls.of(fact) for fact in facts]


class EntityRelationshipView(RelationshipView):
    """A relationship of one entity."""

    direction: Literal["out", "in"] = Field(description="`out`: it begins at the entity; `in`: it ends there")
    other: EntityView = Field(description="the entity at the other end")

    @classmethod
    def at(cls, fact: VisibleFact, entity_id: str) -> EntityRelationshipView:
        """Return the view of a relationship of an entity."""
        out = fact.source.id == entity_id
        return cls(
            **RelationshipView.of(fact).model_dump(),
            direction="out" if out else "in",
            other=EntityView.of(fact.target if out else fact.source),
        )


class MentionView(View):
    """A chunk that mentions an entity."""

    id: str
    document_id: str
    title: str = Field(description="the document's title")
    path: list[str] = Field(description="headings above the chunk, outermost first")


class MentioningDocument(View):
    """A document whose chunks mention an entity."""

    id: str
    title: str
    chunk_count: int = Field(description="number of its chunks among `chunks`")


class EntityDetail(EntityView):
    """An entity with its names, chunks and relationships, of visible documents only."""

    names: list[str] = Field(description="the names that visible documents use, the displayed one first, then by frequency")
    description: str = Field(
        default="", description="who or what it is, from visible documents: `oceanographer; female`; empty if they do not say"
    )
    same_name: list[EntityView] = Field(default=[], description="other entities of the same name: other people, ships or works")
    mention_count: int = Field(description="number of visible chunks that mention it")
    documents: list[MentioningDocument] = Field(description="the documents of `chunks`")
    chunks: list[MentionView] = Field(description="chunks that mention it, those about it first, at most `limit`")
    relationships: list[EntityRelationshipView] = Field(description="by decreasing weight, at most `limit`")
    more_relationships: bool = Field(description="whether it has other relationships")

    @classmethod
    def at(cls, entity: VisibleEntity) -> EntityDetail:
        """Return the view of an entity."""
        return cls(
            **EntityView.of(entity.entity).model_dump(exclude={"description"}),
            names=list(entity.names),
            description=entity.description,
            same_name=[EntityView.of(namesake) for namesake in entity.same_name],
            mention_count=entity.mention_count,
            documents=_documents(entity.chunks),
            chunks=[
                MentionView(
                    id=chunk.chunk.id,
                    document_id=chunk.chunk.document_id,
                    title=chunk.document_title,
                    path=list(chunk.chunk.location.headings),
                )
                for chunk in entity.chunks
            ],
            relationships=[EntityRelationshipView.at(fact, entity.entity.id) for fact in entity.relationships],
            more_relationships=entity.more_relationships,
        )


def _documents(chunks: Iterable[VisibleChunk]) -> list[MentioningDocument]:
    documents: dict[str, MentioningDocument] = {}
    for chunk in chunks:
        id = chunk.chunk.document_id
        document = documents.setdefault(id, MentioningDocument(id=id, title=chunk.document_title, chunk_count=0))
        document.chunk_count += 1
    return list(documents.values())


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
