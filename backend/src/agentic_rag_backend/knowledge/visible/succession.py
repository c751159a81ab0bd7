"""The succession of facts that exclude each other: a newer one retires an older one, which stays on record.

Everything here is a function of the visible facts. If the newer document is deleted, the older fact holds again, and the order of
ingestion has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import MAXYEAR, UTC, datetime, timedelta
from itertools import combinations

from agentic_rag_backend.domain.graph import name_words
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.knowledge.extraction.names.aliases import is_acronym_of
from agentic_rag_backend.knowledge.relation_types import End, ExclusiveRelations
from agentic_rag_backend.knowledge.visible.facts import Retirement, VisibleFact
from agentic_rag_backend.language.values import find_moments

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
