"""The sentences of the passages found for a question, with the question's words that each contains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.text.questions import related
from agentic_rag_backend.domain.text.sentences import Sentence, split_sentences
from agentic_rag_backend.domain.text.statements import is_statement
from agentic_rag_backend.domain.text.words import STOP_WORDS, Word, all_forms, content_forms, words
from agentic_rag_backend.generation.answerability.question import QuestionReading

Matrix = NDArray[np.float32]
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage as retrieval found it.

    ``score`` in [0, 1] is its score relative to the best. ``document`` is the document's id; without it, the title stands for the
    document. ``date`` is the document's, as ISO 8601: a year, a month, a day, or empty.
    """

    title: str
    text: str
    score: float
    document: str = ""
    date: str = ""

    @property
    def source(self) -> str:
        """What tells its document from others."""
        return self.document or self.title


@dataclass(frozen=True)
class EvidenceSentence:
    """A sentence of a passage; ``passage`` is the passage's number. Words have offsets in the sentence."""

    passage: int
    sentence: Sentence
    forms: frozenset[str]
    """The forms of all its words, stop words included."""
    statement: bool

    @property
    def text(self) -> str:
        """Its text."""
        return self.sentence.text

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return tuple(words(self.sentence.text))


@dataclass(frozen=True)
class EvidenceReading:
    """The sentences of all passages, in order, and the question's terms in them. Shapes: q terms, s sentences, p passages."""

    question: QuestionReading
    passages: tuple[PassageText, ...]
    sentences: tuple[EvidenceSentence, ...]
    matches: Matches
    held: Matrix
    """(q, s): 1 if the sentence contains a form related to the term."""
    titled: Matrix
    """(q, p): 1 if the passage's title contains it."""

    @cached_property
    def passage_of(self) -> NDArray[np.intp]:
        """(s,): the passage of each sentence."""
        return np.array([each.passage for each in self.sentences], dtype=np.intp)

    @cached_property
    def rarity(self) -> Matrix:
        """(q,): ln(1 + s / frequency) of each term among the sentences, as shares of their sum."""
        frequency = np.maximum(self.held.sum(axis=1), _HALF)
        raw = np.log1p(len(self.sentences) / frequency)
        return np.asarray(raw / raw.sum() if raw.any() else raw, dtype=np.float32)

    @cached_property
    def in_window(self) -> Matrix:
        """(q, s): 1 if the sentence, a neighbour in its passage, or the title contains the term."""
        near = self.held.copy()
        same = self.passage_of[1:] == self.passage_of[:-1]
        near[:, 1:] = np.maximum(near[:, 1:], self.held[:, :-1] * same)
        near[:, :-1] = np.maximum(near[:, :-1], self.held[:, 1:] * same)
        return np.asarray(np.maximum(near, self.titled[:, self.passage_of]), dtype=np.float32)

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
        whole = self.titled.copy()
        np.maximum.at(whole.T, self.passage_of, self.held.T)
        return whole


def read_evidence(question: QuestionReading, passages: Sequence[PassageText]) -> EvidenceReading:
    """Return the sentences of ``passages`` that say more than the question, without headings."""
    known = content_forms(question.text)
    sentences: list[EvidenceSentence] = []
    for number, passage in enumerate(passages):
        titled = content_forms(passage.title)
        for sentence in split_sentences(passage.text):
            forms = all_forms(sentence.text)
            new = forms - STOP_WORDS - known
            states = is_statement(sentence.text.strip("*_ "))
            # A heading repeats the title. A statement may be the title of a document without headings.
            if new - titled or (new and states):
                sentences.append(EvidenceSentence(number, sentence, forms, states))
    matches = Matches(question.forms)
    return EvidenceReading(
        question=question,
        passages=tuple(passages),
        sentences=tuple(sentences),
        matches=matches,
        held=matches.of([each.forms for each in sentences]),
        titled=matches.of([content_forms(passage.title) for passage in passages]),
    )


class Matches:
    """Compares forms with a question's terms. Each form is compared once."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._terms = terms
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, texts: Sequence[Iterable[str]]) -> Matrix:
        """Return a matrix (terms, texts): 1 where a text has a form related to the term."""
        found = np.zeros((len(self._terms), len(texts)), dtype=np.float32)
        for column, forms in enumerate(texts):
            for form in forms:
                for row in self._rows(form):
                    found[row, column] = 1.0
        return found

    def of_words(self, found: Sequence[Word]) -> Matrix:
        """Return a matrix (terms, words): 1 where a word is related to the term."""
        return self.of([(word.form,) for word in found])

    def _rows(self, form: str) -> tuple[int, ...]:
        known = self._known.get(form)
        if known is None:
            known = self._known[form] = tuple(row for row, term in enumerate(self._terms) if related(term, (form,)))
        return known
