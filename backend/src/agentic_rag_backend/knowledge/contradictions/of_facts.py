"""Contradictions between relationships: denials, and exclusive values that hold at one time. Pure functions of visible facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from agentic_rag_backend.domain.contradictions import Contradiction, Kind, Side
from agentic_rag_backend.domain.graph import StatedFact, name_words
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.knowledge.relation_types import NEGATION, End, ExclusiveRelations
from agentic_rag_backend.knowledge.visible.facts import VisibleFact, other_end, rival_pairs, shared_end, speaks_of_past, stated_at

DENIED = 0.85
DENIED_LATER = 0.4
"""Confidence if the denial is of another time, or of a period: both may have been true once."""
_OF_A_PERIOD = frozenset({"yet", "since", "until", "longer", "anymore", "year", "years", "still", "before", "again", "season"})
PERMANENT = 0.85
CONTAINED = 0.4
"""Confidence of two places that one passage names: one may lie in the other."""
OVERLAPPING = 0.8
SAME_TIME = 0.7
UNDATED = 0.3
"""Confidence if the time of a statement is unknown: one may have followed the other."""
SURE_WEIGHT = 1.0
"""Weight of a relationship that one sentence certainly states."""
_PLACE, _DATE = "place", "date"

Near = Callable[[EntityRef, EntityRef], bool]
"""Whether one passage mentions both entities."""


@dataclass(frozen=True, slots=True)
class _Judged:
    confidence: float
    reason: str


def contradictions_of_facts(
    facts: Iterable[VisibleFact], exclusive: ExclusiveRelations, share_passage: Near
) -> Iterator[Contradiction]:
    """Yield the contradictions between facts. A fact and its successor do not contradict each other."""
    facts = list(facts)
    by_ends = {(fact.source.id, fact.relation, fact.target.id): fact for fact in facts}
    for fact in facts:
        denied = by_ends.get((fact.source.id, fact.relation.removeprefix(NEGATION), fact.target.id))
        if fact.relation.startswith(NEGATION) and denied is not None:
            yield _build_denial(denied, fact, exclusive)
    affirmed = (fact for fact in facts if not fact.relation.startswith(NEGATION))
    for end, fact_a, fact_b in rival_pairs(affirmed, exclusive):
        judged = _judge_rivals(end, fact_a, fact_b, exclusive, share_passage)
        if judged is not None:
            yield _build_exclusive(end, fact_a, fact_b, judged)


def _build_denial(affirming: VisibleFact, denying: VisibleFact, exclusive: ExclusiveRelations) -> Contradiction:
    times = stated_at(affirming), stated_at(denying)
    ordered = times[0] is not None and times[1] is not None and (times[0].is_after(times[1]) or times[1].is_after(times[0]))
    limited = any(not _OF_A_PERIOD.isdisjoint(name_words(stated_fact.fact)) for stated_fact in denying.passages)
    later = (ordered or limited) and not exclusive.is_permanent(affirming.relation)
    relation = affirming.relation.replace("_", " ")
    return Contradiction(
        kind="denial",
        about=affirming.source,
        subject=f"{affirming.source.name} – {relation} – {affirming.target.name}",
        entity_a=affirming.target,
        entity_b=affirming.target,
        a=side_of(affirming, affirming.passages[0], relation),
        b=side_of(denying, denying.passages[0], f"not {relation}"),
        reason=f"one passage denies that {affirming.source.name} {relation} {affirming.target.name}; another one states it",
        confidence=_scale_confidence(DENIED_LATER if later else DENIED, affirming, denying),
    )


def _judge_rivals(
    end: End, fact_a: VisibleFact, fact_b: VisibleFact, exclusive: ExclusiveRelations, share_passage: Near
) -> _Judged | None:
    """Return whether two exclusive facts contradict each other, and why; None: one follows the other."""
    ends = other_end(fact_a, end), other_end(fact_b, end)
    if _one_document(fact_a, fact_b):
        return None
    if exclusive.is_permanent(fact_a.relation):
        places = ends[0].type == ends[1].type == _PLACE
        if places and share_passage(*ends):
            return _Judged(CONTAINED, "there is one value, and neither place is known to lie in the other")
        return _Judged(PERMANENT, "there is one value, and it does not change")
    if (
        fact_a.retirement is not None
        or fact_b.retirement is not None
        or _ends_before(fact_a, fact_b)
        or _ends_before(fact_b, fact_a)
    ):
        return None
    if any(speaks_of_past(fact.passages[0].fact) for fact in (fact_a, fact_b)):
        return None
    if fact_a.valid_at is not None and fact_b.valid_at is not None:
        return _Judged(OVERLAPPING, "there is one value at a time, and the times overlap")
    times = stated_at(fact_a), stated_at(fact_b)
    if times[0] is None or times[1] is None:
        return _Judged(UNDATED, "there is one value at a time, and nothing says which one came first")
    return _Judged(SAME_TIME, "there is one value at a time, and documents of one time state both")


def _build_exclusive(end: End, fact_a: VisibleFact, fact_b: VisibleFact, judged: _Judged) -> Contradiction:
    about, ends = shared_end(fact_a, end), (other_end(fact_a, end), other_end(fact_b, end))
    relation = fact_a.relation.replace("_", " ")
    kind: Kind = "date" if ends[0].type == ends[1].type == _DATE else "exclusive"
    subject = f"{about.name} – {relation}" if end == "source" else f"{relation} – {about.name}"
    return Contradiction(
        kind=kind,
        about=about,
        subject=subject,
        entity_a=ends[0],
        entity_b=ends[1],
        a=side_of(fact_a, fact_a.passages[0], ends[0].name),
        b=side_of(fact_b, fact_b.passages[0], ends[1].name),
        reason=f"{subject}: {judged.reason}",
        confidence=_scale_confidence(judged.confidence, fact_a, fact_b),
    )


def side_of(fact: VisibleFact, sentence: StatedFact, value: str) -> Side:
    """Return a side that states a relationship. The document's title and date are added by `with_documents`."""
    return Side(
        fact=f"{fact.source.name} – {fact.relation.replace('_', ' ')} – {fact.target.name}",
        value=value,
        chunk_id=sentence.support.chunk_id,
        document_id=sentence.support.document_id,
        title="",
        quote=sentence.fact,
        start_char=sentence.start_char,
        relationship_id=fact.id,
        valid_at=fact.valid_at,
        invalid_at=fact.invalid_at,
    )


def _scale_confidence(confidence: float, *facts: VisibleFact) -> float:
    """Return the confidence, less for relationships that were read with less certainty."""
    return round(confidence * min(1.0, *(fact.weight / SURE_WEIGHT for fact in facts)), 3)


def _ends_before(fact_a: VisibleFact, fact_b: VisibleFact) -> bool:
    return fact_a.invalid_at is not None and fact_b.valid_at is not None and fact_a.invalid_at <= fact_b.valid_at


def _one_document(fact_a: VisibleFact, fact_b: VisibleFact) -> bool:
    documents: Mapping[str, None] = dict.fromkeys(fact.support.document_id for fact in fact_a.passages)
    return all(fact.support.document_id in documents for fact in fact_b.passages)
