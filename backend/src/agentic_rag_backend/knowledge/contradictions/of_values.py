"""Contradictions between dates and numbers that sentences of different documents give of one entity. Pure functions of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from agentic_rag_backend.domain.contradictions import Contradiction, Side
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.knowledge.contradictions.statements import ReadSentence, ValueStatement
from agentic_rag_backend.language.times.periods import document_date
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
    for statement_a, statement_b in combinations(statements, 2):
        if statement_a.document_id == statement_b.document_id or statement_a.kind != statement_b.kind:
            continue
        pairs += 1
        if pairs > MAX_PAIRS:
            return
        confidence = _rate_pair(statement_a, statement_b)
        if confidence > 0:
            yield _build_contradiction(about, statement_a, statement_b, confidence)


def _rate_pair(statement_a: ValueStatement, statement_b: ValueStatement) -> float:
    """Return the chance that two statements contradict each other; 0: nothing says so."""
    if not _values_differ(statement_a, statement_b) or statement_a.distinguishing != statement_b.distinguishing:
        return 0.0
    is_same = statement_a.predicate == statement_b.predicate
    if not is_same and not (statement_a.predicate & statement_b.predicate & _ONCE):
        return 0.0
    if statement_a.kind == "date":
        return ONCE if is_same and statement_a.predicate & _ONCE else OTHER_EVENT
    return _of_numbers(statement_a, statement_b) if is_same else 0.0


def _of_numbers(statement_a: ValueStatement, statement_b: ValueStatement) -> float:
    years = statement_a.read.years, statement_b.read.years
    if years[0] and years[1]:
        return 0.0 if years[0].isdisjoint(years[1]) else COUNTED
    if years[0] or years[1]:
        return MAY_HAVE_CHANGED
    dates = _document_date(statement_a.read)[:4], _document_date(statement_b.read)[:4]
    present = any(word.form in _PRESENT for sentence in (statement_a.read, statement_b.read) for word in sentence.words)
    if present and dates[0] != dates[1]:
        return MAY_HAVE_CHANGED
    return COUNTED


def _values_differ(statement_a: ValueStatement, statement_b: ValueStatement) -> bool:
    if isinstance(statement_a.value, Moment) and isinstance(statement_b.value, Moment):
        mine = [moment for moment, _ in statement_a.read.dates]
        dates_b = [moment for moment, _ in statement_b.read.dates]
        # A sentence with both dates contradicts neither.
        return not any(statement_a.value.agrees_with(item) for item in dates_b) and not any(
            statement_b.value.agrees_with(item) for item in mine
        )
    if isinstance(statement_a.value, Amount) and isinstance(statement_b.value, Amount):
        if statement_a.measure != statement_b.measure and not (statement_a.value.unit and statement_b.value.unit):
            return False
        counts = [amount for amount, _ in statement_a.read.amounts], [amount for amount, _ in statement_b.read.amounts]
        agrees = any(_amounts_agree(statement_a.value, count) for count in counts[1]) or any(
            _amounts_agree(statement_b.value, count) for count in counts[0]
        )
        return not agrees
    return False


def _amounts_agree(amount: Amount, amount_b: Amount) -> bool:
    return amount.agrees_with(amount_b) or rounds_to(amount, amount_b) or rounds_to(amount_b, amount)


def _build_contradiction(
    about: EntityRef, statement_a: ValueStatement, statement_b: ValueStatement, confidence: float
) -> Contradiction:
    common = " ".join(sorted(statement_a.predicate & statement_b.predicate))
    subject = f"{about.name} – {_predicate_text(statement_a) or common}"
    what = "dates" if statement_a.kind == "date" else f"numbers ({statement_a.measure})"
    return Contradiction(
        kind=statement_a.kind,
        about=about,
        subject=subject,
        entity_a=about,
        entity_b=about,
        a=_build_side(about, statement_a),
        b=_build_side(about, statement_b),
        reason=f"{subject}: the {what} {statement_a.value.text} and {statement_b.value.text} cannot both be true",
        confidence=confidence,
    )


def _predicate_text(statement: ValueStatement) -> str:
    """Return the words of the predicate as they are written."""
    text = statement.read.sentence.text
    return " ".join(
        text[word.start : word.end].lower() for word in statement.read.words if word.form in statement.predicate and not word.name
    )


def _build_side(about: EntityRef, statement: ValueStatement) -> Side:
    passage, sentence = statement.read.passage, statement.read.sentence
    return Side(
        fact=f"{about.name} – {_predicate_text(statement)} – {statement.value.text}",
        value=statement.value.text,
        chunk_id=passage.chunk.id,
        document_id=passage.chunk.document_id,
        title=passage.document_title,
        quote=sentence.text,
        start_char=sentence.start,
        date=_document_date(statement.read),
    )


def _document_date(sentence: ReadSentence) -> str:
    return document_date(sentence.passage.document_title, sentence.passage.metadata)
