"""The literal parts of a query: quoted phrases and identifiers, which a user wants to find as they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

_QUOTED = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|「([^」\n]{1,200})」')
_AROUND = "?!.,;:()[]{}<>\"'`“”„«»「」、。"
_QUANTITY = re.compile(r"\d+['’]?[^\W\d_]{1,3}")
"""Ordinals, decades and numbers with a unit: "19th", "1990's", "12km"."""
_YEARS = re.compile(r"\d{4}[-/]\d{2}(?:\d{2})?(?:[-/]\d{1,2})?")
"""Ranges of years and ISO dates: "2019-20", "2024-05-06"."""
_GROUPS = re.compile(r"\d+(?:[-/]\d+)+|\d+(?:\.\d+){2,}")
"""Numbers in groups, such as "2024-118" and "10.0.0.1"; a single point is a decimal point."""
_PARTS = re.compile(r"[-/]")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_MIN_DIGITS = 6
"""Digits of a plain number that is more likely an identifier than an amount."""


@dataclass(frozen=True, slots=True)
class Literals:
    """The quoted phrases and the identifiers of a query, each in order."""

    quoted: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


def find_literals(text: str) -> Literals:
    """Return the literal parts of a query.

    An identifier is a word that mixes letters and digits ("KX-4471"), joins parts by underscores or double colons
    ("parse_header"), or is a number in groups or of six digits. Ordinals, decades, dates and quantities are none.
    """
    quoted = tuple(next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    words = (word.strip(_AROUND) for word in _QUOTED.sub(" ", text).split())
    return Literals(quoted, tuple(word for word in words if _is_identifier(word)))


def _is_identifier(word: str) -> bool:
    if len(word) < 3 or _QUANTITY.fullmatch(word) or _YEARS.fullmatch(word):
        return False
    if not any(character.isalpha() for character in word):
        return (word.isdecimal() and len(word) >= _MIN_DIGITS) or _GROUPS.fullmatch(word) is not None
    if "::" in word or "_" in word.strip("_"):
        return True
    parts = _PARTS.split(word)
    if any(_mixes_letters_and_digits(part) for part in parts):
        return True
    # "KX-4471" and "kx-4471", but neither "4-letter" nor "mid-1970".
    numbered = any(part.isdecimal() for part in parts)
    long = any(part.isdecimal() and len(part) > 2 and not _YEAR.fullmatch(part) for part in parts)
    return (numbered and any(part.isupper() for part in parts)) or long


def _mixes_letters_and_digits(part: str) -> bool:
    """Return whether a part has letters and digits, and is no quantity."""
    has_digit = any(character.isdigit() for character in part)
    return has_digit and any(character.isalpha() for character in part) and not _QUANTITY.fullmatch(part)
