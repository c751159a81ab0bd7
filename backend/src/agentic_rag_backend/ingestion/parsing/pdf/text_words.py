"""Words of a page with their boxes.

Boxes are in the frame of their text: text that runs upwards on the page is turned, so that every line runs to the right.
`on_page` turns a box back.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.domain.location import Box

SOFT_HYPHENS = "\ufffe\x02\u00ad"
"""Characters by which PDFium or the file marks a hyphen that only the end of a line causes."""
DIAGONAL = 4
"""Turn of text that runs at another angle than a multiple of 90 degrees, such as a watermark."""
MAX_PAGE_CHARACTERS = 200_000
"""Characters of a page that are read. A page with more is no page that a person reads."""

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


def words_of(page: pypdfium2.PdfPage) -> list[PdfWord]:
    """Return the words of ``page`` in the order of its content."""
    textpage = page.get_textpage()
    try:
        return list(_read_words(textpage.raw, min(textpage.count_chars(), MAX_PAGE_CHARACTERS)))
    finally:
        textpage.close()


def _read_words(raw: ctypes.c_void_p, count: int) -> Iterator[PdfWord]:
    text = _read_characters(raw, count)
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
        if _flows_on(begin, end):
            yield PdfWord(match[0], _enclose_boxes(begin, end), size, turn)
            continue
        # Characters of one word that are not side by side are words of their own, unless they follow each other.
        yield from _split_word(match[0], [turn_box(read_box(index), turn) for index in range(first_index, last_index + 1)], turn)


def _read_characters(raw: ctypes.c_void_p, count: int) -> str:
    """Return the characters of a page, one for each index that PDFium uses."""
    buffer = (ctypes.c_ushort * (count + 1))()
    count_written = pdfium.FPDFText_GetText(raw, 0, count, buffer)
    text = bytes(buffer)[: 2 * count].decode("utf-16-le", "replace")
    if count_written == count + 1 and len(text) == count and "\0" not in text and "\ufffd" not in text:
        return text
    codes = (pdfium.FPDFText_GetUnicode(raw, index) for index in range(count))
    return "".join(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd" for code in codes)


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
