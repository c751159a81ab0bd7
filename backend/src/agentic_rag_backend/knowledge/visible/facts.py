"""Relationships as visible passages state them: weight and validity of hidden versions are left out, like their sentences.

Code that reads many documents asks by ``versions``, the visible version of each document. Code that reads a few passages asks by
``passages``, the chunks that the catalogue returned for their ids. Both give the same answer.

A fact of an exclusive relation ends where a newer fact takes its place (`succession`).

The weight is ``Σ confidence × recency`` over the visible documents. The confidence of a document is the sum over its sentences.
The recency falls from 1 for a document of today towards ½, with half of the way in `HALF_LIFE_DAYS`: an old statement of a
lasting fact keeps at least half of its weight. Functions of values only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef, GraphEdge, Relationship, StatedFact, Support
from agentic_rag_backend.language.times import end_of


def is_visible(versions: Mapping[str, int], document_id: str, version: int) -> bool:
    """Return whether this version of the document is the visible one."""
    return versions.get(document_id) == version


def supports_now(versions: Mapping[str, int], support: Support) -> bool:
    """Return whether the support belongs to a visible version."""
    return is_visible(versions, support.document_id, support.version)


def states_now(passages: Mapping[str, VisibleChunk], support: Support) -> bool:
    """Return whether the support's chunk is visible in the support's version."""
    passage = passages.get(support.chunk_id)
    return passage is not None and passage.chunk.version == support.version


def all_there(passages: Mapping[str, VisibleChunk], supports: Iterable[Support]) -> bool:
    """Return whether every support's chunk is visible in any version.

    A chunk keeps its id only if its text is unchanged, so a text written from an older version is still supported.
    """
    return all(support.chunk_id in passages for support in supports)


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


HALF_LIFE_DAYS = 365
OLD_RECENCY = 0.5
"""Recency that the oldest documents come near."""
MAX_DOCUMENTS = 20
"""Documents that count: those with the most weight."""


def recency(since: datetime | None, moment: datetime | None) -> float:
    """Return the recency at ``moment`` of a document of the time ``since``, in (0.5, 1].

    Age counts in whole days, so a weight does not change between two searches of one day. It is 1 where a time is not known.
    """
    if since is None or moment is None:
        return 1.0
    days = max((moment - since).days, 0)
    return OLD_RECENCY + (1 - OLD_RECENCY) * math.exp2(-days / HALF_LIFE_DAYS)


def weigh_fact(statements: Iterable[tuple[str, float, datetime | None]], moment: datetime | None) -> float:
    """Return the weight of a relationship, rounded to three digits.

    Args:
        stated: document id, confidence and time of each passage. The largest product of a document counts.
        moment: time for which the weight is asked. None gives all documents the recency 1.
    """
    documents: dict[str, float] = {}
    for document, confidence, since in statements:
        documents[document] = max(documents.get(document, 0.0), confidence * recency(since, moment))
    return round(sum(sorted(documents.values(), reverse=True)[:MAX_DOCUMENTS]), 3)
