"""Contradictions between dates and numbers that sentences of different documents give of one entity. Pure functions of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from agentic_rag_backend.domain.contradictions import Contradiction, Side
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.knowledge.contradictions.statements import ReadSentence, ValueStatement
from agentic_rag_backend.language.periods import document_date
from agentic_rag_backend.language.values import Amount, Moment, rounds_to
from agentic_rag_backend.language.words import all_forms

ONCE = 0.8
OTHER_EVENT = 0.4
"""Confidence of two dates of something that may happen more than once."""
COUNTED = 0.7
MAY_HAVE_CHANGED = 0.4
"""Confidence of two numbers that documents of different years give in the present tense."""
MAX_PAIRS = 200
_ONCE = all_forms(
    "born died opened founded established built completed launched inaugurated dissolved closed sank abolished incorporated "
    "created formed discovered invented began begun started ended signed destroyed demolished premiered published commissioned "
    "unveiled consecrated assassinated executed buried baptised baptized ratified annexed erected constructed"
)
"""What happens to one thing once."""
_PRESENT = all_forms("is are has have currently today now")


def contradictions_of_values(about: EntityRef, statements: Sequence[ValueStatement]) -> Iterator[Contradiction]:
    """Yield the pairs of ``statements`` about an entity that cannot both be true."""
    pairs = 0
    for one, other in combinations(statements, 2):
        if one.document_id == other.document_id or one.kind != other.kind:
            continue
        pairs += 1
        if pairs > MAX_PAIRS:
            return
        confidence = _confidence(one, other)
        if confidence > 0:
            yield _contradiction(about, one, other, confidence)


def _confidence(one: ValueStatement, other: ValueStatement) -> float:
    """Return the chance that two statements contradict each other; 0: nothing says so."""
    if not _differ(one, other) or one.distinguishing != other.distinguishing:
        return 0.0
    same = one.predicate == other.predicate
    if not same and not (one.predicate & other.predicate & _ONCE):
        return 0.0
    if one.kind == "date":
        return ONCE if same and one.predicate & _ONCE else OTHER_EVENT
    return _of_numbers(one, other) if same else 0.0


def _of_numbers(one: ValueStatement, other: ValueStatement) -> float:
    years = one.read.years, other.read.years
    if years[0] and years[1]:
        return 0.0 if years[0].isdisjoint(years[1]) else COUNTED
    if years[0] or years[1]:
        return MAY_HAVE_CHANGED
    dates = _date(one.read)[:4], _date(other.read)[:4]
    present = any(word.form in _PRESENT for read in (one.read, other.read) for word in read.words)
    if present and dates[0] != dates[1]:
        return MAY_HAVE_CHANGED
    return COUNTED


def _differ(one: ValueStatement, other: ValueStatement) -> bool:
    if isinstance(one.value, Moment) and isinstance(other.value, Moment):
        mine = [moment for moment, _ in one.read.dates]
        others = [moment for moment, _ in other.read.dates]
        # A sentence with both dates contradicts neither.
        return not any(one.value.agrees_with(each) for each in others) and not any(other.value.agrees_with(each) for each in mine)
    if isinstance(one.value, Amount) and isinstance(other.value, Amount):
        if one.measure != other.measure and not (one.value.unit and other.value.unit):
            return False
        counts = [amount for amount, _ in one.read.amounts], [amount for amount, _ in other.read.amounts]
        agrees = any(_agree(one.value, each) for each in counts[1]) or any(_agree(other.value, each) for each in counts[0])
        return not agrees
    return False


def _agree(one: Amount, other: Amount) -> bool:
    return one.agrees_with(other) or rounds_to(one, other) or rounds_to(other, one)


def _contradiction(about: EntityRef, one: ValueStatement, other: ValueStatement, confidence: float) -> Contradiction:
    common = " ".join(sorted(one.predicate & other.predicate))
    subject = f"{about.name} – {_predicate(one) or common}"
    what = "dates" if one.kind == "date" else f"numbers ({one.measure})"
    return Contradiction(
        kind=one.kind,
        about=about,
        subject=subject,
        entity_a=about,
        entity_b=about,
        a=_side(about, one),
        b=_side(about, other),
        reason=f"{subject}: the {what} {one.value.text} and {other.value.text} cannot both be true",
        confidence=confidence,
    )


def _predicate(statement: ValueStatement) -> str:
    """Return the words of the predicate as they are written."""
    text = statement.read.sentence.text
    return " ".join(
        text[word.start : word.end].lower() for word in statement.read.words if word.form in statement.predicate and not word.name
    )


def _side(about: EntityRef, statement: ValueStatement) -> Side:
    passage, sentence = statement.read.passage, statement.read.sentence
    return Side(
        fact=f"{about.name} – {_predicate(statement)} – {statement.value.text}",
        value=statement.value.text,
        chunk_id=passage.chunk.id,
        document_id=passage.chunk.document_id,
        title=passage.document_title,
        quote=sentence.text,
        start_char=sentence.start,
        date=_date(statement.read),
    )


def _date(read: ReadSentence) -> str:
    return document_date(read.passage.document_title, read.passage.metadata)
