"""Words of a page with their boxes.

Boxes are in the frame of their text: text that runs upwards on the page is turned, so that every line runs to the right.
`on_page` turns a box back.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.documents.parsing.pdf.superscripts import (
    RAISED,
    SMALLER,
    add_superscript,
    is_raised_before,
    is_raised_beside,
    is_script,
    list_powers,
    mark_fractions,
    mark_notes,
    mark_scripts,
    may_have_scripts,
)
from agentic_rag_backend.domain.location import Box

if TYPE_CHECKING:
    from agentic_rag_backend.documents.parsing.pdf.quality.visibility import HiddenWords  # which imports this module

SOFT_HYPHENS = "\ufffe\x02\u00ad"
"""Characters by which PDFium or the file marks a hyphen that only the end of a line causes."""
DIAGONAL = 4
"""Turn of text that runs at another angle than a multiple of 90 degrees, such as a watermark."""
MAX_PAGE_CHARACTERS = 200_000
"""Characters of a page that are read. A page with more is no page that a person reads."""

MAX_MARKED = 200
"""Characters of a word to which superscripts are added. Longer ones would take quadratic time."""

_WORD = re.compile(f"[^\\s{SOFT_HYPHENS}]+[{SOFT_HYPHENS}]?")
_TOLERANCE = 0.2
"""Radians by which the angle of a line may differ from a multiple of 90 degrees."""
_SMALLEST = 0.5
"""Points. Text of smaller size is not meant to be read."""


@dataclass(slots=True)
class PdfWord:
    """Characters without white space. ``size`` is the height of its font in points; ``turn`` counts quarter turns."""

    text: str
    box: Box
    size: float
    turn: int = 0


def words_of(page: pypdfium2.PdfPage, hidden_words: HiddenWords | None = None) -> list[PdfWord]:
    """Return the words of ``page`` in the order of its content, without hidden ones.

    Superscripts and subscripts are marked in the text of the words.
    """
    textpage = page.get_textpage()
    words: list[PdfWord] = []
    last_index, last_size = 0, 0.0
    try:
        for index, word in _read_words(textpage.raw, min(textpage.count_chars(), MAX_PAGE_CHARACTERS)):
            # Most words need no further look.
            if (
                hidden_words is not None
                and (hidden_words.doubtful or not _is_within(word, hidden_words.bounds))
                and hidden_words.is_hidden(textpage, index, on_page(word.box, word.turn))
            ):
                continue
            differs = words and not SMALLER < word.size / last_size < 1 / SMALLER
            if not differs or not _join_scripts(textpage.raw, words[-1], last_index, word, index):
                words.append(word)
                last_index, last_size = index, word.size
    finally:
        textpage.close()
    _mark_notes(words)
    return words


def _is_within(word: PdfWord, bounds: Box) -> bool:
    box = word.box
    return not word.turn and box[0] >= bounds[0] and box[1] >= bounds[1] and box[2] <= bounds[2] and box[3] <= bounds[3]


def _join_scripts(raw: ctypes.c_void_p, before: PdfWord, before_index: int, word: PdfWord, index: int) -> bool:
    """Mark one of two words that is a superscript of the other one. Return whether the second has become part of the first."""
    if before.turn != word.turn or len(before.text) > MAX_MARKED:
        return False
    if is_raised_beside(word.box, before.box) and is_script(word.text):
        text = mark_fractions(before.text + word.text)
        if text == before.text + word.text:
            if not _rises_above(raw, index, before_index, word.turn):
                return False
            text = add_superscript(before.text, word.text)
        before.text = text
        before.box = before.box[0], before.box[1], word.box[2], before.box[3]
        return True
    begins_text = before.text.isdecimal() and word.text[0].isalpha() and len(word.text) > 1
    if begins_text and is_raised_before(before.box, word.box) and _rises_above(raw, before_index, index, word.turn):
        before.text = f"[{before.text}]"
        before.box = before.box[0], word.box[1], before.box[2], word.box[3]
        before.size = word.size
    return False


def _rises_above(raw: ctypes.c_void_p, index: int, base_index: int, turn: int) -> bool:
    """Whether a character is a superscript of another one."""
    (height, baseline), (base_height, base_baseline) = (
        _measure_character(raw, character, turn) for character in (index, base_index)
    )
    return height < SMALLER * base_height and baseline - base_baseline > RAISED * base_height


def _mark_notes(words: Sequence[PdfWord]) -> None:
    """Mark superscripts of numbers as notes, not as powers, if a smaller line further down begins with the same number."""
    powers = [word for word in words if "^" in word.text and any(list_powers(word.text))]
    if not powers:
        return
    sizes: dict[str, float] = {}
    for before, word in pairwise(words):
        if word.box[3] < before.box[1] or word.box[0] < before.box[0]:
            number = word.text.strip("[]().")
            if number.isdecimal():
                sizes[number] = word.size
    for word in powers:
        notes = frozenset(number for number in list_powers(word.text) if sizes.get(number, word.size) < 0.9 * word.size)
        word.text = mark_notes(word.text, notes) if notes else word.text


def _read_words(raw: ctypes.c_void_p, count: int) -> Iterator[tuple[int, PdfWord]]:
    """Yield words with the index of their first character."""
    text, has_pairs = _read_characters(raw, count)
    rectangle = pdfium.FS_RECTF()
    reference = ctypes.byref(rectangle)

    def read_box(index: int) -> Box:
        if not pdfium.FPDFText_GetLooseCharBox(raw, index, reference):
            return 0.0, 0.0, 0.0, 0.0
        return rectangle.left, rectangle.bottom, rectangle.right, rectangle.top

    for match in _WORD.finditer(text):
        first_index, last_index = match.start(), match.end() - 1
        turn = _turn_of(pdfium.FPDFText_GetCharAngle(raw, first_index))
        begin, end = turn_box(read_box(first_index), turn), turn_box(read_box(last_index), turn)
        if last_index > first_index and text[last_index] in SOFT_HYPHENS and end[2] - end[0] <= 0:
            end = turn_box(read_box(last_index - 1), turn)
        size = begin[3] - begin[1]
        if size < _SMALLEST or not all(map(math.isfinite, (*begin, *end))):
            continue
        letters = match[0]
        if _flows_on(begin, end):
            box = _enclose_boxes(begin, end)
            uniform = begin[1] == end[1] and begin[3] == end[3] and letters.isalpha()
            if last_index > first_index and not uniform and may_have_scripts(letters, begin, end):
                measures = [_measure_character(raw, index, turn) for index in range(first_index, last_index + 1)]
                letters = mark_scripts(letters, [height for height, _ in measures], [baseline for _, baseline in measures])
                if letters != match[0]:
                    tallest_index = max(range(len(measures)), key=lambda index: measures[index][0])
                    tallest = turn_box(read_box(first_index + tallest_index), turn)
                    box, size = (box[0], tallest[1], box[2], tallest[3]), tallest[3] - tallest[1]
            yield first_index, PdfWord(_join_pairs(letters) if has_pairs else letters, box, size, turn)
            continue
        # Characters of one word that are not side by side are words of their own, unless they follow each other.
        for word in _split_word(letters, [turn_box(read_box(index), turn) for index in range(first_index, last_index + 1)], turn):
            word.text = _join_pairs(word.text) if has_pairs else word.text
            yield first_index, word


def _measure_character(raw: ctypes.c_void_p, index: int, turn: int) -> tuple[float, float]:
    """Return the font size of a character and the height of its base line, in the frame of its text.

    The heights of boxes would not do: fonts of one size have boxes of several heights.
    """
    x, y, matrix = ctypes.c_double(), ctypes.c_double(), pdfium.FS_MATRIX()
    pdfium.FPDFText_GetCharOrigin(raw, index, x, y)
    pdfium.FPDFText_GetMatrix(raw, index, matrix)
    size = pdfium.FPDFText_GetFontSize(raw, index) * math.hypot(matrix.c, matrix.d)
    return size, turn_box((x.value, y.value, x.value, y.value), turn)[1]


def _read_characters(raw: ctypes.c_void_p, count: int) -> tuple[str, bool]:
    """Return the characters of a page, one for each index that PDFium uses, and whether two of them may be one character.

    PDFium counts UTF-16, in which a character above U+FFFF has two units. A character that the font does not name is U+FFFD.
    """
    buffer = (ctypes.c_ushort * (count + 1))()
    count_written = pdfium.FPDFText_GetText(raw, 0, count, buffer)
    text = bytes(buffer)[: 2 * count].decode("utf-16-le", "replace")
    if count_written == count + 1 and len(text) == count and "\0" not in text and "\ufffd" not in text:
        if "\ufffe" in text:  # a hyphen at the end of a line, or a character without a name
            text = re.sub(
                "\ufffe", lambda match: "\ufffe" if pdfium.FPDFText_IsHyphen(raw, match.start()) == 1 else "\ufffd", text
            )
        return text, False
    codes = [pdfium.FPDFText_GetUnicode(raw, index) for index in range(count)]
    return "".join(chr(code) if 0 < code < 0x110000 else "\ufffd" for code in codes), any(
        0xD800 <= code < 0xE000 for code in codes
    )


def _join_pairs(text: str) -> str:
    """Return a text with each pair of UTF-16 surrogates as one character, and U+FFFD for half of a pair."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _turn_of(angle: float) -> int:
    quarters = -angle / (math.pi / 2)  # PDFium counts clockwise
    whole_quarters = round(quarters)
    return whole_quarters % 4 if abs(quarters - whole_quarters) * (math.pi / 2) <= _TOLERANCE else DIAGONAL


def turn_box(box: Box, turn: int) -> Box:
    """Return a box of the page in the frame of text that is turned by ``turn`` quarters counterclockwise."""
    x_min, bottom, right, top = box
    if turn == 1:
        return bottom, -right, top, -x_min
    if turn == 2:
        return -right, -top, -x_min, -bottom
    if turn == 3:
        return -top, x_min, -bottom, right
    return box


def on_page(box: Box, turn: int) -> Box:
    """Return a box of the text's frame on the page: the inverse of `turn_box`."""
    back = turn_box(box, (4 - turn) % 4 if turn != DIAGONAL else 0)
    return round(back[0], 2), round(back[1], 2), round(back[2], 2), round(back[3], 2)


def _flows_on(begin: Box, end: Box) -> bool:
    """Whether two characters of a word are on one line."""
    return min(begin[3], end[3]) - max(begin[1], end[1]) > 0.3 * (begin[3] - begin[1]) or begin == end


def _enclose_boxes(box: Box, other_box: Box) -> Box:
    return min(box[0], other_box[0]), min(box[1], other_box[1]), max(box[2], other_box[2]), max(box[3], other_box[3])


def _split_word(text: str, boxes: list[Box], turn: int) -> Iterator[PdfWord]:
    start = 0
    for index in range(1, len(boxes) + 1):
        if index < len(boxes) and _flows_on(boxes[index - 1], boxes[index]):
            continue
        box = boxes[start]
        for next_box in boxes[start + 1 : index]:
            box = _enclose_boxes(box, next_box)
        if box[3] - box[1] >= _SMALLEST:
            yield PdfWord(text[start:index], box, boxes[start][3] - boxes[start][1], turn)
        start = index
