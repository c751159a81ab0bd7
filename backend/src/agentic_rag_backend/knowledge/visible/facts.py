"""Relationships as visible passages state them: weight and validity of hidden versions are left out, like their sentences.

Code that reads many documents asks by ``versions``, the visible version of each document. Code that reads a few passages asks by
``passages``, the chunks that the catalogue returned for their ids. Both give the same answer.

A fact of an exclusive relation ends where a newer fact takes its place.

The weight is ``Σ confidence × recency`` over the visible documents. The confidence of a document is the sum over its sentences.
The recency falls from 1 for a document of today towards ½, with half of the way in `HALF_LIFE_DAYS`: an old statement of a
lasting fact keeps at least half of its weight. Functions of values only.

The succession of facts that exclude each other: a newer one retires an older one, which stays on record.

Everything here is a function of the visible facts. If the newer document is deleted, the older fact holds again, and the order of
ingestion has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import MAXYEAR, UTC, datetime, timedelta
from itertools import combinations

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef, GraphEdge, Relationship, StatedFact, Support, name_words
from agentic_rag_backend.knowledge.extraction.names.aliases import is_acronym_of
from agentic_rag_backend.knowledge.relation_types import End, ExclusiveRelations
from agentic_rag_backend.language.times import end_of
from agentic_rag_backend.language.values import find_moments


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


_PAST = frozenset({"former", "formerly", "previous", "previously", "then", "once", "ex", "late", "was", "were", "had", "served"})
_BEGINNING = frozenset(
    {"appointed", "elected", "named", "became", "succeeded", "chosen", "sworn", "promoted", "since", "now", "currently", "new"}
)
"""Words of a sentence in the past that tell a beginning: "was appointed"."""
_DATE, _UNDECIDED = "date", frozenset({"other", "concept", "acronym", ""})


@dataclass(frozen=True, slots=True)
class Stated:
    """When passages state a fact: the periods of the first and the last statement, each with an exclusive end."""

    first: tuple[datetime, datetime]
    last: tuple[datetime, datetime]

    def is_after(self, earlier: Stated) -> bool:
        """Return whether every statement is certainly later. Within one year "2018" is neither before nor after "March 2018"."""
        return self.first[0] >= earlier.last[1] and self.first[0] > earlier.last[0]


def stated_at(fact: VisibleFact) -> Stated | None:
    """Return when a fact is stated: the beginnings that its passages give, otherwise the dates of their documents.

    A sentence about the past does not hold at the date of its document. None: nothing is known. The time of ingestion says
    nothing about the time of a fact.
    """
    begins = [_written_period(sentence.valid_at) for sentence in fact.passages if sentence.valid_at is not None]
    dated = zip(fact.passages, fact.dates, strict=False)
    periods = begins or [period for sentence, period in dated if period is not None and not speaks_of_past(sentence.fact)]
    return Stated(min(periods), max(periods, key=lambda period: (period[1], period[0]))) if periods else None


def in_succession(
    facts: Mapping[str, VisibleFact], rivals: Iterable[VisibleFact], exclusive: ExclusiveRelations
) -> dict[str, VisibleFact]:
    """Return ``facts`` with the retirements that ``rivals``, other visible facts of exclusive relations, cause."""
    by_id = {fact.id: fact for fact in (*rivals, *facts.values())}
    changed: dict[str, VisibleFact] = dict(facts)
    for group in rival_groups(by_id.values(), exclusive):
        if exclusive.is_permanent(group[0].relation):
            continue
        times = {fact.id: stated_at(fact) for fact in group}
        for fact in group:
            if fact.id in changed:
                changed[fact.id] = _place_in_time(changed[fact.id], group, times)
    return changed


def rival_groups(facts: Iterable[VisibleFact], exclusive: ExclusiveRelations) -> list[list[VisibleFact]]:
    """Return the facts of one exclusive relation that share the end at which it is exclusive, two or more, ordered by id."""
    groups: dict[tuple[End, str, str], list[VisibleFact]] = {}
    for fact in facts:
        for end in exclusive.ends(fact.relation):
            groups.setdefault((end, shared_end(fact, end).id, fact.relation), []).append(fact)
    return [sorted(group, key=lambda fact: fact.id) for _, group in sorted(groups.items()) if len(group) > 1]


def rival_pairs(facts: Iterable[VisibleFact], exclusive: ExclusiveRelations) -> list[tuple[End, VisibleFact, VisibleFact]]:
    """Return the pairs of facts that exclude each other if both hold at one time."""
    return [
        (end, fact_a, fact_b)
        for group in rival_groups(facts, exclusive)
        for fact_a, fact_b in combinations(group, 2)
        for end in exclusive.ends(fact_a.relation)
        if shared_end(fact_a, end).id == shared_end(fact_b, end).id and excludes(fact_a, fact_b, end)
    ]


def shared_end(fact: VisibleFact, end: End) -> EntityRef:
    """Return the end at which the relation is exclusive."""
    return fact.source if end == "source" else fact.target


def other_end(fact: VisibleFact, end: End) -> EntityRef:
    """Return the end of which there is one at a time."""
    return fact.target if end == "source" else fact.source


def excludes(fact_a: VisibleFact, fact_b: VisibleFact, end: End) -> bool:
    """Return whether two facts with a common end name different things at the other end.

    "4 May 1950" and "1950" may be one date, "Renwick" and "Tobias Renwick" one person. A date and a place do not exclude each
    other. A sentence that states both facts without times, such as "born in Leeds, England", means both.
    """
    a, b = other_end(fact_a, end), other_end(fact_b, end)
    if a.id == b.id or not _are_comparable(a, b) or _may_be_same(a, b):
        return False
    sentences = {(sentence.support, sentence.fact) for sentence in fact_a.passages if sentence.valid_at is None}
    return not any((sentence.support, sentence.fact) in sentences for sentence in fact_b.passages if sentence.valid_at is None)


def _place_in_time(fact: VisibleFact, group: Sequence[VisibleFact], times: Mapping[str, Stated | None]) -> VisibleFact:
    """Return a fact that begins where it succeeds another one, and ends where the first newer one begins."""
    fact_times = times[fact.id]
    if fact_times is None:
        return fact
    rivals = [(rival, time) for rival in group if (time := times[rival.id]) is not None and _share_and_exclude(fact, rival)]
    succeeds = fact.valid_at is None and any(fact_times.is_after(time) and rival.invalid_at is None for rival, time in rivals)
    later = [(time.first[0], rival.id, rival) for rival, time in rivals if time.is_after(fact_times)]
    begins = fact_times.first[0] if succeeds else fact.succeeds_at
    if not later or fact.invalid_at is not None:
        return replace(fact, succeeds_at=begins)
    at, id, newer = min(later, key=lambda candidate: candidate[:2])
    if fact.retirement is not None and fact.retirement.at <= at:
        return replace(fact, succeeds_at=begins)
    return replace(fact, succeeds_at=begins, retirement=Retirement(at, id, _is_later(fact.created_at, newer.created_at)))


def _is_later(fact_a: datetime | None, fact_b: datetime | None) -> datetime | None:
    """Return the later time: a fact that is added after its successor is retired from the beginning."""
    return max(fact_a, fact_b) if fact_a is not None and fact_b is not None else fact_b


def _share_and_exclude(fact_a: VisibleFact, fact_b: VisibleFact) -> bool:
    if fact_a.id == fact_b.id:
        return False
    if fact_a.source.id == fact_b.source.id:
        return excludes(fact_a, fact_b, "source")
    return fact_a.target.id == fact_b.target.id and excludes(fact_a, fact_b, "target")


def speaks_of_past(sentence: str) -> bool:
    """Return whether a sentence states what no longer holds when it is written: "the former mayor", "was president"."""
    words = set(name_words(sentence))
    return not words.isdisjoint(_PAST) and words.isdisjoint(_BEGINNING)


def _written_period(begin: datetime) -> tuple[datetime, datetime]:
    """Return the period that a beginning may mean: 1 January is also written "2018", and the first of a month "March 2018"."""
    begin = begin if begin.tzinfo else begin.replace(tzinfo=UTC)
    if begin.year == MAXYEAR:
        return begin, begin
    if (begin.day, begin.hour, begin.minute, begin.second) != (1, 0, 0, 0):
        return begin, begin + timedelta(days=1)
    if begin.month == 1:
        return begin, begin.replace(year=begin.year + 1)
    return begin, (begin + timedelta(days=32)).replace(day=1)


def _are_comparable(a: EntityRef, b: EntityRef) -> bool:
    """Return whether two things are of one kind. Undecided types fit every type but dates."""
    if _DATE in (a.type, b.type):
        return a.type == b.type
    return a.type == b.type or bool({a.type, b.type} & _UNDECIDED)


def _may_be_same(a: EntityRef, b: EntityRef) -> bool:
    if a.type == b.type == _DATE:
        dates = find_moments(a.name), find_moments(b.name)
        return not (dates[0] and dates[1]) or any(date_a.agrees_with(date_b) for date_a in dates[0] for date_b in dates[1])
    words, words_b = name_words(a.name), name_words(b.name)
    if set(words) <= set(words_b) or set(words_b) <= set(words):
        return True
    return is_acronym_of(a.name, b.name.split()) or is_acronym_of(b.name, a.name.split())
