"""Chinese and Japanese text, which has no spaces between words, and may run from the top to the bottom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from agentic_rag_backend.documents.parsing.pdf.text_words import PdfWord, turn_box

LEAST_CHARACTERS = 3
"""Characters below each other that are a vertical line."""
_DOWN = 3
"""Turn in whose frame vertical lines run to the right, and follow each other from the right of the page to its left."""
_SIDEWAYS, _FAR = 0.4, 0.6
"""How far the next character of a vertical line may be beside the one above it, and below it, in font sizes."""
_LETTER = re.compile(
    "[\u3001-\u3007\u300a-\u3011\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)


def choose_space(before: str, after: str) -> str:
    """Return what stands between two words or lines that follow each other: nothing between Chinese and Japanese letters."""
    return "" if _LETTER.match(before[-1:]) and _LETTER.match(after[:1]) else " "


def is_single_letter(text: str) -> bool:
    """Return whether a text is one Chinese or Japanese letter."""
    return len(text) == 1 and _LETTER.match(text) is not None


def turn_vertical_lines(words: Sequence[PdfWord]) -> None:
    """Turn the words of vertical lines, which are in the order of the page's content."""
    line = list(words[:1])
    for before, word in pairwise(words):
        if not _is_below(before, word):
            _turn_line(line)
            line = []
        line.append(word)
    _turn_line(line)


def _turn_line(line: Sequence[PdfWord]) -> None:
    if len(line) >= LEAST_CHARACTERS:
        for letter in line:
            letter.box, letter.turn = turn_box(letter.box, _DOWN), _DOWN


def _is_below(before: PdfWord, word: PdfWord) -> bool:
    if before.turn or word.turn or not (is_single_letter(before.text) and is_single_letter(word.text)):
        return False
    size = max(before.size, word.size)
    sideways = abs(before.box[0] + before.box[2] - word.box[0] - word.box[2]) / 2
    return sideways < _SIDEWAYS * size and -_SIDEWAYS * size < before.box[1] - word.box[3] < _FAR * size
