"""How much a word speaks for each type of a name, by its place inside the name or next to it.

The scores are a linear function of the word vectors that the bundled encoder looks up before its first layer, so no pass of the
encoder is needed and the neighbours in a batch have no influence. ``benchmarks/entity_typing.py`` fits the function and
writes the scores of all word pieces to ``word_scores.npz``.
"""

from __future__ import annotations

import json
import unicodedata
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

FILE = "word_scores.npz"
SLOTS = ("any", "first", "last", "only", "before", "after", "before_that", "after_that")
"""Places of a word: any, the first, the last or the only one of the name, and the two words before and after it."""
CLASSES = ("person", "organisation", "place", "other")
"""Types with scores; ``other`` includes works. All scores are relative to ``other``, whose scores are 0."""
DECIDED = len(CLASSES) - 1
_LONGEST_WORD = 40
_CACHED_WORDS = 16_384
_BLANK = array("b", bytes(len(SLOTS) * DECIDED))


class WordScores:
    """Scores of words from the scores of their pieces.

    Args:
        pieces: word pieces; those that continue a word begin with ``##``.
        scores: int8, shape (pieces, slots × decided classes).
        unit: value of 1 in ``scores``, in log odds.
        weights: log odds for one unit of each feature of a name, by class without ``other``.
        agreement: log odds for the certainty of related names, by relation.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        scores: NDArray[np.int8],
        unit: float,
        weights: Mapping[str, Sequence[float]],
        agreement: Mapping[str, float],
    ) -> None:
        self._number = {piece: number for number, piece in enumerate(pieces)}
        self._scores = scores
        self.unit = unit
        self.weights = weights
        self.agreement = agreement
        self.of = lru_cache(maxsize=_CACHED_WORDS)(self._score_word)

    def _score_word(self, word: str) -> array[int]:
        """Return the scores of a word, slot by slot, `DECIDED` for each: the mean over its pieces; 0 for unknown words."""
        numbers = [self._number[piece] for piece in word_pieces(word, self._number)]
        if not numbers:
            return _BLANK
        return array("b", self._scores[numbers].mean(axis=0, dtype=np.float64).round().astype(np.int8).tobytes())


def word_pieces(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Return the longest known pieces of a word from left to right, without letter case and accents; empty if one is unknown."""
    text = "".join(letter for letter in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(letter))
    if len(text) > _LONGEST_WORD:
        return []
    pieces: list[str] = []
    for part in _split_parts(text):
        start = 0
        while start < len(part):
            mark = "##" if start else ""
            end = next((end for end in range(len(part), start, -1) if mark + part[start:end] in vocabulary), 0)
            if not end:
                return []
            pieces.append(mark + part[start:end])
            start = end
    return pieces


def _split_parts(text: str) -> list[str]:
    """Return runs of letters and digits, and every other character alone."""
    parts: list[str] = []
    previous = False
    for letter in text:
        joins = letter.isalnum()
        if joins and previous:
            parts[-1] += letter
        else:
            parts.append(letter)
        previous = joins
    return parts


@lru_cache(maxsize=1)
def load_scores() -> WordScores:
    """Return the scores that this version ships."""
    with (files(__package__) / FILE).open("rb") as stored, np.load(stored, allow_pickle=False) as arrays:
        fit = json.loads(str(arrays["fit"]))
        return WordScores(str(arrays["pieces"]).split("\n"), arrays["scores"], fit["unit"], fit["weights"], fit["agreement"])
