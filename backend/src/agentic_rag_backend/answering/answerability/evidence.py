"""The units of the passages found for a question, with the question's words that each contains.

The units of a passage that may answer a question, and the window of text that makes one understood.

A unit is a sentence, a row of a table, an item of a list, or the line that introduces a list. A window is a unit with what
belongs to it: the items of its list, the sentence that "she" refers to, or the next sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.question import Matches, Matrix, QuestionReading
from agentic_rag_backend.language.answers import Span, answer_spans
from agentic_rag_backend.language.entries.base import BETWEEN_VALUES, Entry, sentence_of
from agentic_rag_backend.language.entries.reading import read_entries
from agentic_rag_backend.language.independence import refers_back
from agentic_rag_backend.language.questions import AnswerKind, is_related_form
from agentic_rag_backend.language.sentences import Sentence, is_statement
from agentic_rag_backend.language.words import STOP_WORDS, Word, all_forms, content_forms, words

UnitKind = Literal["sentence", "heading", "row", "item", "opening"]
WRAPPED_CHARACTERS = 45
"""Length from which a line is wrapped prose that continues on the next line. A shorter line is a unit of its own."""
SHORT_CHARACTERS = 60
"""Length below which a sentence is quoted with the one before it."""
PREVIOUS_CHARACTERS = 200
"""Longest previous sentence that a window includes."""
WINDOW_CHARACTERS = 300
"""Length of a window up to which the next sentence is included."""
LIST_CHARACTERS = 600
"""Length up to which a list is quoted whole."""


@dataclass(frozen=True, slots=True)
class Unit:
    """``passage.text[start:end]``.

    ``text`` states the unit: a row has the names of its columns. ``block`` is the number of its table or list, None for a
    sentence. ``context`` is the line above its table, or the line that introduces its list. ``label`` is the name of the first
    column of a row, which ``text`` leaves out if the cell is a word.
    """

    kind: UnitKind
    start: int
    end: int
    text: str
    block: int | None = None
    context: str = ""
    label: str = ""

    @property
    def in_context(self) -> str:
        """The text that is compared with a question. An item is about what introduces its list."""
        return f"{self.context}: {self.text}" if self.kind == "item" and self.context else self.text


@dataclass(frozen=True, slots=True)
class Window:
    """Units ``first`` to ``last`` (included) of a passage: ``passage.text[start:end]``. ``text`` is what an answer writes."""

    first: int
    last: int
    start: int
    end: int
    text: str


def units_of(text: str, header: str = "") -> list[Unit]:
    """Return the units of a passage in order.

    Args:
        header: see `read_entries`.
    """
    reading = read_entries(text, header)
    units = [unit for number, entry in enumerate(reading.entries) for unit in _units_of_entry(text, entry, number)]
    for sentence in reading.sentences:
        kind: UnitKind = "heading" if text[: sentence.start].rstrip(" \t").endswith("#") else "sentence"
        units += [Unit(kind, start, end, " ".join(text[start:end].split())) for start, end in _split_lines(text, sentence)]
    return sorted(units, key=lambda unit: (unit.start, unit.end))


def _units_of_entry(text: str, entry: Entry, number: int) -> Iterator[Unit]:
    if entry.table is not None:
        # Tables and lists have numbers of their own; those of tables are negative.
        text = sentence_of(entry)
        yield Unit("row", max(0, entry.start), entry.end, text, -1 - entry.table, entry.context, entry.subject_label)
        return
    opening = text.find(entry.subject, max(0, entry.start), entry.end) if entry.subject else -1
    if opening >= 0:
        yield Unit("opening", opening, opening + len(entry.subject), entry.subject, number)
    for value in entry.values:
        if value.start >= 0:
            yield Unit("item", value.start, value.end, str(value), number, entry.subject)


def _split_lines(text: str, sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Yield the spans of a sentence, or of each of its lines if they are not wrapped prose, such as the lines of a form."""
    start = position = sentence.start
    lines = text[sentence.start : sentence.end].split("\n")
    for number, line in enumerate(lines):
        end = position + len(line)
        position = end + 1
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if following and (len(line.rstrip()) >= WRAPPED_CHARACTERS or following[0].islower()):
            continue
        if text[start:end].strip():
            yield start, end
        start = position


def window_of(units: Sequence[Unit], number: int, excluded: Collection[int] = ()) -> Window:
    """Return the window of the unit at place ``number`` of a passage's ``units``, without the ``excluded`` ones."""
    start, end = _bounds_of_window(units, number)
    while any(index in excluded for index in range(start, number)):
        start += 1
    while any(index in excluded for index in range(number + 1, end + 1)):
        end -= 1
    unit = units[number]
    if start == end:
        return Window(number, number, unit.start, unit.end, unit.in_context)
    return _make_window(units, start, end)


def _bounds_of_window(units: Sequence[Unit], number: int) -> tuple[int, int]:
    """Return the first and the last unit of the window of a unit."""
    unit = units[number]
    if unit.kind == "row":
        return number, number
    if unit.kind in ("item", "opening"):
        return _of_list(units, number)
    start = end = number
    length = len(unit.text)
    before = units[number - 1] if number else None
    leans = unit.kind == "sentence" and (length < SHORT_CHARACTERS or refers_back(unit.text))
    if leans and before is not None and before.kind in ("sentence", "heading") and len(before.text) < PREVIOUS_CHARACTERS:
        start -= 1
        length += len(before.text)
    after = units[number + 1] if number + 1 < len(units) else None
    if after is not None and unit.text.endswith(":") and after.block is not None:
        end = _last_within(units, number + 1)
    elif after is not None and after.kind == "sentence" and length + len(after.text) < WINDOW_CHARACTERS:
        end += 1
    return start, end


def _of_list(units: Sequence[Unit], number: int) -> tuple[int, int]:
    """Return the list of an item, or of the line before a list. Of a long list, its first items or the item."""
    unit = units[number]
    members = [index for index in range(len(units)) if units[index].block == unit.block]
    end = _last_within(units, members[0])
    if number > end or (unit.kind == "item" and end < members[-1]):
        return number, number
    return members[0], end


def _last_within(units: Sequence[Unit], start: int) -> int:
    """Return the last unit of a table or list that begins at ``start``, within `LIST_CHARACTERS`; at least ``start``."""
    end, length = start, len(units[start].text)
    while end + 1 < len(units) and units[end + 1].block == units[start].block:
        length += len(units[end + 1].text)
        if length > LIST_CHARACTERS:
            break
        end += 1
    return end


def _make_window(units: Sequence[Unit], start: int, end: int) -> Window:
    chosen = units[start : end + 1]
    texts = [f"{unit.text} –" if unit.kind == "heading" else unit.text for unit in chosen if unit.kind not in ("item", "row")]
    before = " ".join(texts).removesuffix(" –")
    if chosen[0].kind == "item":
        before = chosen[0].context
    entries = "; ".join(unit.text.rstrip(" ;,") for unit in chosen if unit.kind in ("item", "row"))
    between = ": " if before and entries and not before.endswith(":") else " "
    return Window(start, end, chosen[0].start, chosen[-1].end, f"{before}{between}{entries}".strip())


MAX_REFERRED = 4
"""Earlier sentences to which one with "she" or "this" may refer."""
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage as retrieval found it.

    ``score`` in [0, 1] is its score relative to the best. ``document`` is the document's id; without it, the title stands for the
    document. ``date`` is the document's, as ISO 8601: a year, a month, a day, or empty. ``header`` are the lines above the
    passage that name the columns of its first table, or introduce its first list. ``language`` is the ISO 639-1 code in the
    document's metadata, or empty. ``sections`` are the headings above its parts: where a part starts in ``text``, and its headings
    in one line.
    """

    title: str
    text: str
    score: float
    document: str = ""
    date: str = ""
    header: str = ""
    language: str = ""
    sections: tuple[tuple[int, str], ...] = ()

    @property
    def source(self) -> str:
        """What tells its document from others."""
        return self.document or self.title


@dataclass(frozen=True)
class EvidenceSentence:
    """A unit of a passage. ``number`` is its place among the units of the passage number ``passage``.

    Words have offsets in ``text``.
    """

    passage: int
    number: int
    unit: Unit
    forms: frozenset[str]
    """The forms of all its words, stop words included."""
    statement: bool

    @property
    def text(self) -> str:
        """The text that is compared with the question."""
        return self.unit.in_context

    @property
    def is_entry(self) -> bool:
        """Whether it belongs to a table or list, so that its neighbours are about something else."""
        return self.unit.block is not None

    def items(self, question: QuestionReading) -> list[Span] | None:
        """Return the items of its text that may answer, see `answer_spans`.

        In a table or list, a number needs no unit if the question has a word of its label, such as "Depth: 6.1".
        """
        spans = answer_spans(self.text, question.asked, question.text)
        if spans or not self.is_entry or question.asked is not AnswerKind.MEASURE:
            return spans
        return [
            span for span in answer_spans(self.text, AnswerKind.NUMBER, question.text) or () if self._is_labelled(span, question)
        ]

    def _is_labelled(self, span: Span, question: QuestionReading) -> bool:
        """Return whether an item is the first word after a label that has a word of the question."""
        label, colon, between = self.text[: span[0]].rpartition(BETWEEN_VALUES)[2].rpartition(": ")
        forms = content_forms(label.rpartition(" – ")[2])
        return bool(colon) and not between.strip() and any(is_related_form(form, forms) for form in question.forms)

    @cached_property
    def leans(self) -> bool:
        """Whether it begins with a word that refers to earlier sentences, such as "she" or "this"."""
        return not self.is_entry and refers_back(self.text.lstrip("*_ "))

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return tuple(words(self.text))


@dataclass(frozen=True)
class EvidenceReading:
    """The sentences of all passages, in order, and the question's terms in them. Shapes: q terms, s sentences, p passages."""

    question: QuestionReading
    passages: tuple[PassageText, ...]
    units: tuple[tuple[Unit, ...], ...]
    """The units of each passage, those that say nothing new included."""
    sentences: tuple[EvidenceSentence, ...]
    matches: Matches
    held: Matrix
    """(q, s): 1 if the sentence contains a form related to the term."""
    titled: Matrix
    """(q, p): 1 if the passage's title or year contains it."""

    @cached_property
    def passage_of(self) -> NDArray[np.intp]:
        """(s,): the passage of each sentence."""
        return np.array([sentence.passage for sentence in self.sentences], dtype=np.intp)

    @cached_property
    def rarity(self) -> Matrix:
        """(q,): ln(1 + s / frequency) of each term among the sentences, as shares of their sum."""
        frequency = np.maximum(self.held.sum(axis=1), _HALF)
        raw = np.log1p(len(self.sentences) / frequency)
        return np.asarray(raw / raw.sum() if raw.any() else raw, dtype=np.float32)

    @cached_property
    def in_window(self) -> Matrix:
        """(q, s): 1 if the sentence, a neighbour, a sentence to which it refers, or the title contains the term.

        Neighbours of an entry are about something else. The line above its table and the name of its first column count instead.
        """
        window = self.held.copy()
        for number, earlier in enumerate(self.referred):
            if earlier:
                window[:, number] = np.maximum(window[:, number], self.held[:, list(earlier)].max(axis=1))
        alone = np.array([sentence.is_entry for sentence in self.sentences], dtype=bool)
        joined = (self.passage_of[1:] == self.passage_of[:-1]) & ~alone[1:] & ~alone[:-1]
        window[:, 1:] = np.maximum(window[:, 1:], self.held[:, :-1] * joined)
        window[:, :-1] = np.maximum(window[:, :-1], self.held[:, 1:] * joined)
        if alone.any():
            above = [content_forms(f"{sentence.unit.context} {sentence.unit.label}") for sentence in self.sentences]
            window = np.maximum(window, self.matches.of(above))
        return np.asarray(np.maximum(window, self.titled[:, self.passage_of]), dtype=np.float32)

    @cached_property
    def referred(self) -> tuple[tuple[int, ...], ...]:
        """The earlier sentences to which each sentence may refer: back to the first that refers to none, nearest first."""
        references: list[tuple[int, ...]] = []
        for number, sentence in enumerate(self.sentences):
            before = self.sentences[number - 1] if number else None
            follows = before is not None and before.passage == sentence.passage and sentence.leans and not before.is_entry
            references.append((number - 1, *references[-1])[:MAX_REFERRED] if follows else ())
        return tuple(references)

    @cached_property
    def in_passage(self) -> Matrix:
        """(q, s): 1 if the sentence's passage or its title contains the term."""
        return np.asarray(self._by_passage[:, self.passage_of], dtype=np.float32)

    @cached_property
    def anywhere(self) -> Matrix:
        """(q,): 1 if any passage contains the term."""
        return np.asarray(self._by_passage.max(axis=1, initial=0.0), dtype=np.float32)

    @cached_property
    def _by_passage(self) -> Matrix:
        terms = self.titled.copy()
        np.maximum.at(terms.T, self.passage_of, self.held.T)
        return terms


def read_evidence(question: QuestionReading, passages: Sequence[PassageText]) -> EvidenceReading:
    """Return the sentences and entries of ``passages`` that say more than the question, without headings."""
    question_forms = content_forms(question.text)
    matches = Matches(question.forms)
    titles = [content_forms(passage.title) for passage in passages]
    units = tuple(tuple(units_of(passage.text, passage.header)) for passage in passages)
    sentences: list[EvidenceSentence] = []
    for passage, of_passage in enumerate(units):
        for number, unit in enumerate(of_passage):
            forms = all_forms(unit.in_context)
            statement = unit.block is not None or is_statement(unit.text.strip("*_ "))
            new = forms - STOP_WORDS - question_forms
            # A heading repeats the title. A statement may be the title of a document without headings.
            if new - titles[passage] or (new and statement):
                sentences.append(EvidenceSentence(passage, number, unit, forms, statement))
    return EvidenceReading(
        question=question,
        passages=tuple(passages),
        units=units,
        sentences=tuple(sentences),
        matches=matches,
        held=matches.of([sentence.forms for sentence in sentences]),
        # The year of a document is rarely repeated in its sentences.
        titled=matches.of([content_forms(f"{passage.title} {passage.date[:4]}") for passage in passages]),
    )
