"""Which pieces of a text say something by themselves, and which are layout: headings, rows, datelines, lists of who came."""

from __future__ import annotations

import re

LEAST_WORDS = 5
"""Words below which a piece is a fragment ("A research note.", "PORT ELLERY."), whatever its punctuation."""
_WORD = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")
_EMPHASIS = re.compile(r"\s*(\*\*|__|\*|_)(?=\S)(?:(?!\1).)+\1[.:]?\s*", re.DOTALL)
_LABEL = re.compile(r"\s*[*_]*[A-Z][^\W\d_]*(?: [^\W\d_]+){0,3}[*_]*:[*_]*\s")
_LEANING = re.compile(
    r"[\"'“‘(*_]*(?:he|she|it|they|his|her|its|their|this|these|those|that|such|however|but|and|or|also|there|then|so|both|neither|"
    r"one|another|the (?:latter|former|first|second|third|other|rest))\b",
    re.IGNORECASE,
)
_CLOSING = "\"'”’)]»*_"
_ENDINGS = frozenset(".!?…。！？")
_MOST_CAPITALS = 0.75
_MOST_CAPITALS_LABELLED = 0.3


def is_statement(text: str) -> bool:
    """Tell whether ``text``, a sentence as `split_sentences` returns it, states something and can be quoted by itself.

    It has at least `LEAST_WORDS` words and an ending, begins like a sentence, and is no table row, no line set in
    emphasis as a heading is, no list of names behind a label ("Present: …"), and not mostly capitals. English and other
    languages with letter case; a text without case passes if it has an ending.
    """
    piece = text.strip()
    if not piece or "|" in piece or piece.startswith("#") or piece.rstrip(_CLOSING)[-1:] not in _ENDINGS:
        return False
    if _EMPHASIS.fullmatch(piece):
        return False
    words: list[str] = _WORD.findall(piece)
    if len(words) < LEAST_WORDS:
        return _without_spaces(piece)
    if piece.lstrip("\"'“‘([«*_—–- ")[:1].islower():
        return False
    capitals = sum(word[0].isupper() for word in words) / len(words)
    most = _MOST_CAPITALS_LABELLED if _LABEL.match(piece) else _MOST_CAPITALS
    return capitals <= most


def leans_on_context(text: str) -> bool:
    """Tell whether a sentence begins with a word that points back ("He …", "This …", "But …")."""
    return _LEANING.match(text) is not None


def _without_spaces(piece: str) -> bool:
    """Tell whether the script writes no spaces between words, so that one word may be a sentence."""
    return not piece.isascii() and any("\u3040" <= letter <= "\u9fff" for letter in piece)
