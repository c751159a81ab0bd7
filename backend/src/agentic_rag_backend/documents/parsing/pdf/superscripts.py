"""Superscripts and subscripts of a page, by the sizes and base lines of characters. `parsing.inline_scripts` writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from agentic_rag_backend.documents.parsing.inline_scripts import write_subscript, write_superscript
from agentic_rag_backend.domain.location import Box

SMALLER = 0.85
"""Superscripts and subscripts have at most this share of the font size of their line."""
RAISED, _LOWERED = 0.15, -0.06
"""Distance of the base line of a superscript or subscript from that of its line, in font sizes."""
_LONGEST = 4
_FAR = 0.5
"""Gap between a word and a superscript that belongs to it, in font sizes."""

_NUMBERS = re.compile(r"[1-9]\d{0,2}(?:[,–-][1-9]\d{0,2})*,?$")
_ATOM = re.compile(r"[A-Z][a-z]?(?![a-z])")
_POWER = re.compile(r"(?<=[\d)\]])\^(\d{1,3})(?!\d)")
_FRACTION = re.compile(r"(?<!\d)(\d*)\^(\d{1,3})[/\u2044\u2215]_?(\d{1,3})(?!\d)")


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
    marked = ""
    for number, (script, run) in enumerate(runs):
        if script == 1 and not marked:
            marked = (
                f"^{run}" if _ATOM.fullmatch(runs[1][1]) else write_superscript("", run)
            )  # an isotope, or the number of a note
        elif script == 1:
            marked = add_superscript(marked, run)
        elif script == -1:
            marked += write_subscript(marked, run)
        else:
            after_note = marked.endswith("]") and runs[number - 1][0] == 1 and run[0].isalnum()
            marked += f" {run}" if after_note else run
    return mark_fractions(marked)


def mark_fractions(text: str) -> str:
    """Return a marked text with fractions on one line: "1 3/4"."""
    return _FRACTION.sub(lambda match: f"{match[1]} {match[2]}/{match[3]}".strip(), text) if "^" in text else text


def add_superscript(text: str, raised: str) -> str:
    """Return a text and its superscript: a power, a mark of a note, or letters such as those of "4th"."""
    return text + write_superscript(text, raised.rstrip(",") or raised)


def is_script(text: str) -> bool:
    """Return whether a word of its own may be a superscript: it is short or has numbers only."""
    return len(text) <= _LONGEST or _NUMBERS.fullmatch(text) is not None


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
    return _POWER.sub(lambda match: f"[{match[1]}]" if match[1] in notes else match[0], text)
