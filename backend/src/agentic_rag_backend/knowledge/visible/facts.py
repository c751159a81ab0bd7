"""Relationships as visible passages state them: weight and validity of hidden versions are left out, like their sentences.

A fact of an exclusive relation ends where a newer fact takes its place (`succession`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.graph import GraphEdge, Relationship, StatedFact
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.language.times.periods import end_of


@dataclass(frozen=True, slots=True)
class Retirement:
    """The end of a fact whose place another one takes: when, the id of the newer fact, and since when both are published."""

    at: datetime
    by: str
    published_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleFact:
    """A relationship with the visible sentences that state it, best first. There is at least one.

    ``weight`` is that of `weigh_fact`. The fact holds from the earliest of the passages' times to their common end (`end_of`),
    or to its ``retirement``. ``dates`` are the periods that the passages' documents are dated by. ``created_at`` is the time at
    which the first of their versions was added. ``succeeds_at`` is the beginning of a fact without one that takes the place of
    another.
    """

    id: str
    source: EntityRef
    target: EntityRef
    relation: str
    weight: float
    passages: tuple[StatedFact, ...]
    dates: tuple[tuple[datetime, datetime] | None, ...] = ()
    created_at: datetime | None = None
    succeeds_at: datetime | None = None
    retirement: Retirement | None = None

    @property
    def fact(self) -> str:
        """The sentence of the best passage."""
        return self.passages[0].fact

    @property
    def valid_at(self) -> datetime | None:
        """The beginning; None: unknown."""
        return min((passage.valid_at for passage in self.passages if passage.valid_at is not None), default=self.succeeds_at)

    @property
    def invalid_at(self) -> datetime | None:
        """The end, exclusive; None: it has not ended, or the end is unknown."""
        end = end_of([(passage.valid_at, passage.invalid_at) for passage in self.passages])
        if end is not None or self.retirement is None:
            return end
        return self.retirement.at

    @property
    def expired_at(self) -> datetime | None:
        """The time since which it and the fact that retired it are both published; None: it is not retired."""
        return self.retirement.published_at if self.retirement is not None else None

    def holds(self, moment: datetime) -> bool:
        """Return whether the fact holds at a moment. Without times, it always does."""
        begin, end = self.valid_at, self.invalid_at
        return (begin is None or begin <= moment) and (end is None or moment < end)


def edge_of(relationship: Relationship) -> GraphEdge:
    """Return a relationship without its passages."""
    ends = (relationship.source_id, relationship.target_id)
    return GraphEdge(relationship.id, *ends, relationship.relation, relationship.weight)
