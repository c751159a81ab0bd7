"""The quotations of an account that rests on many passages, such as "How do the islanders fare?": one sentence of each passage.

A sentence is worth its similarity to the question, the question's rare words in it and around it, and whether it is understood by
itself (`independence.rate_independence`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.generation.answerability.evidence import EvidenceReading
from agentic_rag_backend.language.independence import rate_independence
from agentic_rag_backend.models.embedding.base import Vectors

MAX_COMPARED = 16
"""Sentences that are embedded, which is nearly the whole cost."""
MAX_PER_PASSAGE = 2
MAX_QUOTED = 6
WORDS_SHARE = 0.5
"""Weight of the question's words relative to the cosine."""
LEAST_STANDING = 0.6
"""Factor on the worth of a sentence that is not understood by itself."""
LEAST_SHARE = 0.5
"""Share of the best worth from which a further sentence is quoted."""


def select_compared_sentences(reading: EvidenceReading) -> list[int]:
    """Return the numbers of the sentences to compare with the question, at most `MAX_COMPARED`, few of each passage."""
    worth = _weigh_words(reading) * _is_standing(reading, range(len(reading.sentences)))
    per_passage: Counter[int] = Counter()
    numbers: list[int] = []
    for number in np.argsort(-worth, kind="stable").tolist():
        sentence = reading.sentences[number]
        if sentence.statement and per_passage[sentence.passage] < MAX_PER_PASSAGE:
            per_passage[sentence.passage] += 1
            numbers.append(number)
    return numbers[:MAX_COMPARED]


def texts_of(reading: EvidenceReading, numbers: Sequence[int]) -> list[str]:
    """Return the texts of sentences, each after the title of its document."""
    sentences = [reading.sentences[number] for number in numbers]
    return [f"{reading.passages[sentence.passage].title}: {sentence.text}" for sentence in sentences]


def choose_passages(reading: EvidenceReading, numbers: Sequence[int], question: Vectors, vectors: Vectors) -> list[int]:
    """Return the numbers of the quoted sentences, best first, one of each passage.

    Args:
        numbers: see `select_compared_sentences`.
        question: vector of the question, shape (dimensions,).
        vectors: of the sentences, shape (len(numbers), dimensions).
    """
    worth = (vectors @ question + WORDS_SHARE * _weigh_words(reading)[list(numbers)]) * _is_standing(reading, numbers)
    chosen: dict[int, int] = {}
    for index in np.argsort(-worth, kind="stable").tolist():
        passage = reading.sentences[numbers[index]].passage
        if worth[index] >= LEAST_SHARE * worth.max() and passage not in chosen:
            chosen[passage] = numbers[index]
    return list(chosen.values())[:MAX_QUOTED]


def _weigh_words(reading: EvidenceReading) -> NDArray[np.float64]:
    """Return, for each sentence, the rarity of the question's terms in it and, by half, around it."""
    return np.asarray(reading.rarity @ (reading.held + reading.in_window) / 2, dtype=np.float64)


def _is_standing(reading: EvidenceReading, numbers: Sequence[int]) -> NDArray[np.float64]:
    stands = np.array([rate_independence(reading.sentences[number].text) for number in numbers], dtype=np.float64)
    return LEAST_STANDING + (1.0 - LEAST_STANDING) * stands
