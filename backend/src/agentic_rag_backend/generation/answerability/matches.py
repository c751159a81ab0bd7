"""Compares the words of texts with the terms of a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.language.questions import is_related_form
from agentic_rag_backend.language.words import Word

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
