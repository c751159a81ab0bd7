"""Dates and years, recognised from tokens."""

from __future__ import annotations

from agentic_rag_backend.knowledge.extraction.lexicon import MONTHS, SEASONS
from agentic_rag_backend.knowledge.extraction.tokens import Shape, Tokens

_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
_ERAS = frozenset({"bc", "ad", "bce", "ce", "b.c.", "a.d."})


def date_end(tokens: Tokens, index: int, limit: int) -> int:
    """Return the token number after the date that starts at ``index``, or ``index`` if none does; never beyond ``limit``."""
    shape = tokens.shapes[index]
    if shape == Shape.NUMBER:
        return _from_number(tokens.words, index, limit)
    if shape in (Shape.CAPITAL, Shape.UPPER):
        return _from_word(tokens.words, index, limit)
    return index


def _from_number(words: list[str], index: int, limit: int) -> int:
    word = words[index]
    if is_year(word) or _matches_decades(word):
        if index + 1 < limit and words[index + 1].lower() in _ERAS:
            return index + 2
        return index + 1
    if _is_iso(word):
        return index + 1
    if _is_day(word) and index + 1 < limit:
        after = index + 2 if words[index + 1] == "of" else index + 1
        if after < limit and _is_month(words[after]):
            return _with_year(words, after + 1, limit)
    if word[-2:] in _ORDINAL_ENDINGS and index + 1 < limit and words[index + 1] in ("century", "centuries", "Century"):
        return index + 2
    if word.isdigit() and index + 1 < limit and words[index + 1].lower() in _ERAS:
        return index + 2
    return index


def _from_word(words: list[str], index: int, limit: int) -> int:
    if not _is_month(words[index]):
        if words[index].lower() in SEASONS and index + 1 < limit and is_year(words[index + 1]):
            return index + 2
        return index
    after = index + 1
    if after < limit and words[after] == "." and len(words[index]) < 5:
        after += 1
    if after < limit and (is_year(words[after]) or _is_day(words[after])):
        return _with_year(words, after, limit) if is_year(words[after]) else _with_year(words, after + 1, limit)
    # A month alone dates nothing, and Jan, May and August are names, too.
    return index


def _with_year(words: list[str], after: int, limit: int) -> int:
    if after < limit and is_year(words[after]):
        return after + 1
    if after + 1 < limit and words[after] == "," and is_year(words[after + 1]):
        return after + 2
    return after


def is_year(word: str) -> bool:
    """Return whether ``word`` is a year from 1000 to 2999, or two of them as in "1997-98"."""
    if len(word) == 4:
        return word.isascii() and word.isdigit() and word[0] in "12"
    return 7 <= len(word) <= 9 and word[4] in "-–" and is_year(word[:4]) and word[5:].isdigit()


def _matches_decades(word: str) -> bool:
    return len(word) == 5 and word[4] == "s" and is_year(word[:4])


def _is_iso(word: str) -> bool:
    return len(word) == 10 and word[4] == word[7] == "-" and is_year(word[:4]) and word[5:7].isdigit() and word[8:].isdigit()


def _is_day(word: str) -> bool:
    digits = word[:-2] if word[-2:] in _ORDINAL_ENDINGS else word
    return len(digits) <= 2 and digits.isdigit() and digits.isascii() and 1 <= int(digits) <= 31


def _is_month(word: str) -> bool:
    return word[0].isupper() and word.lower() in MONTHS
