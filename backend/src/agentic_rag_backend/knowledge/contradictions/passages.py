"""Contradictions between what passages state of one entity in dates and numbers, and between a passage and its edited copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef, normalise_name
from agentic_rag_backend.knowledge.contradictions.of_copies import ChangedSentence, contradictions_of_copies
from agentic_rag_backend.knowledge.contradictions.of_values import contradictions_of_values
from agentic_rag_backend.knowledge.contradictions.statements import ReadSentence, ValueStatement, read_sentences, statements_about
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.titles import is_excerpt
from agentic_rag_backend.language.words import comparable, words

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
