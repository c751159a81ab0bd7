"""Contradictions between the values that passages give of one entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.text.sentences import split_sentences
from agentic_rag_backend.domain.text.words import comparable, words
from agentic_rag_backend.knowledge.contradictions.of_values import contradictions_of_values
from agentic_rag_backend.knowledge.contradictions.statements import ReadSentence, ValueStatement, read_sentences, statements_about
from agentic_rag_backend.knowledge.visible.names import contains_label

MAX_NAMES = 8
MAX_STATEMENTS = 60
COPIED_SENTENCES = 0.5
"""Share of the sentences of the shorter of two passages that the other one repeats, from which it is a copy."""
_LEAST_COPIED = 2


@dataclass(frozen=True, slots=True)
class _Reading:
    """A chunk's sentences with values, and the texts of all its sentences."""

    sentences: tuple[ReadSentence, ...]
    texts: frozenset[str]


@dataclass(slots=True)
class PassageReadings:
    """The readings of chunks, so that a chunk with several entities is read once."""

    _by_chunk: dict[str, _Reading] = field(default_factory=dict)

    def of(self, passage: VisibleChunk) -> _Reading:
        """Return the reading of a chunk."""
        held = self._by_chunk.get(passage.chunk.id)
        if held is None:
            texts = frozenset(sentence.text for sentence in split_sentences(passage.chunk.text))
            held = self._by_chunk[passage.chunk.id] = _Reading(tuple(read_sentences(passage)), texts)
        return held


def contradictions_in_text(
    about: EntityRef, names: Sequence[str], passages: Sequence[VisibleChunk], readings: PassageReadings
) -> list[Contradiction]:
    """Return the contradictions between dates and numbers that passages of different documents give of an entity."""
    if len({passage.chunk.document_id for passage in passages}) < 2:
        return []
    statements = statements_in(names, passages, readings)
    if len(statements) < 2:
        return []
    found = contradictions_of_values(about, statements[:MAX_STATEMENTS], copies=_copies(passages, readings))
    return list({each.id: each for each in found}.values())


def statements_in(names: Sequence[str], passages: Sequence[VisibleChunk], readings: PassageReadings) -> list[ValueStatement]:
    """Return the dates and numbers that passages give of the entity with these names."""
    forms = [
        form for name in names[:MAX_NAMES] if (form := tuple(comparable(name[word.start : word.end]) for word in words(name)))
    ]
    statements: list[ValueStatement] = []
    for passage in passages:
        sentences = readings.of(passage).sentences
        if sentences:
            topic = any(contains_label_above(passage, name) for name in names[:1])
            for read in sentences:
                statements.extend(statements_about(read, forms, topic=topic))
    return statements


def contains_label_above(passage: VisibleChunk, name: str) -> bool:
    """Return whether the document's title or the last heading above a passage is the name."""
    return contains_label(passage, name) and any(
        name.casefold() in text.casefold() for text in (passage.document_title, *passage.chunk.location.headings[-1:])
    )


def _copies(passages: Sequence[VisibleChunk], readings: PassageReadings) -> frozenset[frozenset[str]]:
    """Return the pairs of documents with passages of which one repeats most of the other."""
    found = set()
    for one, other in combinations(passages, 2):
        if one.chunk.document_id != other.chunk.document_id:
            texts = readings.of(one).texts, readings.of(other).texts
            shared = len(texts[0] & texts[1])
            if shared >= max(_LEAST_COPIED, COPIED_SENTENCES * min(map(len, texts))):
                found.add(frozenset((one.chunk.document_id, other.chunk.document_id)))
    return frozenset(found)
