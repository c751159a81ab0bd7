"""The analysis of a question: its words, names and numbers, the kind of answer it asks for, and its words in other texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.language.questions.kinds import AnswerKind, asked_for, find_measure, is_related_form
from agentic_rag_backend.language.words import Word, comparable, names_and_numbers, words


def _forms_of(text: str) -> frozenset[str]:
    return frozenset(comparable(word) for word in text.split())


_GENERIC = _forms_of(
    "year date day month century decade time name number amount percentage percent type kind term word thing person people many "
    "much colour color"
)
"""Words that describe the answer. A passage with the answer need not contain them."""
_QUESTION_WORDS = _forms_of("who what when where which why how whose whom")
YEAR_DIGITS = 4
_CENTURIES = frozenset(("15", "16", "17", "18", "19", "20", "21"))
_NEGATION = re.compile(
    r"\b(?:not|never|nor|neither|cannot|none|nobody|nothing|without|no|except|unlike|other than|lack\w*|fail\w*|refus\w*|"
    r"unable)\b|n['’]t\b",
    re.IGNORECASE,
)


def is_year(form: str) -> bool:
    """Return whether a word is a number that may be a year."""
    return len(form) == YEAR_DIGITS and form.isdigit() and form[:2] in _CENTURIES


def has_negation(text: str) -> bool:
    """Return whether ``text`` contains a word of negation, refusal or failure."""
    return _NEGATION.search(text) is not None


@dataclass(frozen=True)
class QuestionReading:
    """A question with its words. ``terms`` are the words that carry meaning, each form once, in order."""

    text: str
    words: tuple[Word, ...]
    terms: tuple[int, ...]
    """Positions in ``words``."""
    asked: AnswerKind
    names: frozenset[str]
    """Forms of its names, without numbers."""
    measured: frozenset[str]
    """Form of the counted or measured noun."""

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The forms of the terms."""
        return tuple(self.words[index].form for index in self.terms)

    @cached_property
    def every_form(self) -> frozenset[str]:
        """The forms of all words, stop words included."""
        return frozenset(word.form for word in self.words)

    @cached_property
    def named(self) -> NDArray[np.bool_]:
        """Which terms are names, without numbers."""
        return np.array([form in self.names for form in self.forms], dtype=bool)

    @cached_property
    def numbers(self) -> NDArray[np.bool_]:
        """Which terms are numbers."""
        return np.array([form[0].isdigit() for form in self.forms], dtype=bool)

    @cached_property
    def years(self) -> NDArray[np.bool_]:
        """Which terms are years."""
        return np.array([is_year(form) for form in self.forms], dtype=bool)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which terms are the counted or measured noun."""
        return np.array([form in self.measured for form in self.forms], dtype=bool)

    @cached_property
    def negative(self) -> bool:
        """Whether the question contains a negation."""
        return has_negation(self.text)

    @cached_property
    def question_word(self) -> int | None:
        """Position of the first question word."""
        return next((index for index, word in enumerate(self.words) if word.form in _QUESTION_WORDS), None)


def read_question(text: str) -> QuestionReading:
    """Return the analysis of ``text``."""
    question_words = tuple(words(text))
    indexes: dict[str, int] = {}
    for index, word in enumerate(question_words):
        if word.content:
            indexes.setdefault(word.form, index)
    specific = {form: index for form, index in indexes.items() if form not in _GENERIC} or indexes
    names = frozenset(form for form in names_and_numbers(text) if not form[0].isdigit())
    return QuestionReading(
        text=text,
        words=question_words,
        terms=tuple(specific.values()),
        asked=asked_for(text),
        names=names,
        measured=find_measure(text),
    )


Matrix = NDArray[np.float32]


class Matches:
    """Compares forms with a question's terms. Each form is compared once."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._terms = terms
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, texts: Sequence[Iterable[str]]) -> Matrix:
        """Return a matrix (terms, texts): 1 where a text has a form related to the term."""
        matrix = np.zeros((len(self._terms), len(texts)), dtype=np.float32)
        for column, forms in enumerate(texts):
            for form in forms:
                for row in self.rows(form):
                    matrix[row, column] = 1.0
        return matrix

    def of_words(self, sentence_words: Sequence[Word]) -> Matrix:
        """Return a matrix (terms, words): 1 where a word is related to the term."""
        return self.of([(word.form,) for word in sentence_words])

    def rows(self, form: str) -> tuple[int, ...]:
        """Return the numbers of the terms that ``form`` is related to."""
        rows = self._known.get(form)
        if rows is None:
            rows = self._known[form] = tuple(row for row, term in enumerate(self._terms) if is_related_form(term, (form,)))
        return rows
