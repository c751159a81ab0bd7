"""Whether the characters of a page are its text. Fonts may name none of their characters, or name them wrongly.

The limits were chosen on 1,544 pages of 1,071 files, most of them made to test readers of PDF. Of the pages that can be read, 23
are taken for unreadable: all repeat a few words or numbers, or are made of symbols.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

NAMELESS = "its fonts do not name the characters that they draw"
MISNAMED = "its fonts name the characters that they draw wrongly"
_MOST_NAMELESS, _MOST_CONTROLS = 0.05, 0.02
"""Shares of characters without a name, private ones among them, and of replaced and control characters. Mathematics has up to
0.04 private ones, and lists have one for each bullet."""
_LEAST_NAMELESS = 2
_LEAST_LETTERS, _LEAST_DISTINCT = 150, 14
"""Letters of a page, and different ones, from which their frequencies say something."""
_LEAST_LIKENESS = 0.65
"""Cosine of the frequencies of letters and those of European languages. Texts of 12 languages have 0.69 (Welsh) to 0.96. English
whose letters are shifted has less for 21 of the 25 shifts."""
_MOST_PHONETIC = 0.2
_MOST_MIXED, _LEAST_MIXED = 0.2, 3
"""Share and number of words in letters of several scripts."""
_LEAST_WORD = 3

_CONTROLS = re.compile("[\ufffd\x01-\x08\x0e-\x1f\x7f-\x9f]")
_UNNAMED = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff\x01-\x08\x0e-\x1f\x7f-\x9f]")
_PHONETIC = re.compile("[\u0180-\u02af]")
_MIXABLE = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "GREEK", "LATIN", "MATHEMATICAL", "DOUBLE-STRUCK"})
"""First words of the names of letters that words mix in text."""
_FREQUENCIES = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        (
            8.2, 1.4, 3.3, 3.9, 13.5, 1.5, 1.8, 3.5, 7.4, 0.3, 0.6, 4.3, 2.7,
            7.3, 6.6, 2.6, 0.4, 6.7, 7.0, 7.4, 3.4, 1.2, 1.2, 0.2, 1.3, 0.5,
        ),
        strict=True,
    )
)  # fmt: skip
"""Letters in 100 of prose, the mean of English, French, German and Spanish."""
_LENGTH = math.hypot(*_FREQUENCIES.values())


def find_problem(text: str) -> str | None:
    """Return why the characters of a page are not its text; None if they may be."""
    text = text.replace("\x02", "")
    size = len(text) - text.count(" ")
    nameless = len(_UNNAMED.findall(text))
    if nameless >= _LEAST_NAMELESS and (
        nameless >= _MOST_NAMELESS * size or len(_CONTROLS.findall(text)) >= max(_MOST_CONTROLS * size, _LEAST_NAMELESS)
    ):
        return NAMELESS
    if not text.isascii() and (len(_PHONETIC.findall(text)) > _MOST_PHONETIC * size or _mixes_scripts(text.split())):
        return MISNAMED
    return MISNAMED if _has_unlikely_letters(text) else None


def count_readable(text: str) -> int:
    """Return the number of characters that are named."""
    return len(text) - text.count(" ") - len(_UNNAMED.findall(text))


def _mixes_scripts(words: Iterable[str]) -> bool:
    counts = Counter(
        len({script for character in word if (script := _script_of(character))} - _MIXABLE)
        + any(_script_of(character) in _MIXABLE for character in word)
        for word in words
        if not word.isascii() and len(word) >= _LEAST_WORD
    )
    mixed = sum(count for scripts, count in counts.items() if scripts > 1)
    return mixed >= max(_MOST_MIXED * counts.total(), _LEAST_MIXED)


@lru_cache(maxsize=8192)
def _script_of(character: str) -> str:
    """Return the first word of a letter's name; empty if it is no letter."""
    return unicodedata.name(character, "").partition(" ")[0].partition("-")[0] if character.isalpha() else ""


def _has_unlikely_letters(text: str) -> bool:
    counts = Counter((text if text.isascii() else unicodedata.normalize("NFD", text)).casefold())
    letters = {letter: counts[letter] for letter in _FREQUENCIES if counts[letter]}
    if len(letters) < _LEAST_DISTINCT or sum(letters.values()) < _LEAST_LETTERS:
        return False
    product = sum(_FREQUENCIES[letter] * count for letter, count in letters.items())
    return product < _LEAST_LIKENESS * _LENGTH * math.hypot(*letters.values())
