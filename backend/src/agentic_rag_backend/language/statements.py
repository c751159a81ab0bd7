"""Separates statements from layout: headings, table rows, datelines, lists of participants."""

from __future__ import annotations

import re

LEAST_WORDS = 5
"""Shorter pieces are fragments ("A research note.", "PORT ELLERY."), whatever their punctuation."""
_WORD = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")
_EMPHASIS = re.compile(r"\s*(\*\*|__|\*|_)(?=\S)(?:(?!\1).)+\1[.:]?\s*", re.DOTALL)
_LABEL = re.compile(r"\s*[*_]*[A-Z][^\W\d_]*(?: [^\W\d_]+){0,3}[*_]*:[*_]*\s")
_LEANING = re.compile(
    r"[\"'“‘(*_]*(?:he|she|it|they|his|her|its|their|this|these|those|that|such|however|but|and|or|also|there|then|so|both|neither|"
    r"one|another|the (?:latter|former|first|second|third|other|rest)|"
    r"(?:together|later|afterwards|soon|now|today|since then),? (?:he|she|it|they))\b",
    re.IGNORECASE,
)
_CLOSING = "\"'”’)]»*_"
_ENDINGS = frozenset(".!?…。！？")
_MAX_CAPITALS = 0.75
_MAX_CAPITALS_LABELLED = 0.3


def is_statement(text: str) -> bool:
    """Return whether ``text``, a sentence of `split_sentences`, is a statement that can be quoted by itself.

    It has at least `LEAST_WORDS` words and an ending, and it begins like a sentence. It is not a table row, a line in emphasis
    like a heading, a list of names after a label ("Present: …"), or mostly capitals. For English and other languages with letter
    case. A text in a script without case only needs an ending.
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
    largest_share = _MAX_CAPITALS_LABELLED if _LABEL.match(piece) else _MAX_CAPITALS
    return capitals <= largest_share


def leans_on_context(text: str) -> bool:
    """Return whether a sentence begins with a word that refers to the context ("He …", "This …", "But …")."""
    return _LEANING.match(text) is not None


def _without_spaces(piece: str) -> bool:
    """Return whether the script writes no spaces between words, so that a single "word" may be a sentence."""
    return not piece.isascii() and any("\u3040" <= letter <= "\u9fff" for letter in piece)
