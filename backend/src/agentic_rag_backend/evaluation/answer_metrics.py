"""Metrics of an answer's text against the expected texts. Letter case, punctuation and markers of citations do not count."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_MARKER = re.compile(r"\[\d+\]")
_WORD = re.compile(r"\w+")
_ARTICLES = frozenset({"a", "an", "the"})


def contains_answer(text: str, answers: Sequence[str]) -> bool:
    """Return whether ``text`` contains one of ``answers``, word for word."""
    padded = f" {' '.join(_words_of(text))} "
    return any(f" {' '.join(words)} " in padded for words in map(_words_of, answers) if words)


def token_f1(text: str, expected: str) -> float:
    """Return the harmonic mean of precision and recall of the words, in [0, 1], without articles (Rajpurkar et al. 2016).

    Words that occur several times count as often as they occur in both texts. Two texts without a word are equal.
    """
    words, expected_words = (Counter(word for word in _words_of(side) if word not in _ARTICLES) for side in (text, expected))
    if not words or not expected_words:
        return float(words == expected_words)
    common = (words & expected_words).total()
    return 2 * common / (words.total() + expected_words.total())


def share_of_texts(text: str, required: Sequence[str]) -> float:
    """Return the share of ``required`` texts that ``text`` contains, in [0, 1]; 1.0 if none is required."""
    return sum(contains_answer(text, [item]) for item in required) / len(required) if required else 1.0


def _words_of(text: str) -> list[str]:
    return _WORD.findall(_MARKER.sub("", text).casefold())
