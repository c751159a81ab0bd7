"""Contradictions between passages: values that different documents give of one entity, and sentences of an edited copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product

from agentic_rag_backend.domain.contradictions import Contradiction, Kind, Side
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef, normalise_name
from agentic_rag_backend.knowledge.contradictions.statements import (
    ReadSentence,
    ValueStatement,
    is_within,
    read_sentences,
    statements_about,
    subject_of,
)
from agentic_rag_backend.language.sentences import Sentence, split_sentences
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.language.titles import is_excerpt
from agentic_rag_backend.language.values import Amount, Moment, Span, may_agree, placed_moments, rounds_to
from agentic_rag_backend.language.words import Word, all_forms, comparable, words

CHANGED_VALUE = 0.9
CHANGED_NAME = 0.75
MAX_CHANGED = 8
"""Sentences of a passage that its copy does not have. A passage with more is another text."""
MAX_WORDS = 6
"""Words that differ."""
_CONTEXT = 3
LEAST_SAME = 0.6
"""Share of the words of two sentences that are the same."""


@dataclass(frozen=True)
class ChangedSentence:
    """A sentence that the other passage does not have. Its words are read once, for all pairs and entities that need them."""

    sentence: Sentence

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Words in order."""
        return tuple(words(self.sentence.text))

    @cached_property
    def dates(self) -> tuple[Span, ...]:
        """Places of the dates."""
        return tuple(span for _, span in placed_moments(self.sentence.text))


Pair = tuple[VisibleChunk, VisibleChunk]
Changed = tuple[Sequence[ChangedSentence], Sequence[ChangedSentence]]


@dataclass(frozen=True, slots=True)
class _Change:
    """The words that differ, as they are written, and the words before them."""

    kind: Kind
    context: str
    before: str
    after: str


def contradictions_of_copies(
    about: EntityRef, names: Sequence[Sequence[str]], copies: tuple[Pair, Changed], *, topic: bool
) -> Iterator[Contradiction]:
    """Yield the contradictions between two passages of which one is a copy of the other.

    Args:
        about: the entity that sentences must be about: their subject, or else the ``topic`` of the passages.
        names: the entity's names, each as the forms of its words.
        copies: the passages, and the sentences of each that the other one does not have.
    """
    passages, changed = copies
    if max(map(len, changed)) > MAX_CHANGED:
        return
    subjects = [[sentence for sentence in sentences if _is_about(sentence, names, topic=topic)] for sentences in changed]
    for sentence_a, sentence_b in product(*subjects):
        change = _find_change(sentence_a, sentence_b)
        if change is not None:
            yield _report_change(about, passages, (sentence_a.sentence, sentence_b.sentence), change)


def _is_about(changed: ChangedSentence, names: Sequence[Sequence[str]], *, topic: bool) -> bool:
    """Return whether the entity is the subject of a sentence. A subject without a name is the topic."""
    if subject_of(changed.sentence.text, changed.words, names, changed.dates) is not None:
        return True
    articles = ("the", "a", "an")
    first_word = next((word for word in changed.words if word.form not in articles and not is_within(word, changed.dates)), None)
    return topic and (first_word is None or not first_word.name)


def _find_change(changed_sentence: ChangedSentence, sentence_b: ChangedSentence) -> _Change | None:
    """Return the one place in which two sentences differ, if it is a value or a name in both."""
    forms = [[word.form for word in changed.words] for changed in (changed_sentence, sentence_b)]
    shorter = min(map(len, forms))
    begin = next((at for at in range(shorter) if forms[0][at] != forms[1][at]), shorter)
    end = next((at for at in range(shorter - begin) if forms[0][-1 - at] != forms[1][-1 - at]), shorter - begin)
    parts = [changed.words[begin : len(changed.words) - end] for changed in (changed_sentence, sentence_b)]
    shared = (begin + end) / max(map(len, forms))
    if shared < LEAST_SAME or not all(1 <= len(part) <= MAX_WORDS for part in parts):
        return None
    texts = changed_sentence.sentence.text, sentence_b.sentence.text
    before, after = (text[part[0].start : part[-1].end] for text, part in zip(texts, parts, strict=True))
    if may_agree(before, after):
        return None
    dated = [
        all(is_within(word, changed.dates) for word in part)
        for changed, part in zip((changed_sentence, sentence_b), parts, strict=True)
    ]
    digits = [any(word.form[0].isdigit() for word in part) for part in parts]
    context = " ".join(texts[0][word.start : word.end] for word in changed_sentence.words[max(begin - _CONTEXT, 0) : begin])
    if all(dated):
        return _Change("date", context, before, after)
    if all(digits) and not any(dated):
        return _Change("number", context, before, after)
    are_names = all(word.name and not word.form[0].isdigit() for part in parts for word in part if word.content)
    return _Change("exclusive", context, before, after) if are_names and begin else None


def _report_change(about: EntityRef, passages: Pair, sentences: tuple[Sentence, Sentence], change: _Change) -> Contradiction:
    values = change.before, change.after
    sides = [
        Side(
            fact=sentence.text,
            value=value,
            chunk_id=passage.chunk.id,
            document_id=passage.chunk.document_id,
            title=passage.document_title,
            quote=sentence.text,
            start_char=sentence.start,
            date=document_date(passage.document_title, passage.metadata),
        )
        for passage, sentence, value in zip(passages, sentences, values, strict=True)
    ]
    return Contradiction(
        kind=change.kind,
        about=about,
        subject=f"{about.name} – {change.context}",
        entity_a=about,
        entity_b=about,
        a=sides[0],
        b=sides[1],
        reason=f"two copies of one text have {values[0]} and {values[1]} in one place",
        confidence=CHANGED_NAME if change.kind == "exclusive" else CHANGED_VALUE,
    )


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
            yield _report_values(about, statement_a, statement_b, confidence)


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


def _report_values(
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


MAX_NAMES = 8
MAX_STATEMENTS = 60
COPIED_SENTENCES = 0.5
"""Share of the sentences of the shorter of two passages that the other one repeats, from which it is a copy."""
_LEAST_COPIED = 2


@dataclass(frozen=True, slots=True)
class _Reading:
    """A chunk's sentences with values, and all its sentences by their text."""

    sentences: tuple[ReadSentence, ...]
    by_text: dict[str, ChangedSentence]


@dataclass(slots=True)
class PassageReadings:
    """The readings of chunks, so that a chunk with several entities is read once."""

    _by_chunk: dict[str, _Reading] = field(default_factory=dict)

    def of(self, passage: VisibleChunk) -> _Reading:
        """Return the reading of a chunk."""
        reading = self._by_chunk.get(passage.chunk.id)
        if reading is None:
            by_text = {sentence.text: ChangedSentence(sentence) for sentence in split_sentences(passage.chunk.text)}
            reading = self._by_chunk[passage.chunk.id] = _Reading(tuple(read_sentences(passage)), by_text)
        return reading


def contradictions_in_text(
    about: EntityRef, names: Sequence[str], passages: Sequence[VisibleChunk], readings: PassageReadings
) -> list[Contradiction]:
    """Return the contradictions between passages of different documents about an entity, which has these names."""
    if len({passage.chunk.document_id for passage in passages}) < 2:
        return []
    contradictions: dict[str, Contradiction] = {}
    for passage_a, passage_b in _find_copies(passages, readings):
        changed = _changed_sentences(passage_a, passage_b, readings)
        topic = is_topic(passage_a, names) and is_topic(passage_b, names)
        for contradiction in contradictions_of_copies(about, forms_of(names), ((passage_a, passage_b), changed), topic=topic):
            contradictions[contradiction.id] = contradiction
    stated_pairs = {frozenset((contradiction.a.place, contradiction.b.place)) for contradiction in contradictions.values()}
    for contradiction in contradictions_of_values(about, statements_in(names, passages, readings)[:MAX_STATEMENTS]):
        if frozenset((contradiction.a.place, contradiction.b.place)) not in stated_pairs:
            contradictions[contradiction.id] = contradiction
    return list(contradictions.values())


def statements_in(names: Sequence[str], passages: Sequence[VisibleChunk], readings: PassageReadings) -> list[ValueStatement]:
    """Return the dates and numbers that passages give of the entity with these names."""
    forms = forms_of(names)
    statements: list[ValueStatement] = []
    for passage in passages:
        sentences = readings.of(passage).sentences
        if sentences:
            topic = is_topic(passage, names)
            for sentence in sentences:
                statements.extend(statements_about(sentence, forms, topic=topic))
    return statements


def forms_of(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the forms of the words of each name, the longest names first."""
    forms = {tuple(comparable(name[word.start : word.end]) for word in words(name)) for name in names[:MAX_NAMES]}
    return sorted((form for form in forms if form), key=lambda form: (-len(form), form))


def is_topic(passage: VisibleChunk, names: Sequence[str]) -> bool:
    """Return whether the document's title, or the heading above a passage, is one of the names: "It" is then the entity."""
    title = () if is_excerpt(passage.document_title) else (passage.document_title,)
    above = {normalise_name(text.partition(" (")[0]) for text in (*title, *passage.chunk.location.headings[-1:])}
    return any(normalise_name(name) in above for name in names[:MAX_NAMES])


def _find_copies(passages: Sequence[VisibleChunk], readings: PassageReadings) -> Iterator[tuple[VisibleChunk, VisibleChunk]]:
    """Yield the pairs of passages of different documents of which one repeats most of the other."""
    for passage_a, passage_b in combinations(passages, 2):
        if passage_a.chunk.document_id != passage_b.chunk.document_id:
            texts = readings.of(passage_a).by_text, readings.of(passage_b).by_text
            shared = len(texts[0].keys() & texts[1].keys())
            if shared >= max(_LEAST_COPIED, COPIED_SENTENCES * min(map(len, texts))):
                yield passage_a, passage_b


def _changed_sentences(
    chunk: VisibleChunk, passage_b: VisibleChunk, readings: PassageReadings
) -> tuple[tuple[ChangedSentence, ...], tuple[ChangedSentence, ...]]:
    """Return the sentences of each passage that the other one does not have."""
    mine, changed_sentences = readings.of(chunk).by_text, readings.of(passage_b).by_text
    return (
        tuple(sentence for text, sentence in mine.items() if text not in changed_sentences),
        tuple(sentence for text, sentence in changed_sentences.items() if text not in mine),
    )
