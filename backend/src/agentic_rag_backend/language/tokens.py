"""Estimate of a text's tokens for a language model, without its tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD_CHARACTERS = 6
"""Characters of a Latin word that one token holds on average; a longer word is several tokens."""
_PIECES = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<number>[0-9]+)|(?P<space>\s+)|(?P<mark>[!-/:-@\[-`{-~]+)|(?P<latin>[\u00a0-\u024f\u1e00-\u1eff]+)|"
    r"(?P<cyrillic>[\u0400-\u052f]+)|(?P<spelled>[\u0370-\u03ff\u0590-\u06ff\u1f00-\u1fff]+)|"
    r"(?P<syllabic>[\u0700-\u1cff\u2e80-\u9fff\uac00-\ud7ff\uf900-\uffef]+)|(?P<other>.)",
    re.DOTALL,
)


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of ``text``, rather too many than too few.

    Scripts differ: four English characters are about one token, one Chinese character is about one, two Cyrillic
    letters are one, and a Greek, Arabic or Hebrew letter is nearly one. Measured on the byte-pair
    vocabularies ``cl100k_base`` and ``o200k_base``: see ``docs/reference/benchmarks/answers.md``.
    """
    tokens = 0.0
    for piece in _PIECES.finditer(text):
        kind, length = piece.lastgroup, piece.end() - piece.start()
        if kind == "word":
            tokens += 1 + (length - 1) // _WORD_CHARACTERS
        elif kind == "number":
            tokens += -(-length // 3)
        elif kind == "space":
            tokens += 1 if "\n" in piece[0] else max(0, length - 1) / 4
        else:
            tokens += length * _TOKENS_PER_CHARACTER[kind or "other"]
    return round(tokens)


_TOKENS_PER_CHARACTER = {"mark": 0.7, "latin": 0.8, "cyrillic": 0.5, "spelled": 0.85, "syllabic": 1.1, "other": 2.0}


def text_tokens(texts: Iterable[str]) -> int:
    """Return the estimated tokens of several texts."""
    return sum(estimate_tokens(text) for text in texts)
