"""A contradiction, with its two sides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import EntityRef

Kind = Literal["denial", "exclusive", "date", "number"]
"""``denial``: one passage denies what the other states. ``exclusive``: two values of a relation that can have only one at a time.
``date`` and ``number``: two values of one thing that cannot both be true.
"""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two statements: the sentence ``quote`` at ``start_char`` of a chunk, and what it states in short.

    ``value`` is the part that differs. ``relationship_id`` is None if the statement is no relationship of the graph.
    """

    fact: str
    value: str
    chunk_id: str
    document_id: str
    title: str
    quote: str
    start_char: int
    relationship_id: str | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    date: str = ""
    """The date of the document, as ISO 8601: a year, a month, a day, or empty."""

    @property
    def place(self) -> tuple[str, int]:
        """The chunk and the beginning of the sentence."""
        return self.chunk_id, self.start_char


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two statements that cannot both be true.

    ``about`` is the entity that both are about, and ``subject`` says what of it. ``entity_a`` and ``entity_b`` are the entities
    at the other end of each statement: two different ones for ``exclusive``, the same one for ``denial``, and ``about`` itself
    for values that are no entities. All three are None if both statements answer the question that is the ``subject``.
    ``confidence`` in [0, 1] estimates the chance that they contradict each other.
    """

    kind: Kind
    about: EntityRef | None
    subject: str
    entity_a: EntityRef | None
    entity_b: EntityRef | None
    a: Side
    b: Side
    reason: str
    confidence: float

    @property
    def id(self) -> str:
        """An id that depends on what it is about and on the two places only."""
        places = sorted(f"{chunk}:{start}" for chunk, start in (self.a.place, self.b.place))
        return stable_id("contradiction", self.about.id if self.about else "", self.kind, self.subject, *places)

    def entity_ids(self) -> frozenset[str]:
        """Return the ids of the entities that it is about."""
        return frozenset(entity.id for entity in (self.about, self.entity_a, self.entity_b) if entity is not None)
