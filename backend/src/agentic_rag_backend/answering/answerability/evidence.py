"""The units of the passages found for a question, with the question's words that each contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.question import Matches, Matrix, QuestionReading
from agentic_rag_backend.answering.answerability.units import Unit, units_of
from agentic_rag_backend.language.answers import Span, answer_spans
from agentic_rag_backend.language.entries.base import BETWEEN_VALUES
from agentic_rag_backend.language.independence import refers_back
from agentic_rag_backend.language.questions.kinds import AnswerKind, is_related_form
from agentic_rag_backend.language.sentences import is_statement
from agentic_rag_backend.language.words import STOP_WORDS, Word, all_forms, content_forms, words

MAX_REFERRED = 4
"""Earlier sentences to which one with "she" or "this" may refer."""
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage as retrieval found it.

    ``score`` in [0, 1] is its score relative to the best. ``document`` is the document's id; without it, the title stands for the
    document. ``date`` is the document's, as ISO 8601: a year, a month, a day, or empty. ``header`` are the lines above the
    passage that name the columns of its first table, or introduce its first list. ``language`` is the ISO 639-1 code in the
    document's metadata, or empty. ``sections`` are the headings above its parts: where a part starts in ``text``, and its
    headings in one line.
    """

    title: str
    text: str
    score: float
    document: str = ""
    date: str = ""
    header: str = ""
    language: str = ""
    sections: tuple[tuple[int, str], ...] = ()

    def headings_at(self, offset: int) -> str:
        """Return the headings above the character at ``offset`` that the title does not repeat; empty if there are none."""
        headings = next((headings for start, headings in reversed(self.sections) if start <= offset), "")
        return "" if headings == self.title else headings

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
    headings: str = ""
    """The headings above it, in one line."""

    @property
    def text(self) -> str:
        """The text that is compared with the question."""
        return self.unit.in_context

    @property
    def is_question(self) -> bool:
        """Whether it asks, as a heading may. It does not answer."""
        return self.text.rstrip(' *_"”').endswith("?")

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
        """(q, s): 1 if the sentence, a neighbour, a sentence to which it refers, a heading or the title contains the term.

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
        above = self.matches.of([content_forms(f"{sentence.unit.context} {sentence.unit.label}") for sentence in self.sentences])
        window = np.maximum(np.maximum(window, above), self.headed)
        return np.asarray(np.maximum(window, self.titled[:, self.passage_of]), dtype=np.float32)

    @cached_property
    def headed(self) -> Matrix:
        """(q, s): 1 if a heading above the sentence contains the term."""
        return self.matches.of([content_forms(sentence.headings) for sentence in self.sentences])

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
                headings = passages[passage].headings_at(unit.start)
                sentences.append(EvidenceSentence(passage, number, unit, forms, statement, headings))
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
