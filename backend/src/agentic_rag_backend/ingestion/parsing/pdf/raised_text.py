"""Superscripts and subscripts on one line: powers such as ``10^6``, formulas such as ``CO2``, and marks of notes ``[12]``.

Without a mark, "10" with an exponent 6 would become 106, and "3" with note 12 would become 312.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from agentic_rag_backend.domain.location import Box

SMALLER = 0.85
"""Superscripts and subscripts have at most this share of the font size of their line."""
RAISED, _LOWERED = 0.15, -0.06
"""Distance of the base line of a superscript or subscript from that of its line, in font sizes."""
_LONGEST = 4
_FAR = 0.5
"""Gap between a word and a superscript that belongs to it, in font sizes."""

_NUMBERS = re.compile(r"[1-9]\d{0,2}(?:[,–-][1-9]\d{0,2})*,?$")
_SIGNED = re.compile(r"[+\u2212–-]?\d*(?:[.,/]\d+)?[+\u2212–-]?$")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_ELEMENT = re.compile(r"[A-Z][a-z]?$")
_ATOM = re.compile(r"[A-Z][a-z]?(?![a-z])")
_POWER = re.compile(r"(?<=[\d)\]])\^(\d{1,3})(?!\d)")
_FRACTION = re.compile(r"(\d*)\^(\d{1,3})[/\u2044\u2215]_?(\d{1,3})(?!\d)")
_DASHES = str.maketrans({"\u2212": "-", "–": "-"})


def may_have_scripts(text: str, begin: Box, end: Box) -> bool:
    """Return whether a word with these first and last characters may have raised or lowered ones. Most words have none."""
    tolerance = 0.06 * (begin[3] - begin[1])
    return abs(begin[1] - end[1]) > tolerance or abs(begin[3] - end[3]) > tolerance or _ENCLOSED_DIGIT.search(text) is not None


_ENCLOSED_DIGIT = re.compile(r"[A-Za-z)]\d{1,2}[A-Z(]")


def mark_scripts(text: str, heights: Sequence[float], baselines: Sequence[float]) -> str:
    """Return a word with its superscripts and subscripts marked. The sequences have a value for each character, in points."""
    size = max(heights)
    if size <= 0:
        return text
    baseline = next(line for line, height in zip(baselines, heights, strict=True) if height >= SMALLER * size)

    def classify(index: int) -> int:
        shift = (baselines[index] - baseline) / size
        if heights[index] > SMALLER * size or _LOWERED < shift < RAISED:
            return 0
        return 1 if shift > 0 else -1

    runs = [(script, "".join(text[index] for index in indexes)) for script, indexes in groupby(range(len(text)), classify)]
    if len(runs) < 2:
        return text
    written = ""
    for number, (script, run) in enumerate(runs):
        if script == 1:
            written = add_raised(written, run) if written else _begin_raised(run, runs[number + 1][1])
        elif script == -1:
            written += run if _is_formula(written, run) else f"_{run}"
        else:
            written += f" {run}" if written.endswith("]") and runs[number - 1][0] == 1 and run[0].isalnum() else run
    return mark_fractions(written)


def mark_fractions(text: str) -> str:
    """Return a marked text with fractions on one line: "1 3/4"."""
    return _FRACTION.sub(lambda match: f"{match[1]} {match[2]}/{match[3]}".strip(), text) if "^" in text else text


def add_raised(text: str, raised: str) -> str:
    """Return a text and its superscript: a power, a mark of a note, or letters such as those of "4th"."""
    if raised.isalpha():
        word = _LAST_WORD.search(text)
        power = len(raised) == 1 and raised.isascii() and (text[-1].isdigit() or (word is not None and len(word[0]) == 1))
        return f"{text}^{raised}" if power else text + raised
    if not any(character.isalnum() for character in raised):
        return f"{text}^{raised.translate(_DASHES)}" if raised in "+-\u2212" else text + raised
    if _NUMBERS.fullmatch(raised) and not _is_power(text, raised):
        return f"{text} [{raised.rstrip(',')}]"
    plain = raised.translate(_DASHES)
    return f"{text}^{plain}" if _SIGNED.fullmatch(raised) else f"{text}^({plain})"


def _is_power(text: str, number: str) -> bool:
    """Whether a raised number after ``text`` is a power: of a number, a variable or a unit."""
    if text[-1].isdigit():
        return number.isdigit()
    word = _LAST_WORD.search(text)
    if word is not None:
        return number.isdigit() and (len(word[0]) == 1 or (len(word[0]) == 2 and number in "23"))
    return text[-1] in ")]" and number in "23"


def _is_formula(text: str, lowered: str) -> bool:
    """Whether a subscript reads as well without a mark, as in CO2. Digits below letters do, but not below digits."""
    last_word = _LAST_WORD.search(text)
    return lowered.isdigit() and ((last_word is not None and last_word[0].isupper()) or _ends_element(text) or text.endswith(")"))


def _ends_element(text: str) -> bool:
    return _ELEMENT.search(text) is not None


def _begin_raised(raised: str, following: str) -> str:
    """Return a superscript with which a word begins: the number of a note, or of an isotope."""
    if not _NUMBERS.fullmatch(raised):
        return raised
    return f"^{raised}" if _ATOM.fullmatch(following) else f"[{raised.rstrip(',')}]"


def is_script(text: str) -> bool:
    """Return whether a word of its own may be a superscript: it is short or has numbers only."""
    return len(text) <= _LONGEST or _NUMBERS.fullmatch(text) is not None or _SIGNED.fullmatch(text) is not None


def is_raised_beside(box: Box, base_box: Box) -> bool:
    """Return whether a word may be a superscript of the one before it, from which a small gap separates it."""
    size = base_box[3] - base_box[1]
    return box[1] < base_box[3] and box[3] > base_box[1] and -0.3 * size < box[0] - base_box[2] < _FAR * size


def is_raised_before(box: Box, base_box: Box) -> bool:
    """Return whether a word may be a superscript before another word, such as the number of a note."""
    size = base_box[3] - base_box[1]
    return is_raised_beside((base_box[2], box[1], base_box[2], box[3]), base_box) and -0.3 * size < base_box[0] - box[2] < size


def list_powers(text: str) -> Iterator[str]:
    """Yield the powers of numbers in a marked text, which may be notes."""
    yield from (match[1] for match in _POWER.finditer(text))


def mark_notes(text: str, notes: frozenset[str]) -> str:
    """Return a marked text in which powers of numbers are marks of notes, if they have one of the numbers of ``notes``."""
    return _POWER.sub(lambda match: f" [{match[1]}]" if match[1] in notes else match[0], text)
