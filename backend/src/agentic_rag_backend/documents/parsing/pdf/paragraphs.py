"""From lines to paragraphs: where one ends, and what joins its lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from agentic_rag_backend.documents.parsing.pdf.east_asian_text import choose_space
from agentic_rag_backend.documents.parsing.pdf.page_layout import Column
from agentic_rag_backend.documents.parsing.pdf.tables.ruled_tables import Table
from agentic_rag_backend.documents.parsing.pdf.text_lines import TextLine

WRAPPED, BROKEN, HYPHENATED = " ", "\n", ""
"""What joins two lines: the end of a line in a sentence, one that the author meant, and one inside a word."""
_PITCH = 1.3
"""A distance of lines above the usual one by this factor separates paragraphs."""
_WIDEST_PITCH = 2.0
"""Font sizes between lines of a paragraph, whatever is usual."""
_SIZE_CHANGE = 0.08
"""Share by which font sizes of a paragraph differ."""
_LARGE_CHANGE = 0.2
"""The same for lines at the usual distance: one may be in another font."""
_REGULAR = 1.05
_INDENT = 0.8
_WIDE = 0.6
_SPACE = 0.25
"""Width of a space in font sizes."""
_ITEM = re.compile(r"(?:[•‣◦▪■●○–—*·-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)])\s")
_ALIGNED = 3.0
"""Points by which the edges of the cells of a column differ."""
_MOST_CELLS = 50
_OF_CONTENTS = re.compile(r" \.\.\. ?\S{1,8}$")
"""The end of a line of a table of contents: leaders and a page."""
_ENDS_SENTENCE = re.compile(r"[.!?:;…。！？][\"'”’)\]]*$")


@dataclass(slots=True)
class Paragraph:
    """Lines of one or more columns. ``joins[i]`` stands between the lines ``i`` and ``i + 1``.

    ``open_end`` says whether its last line is full, so that the next column may continue it.
    """

    lines: list[TextLine]
    joins: list[str] = field(default_factory=list)
    open_end: bool = False

    @property
    def size(self) -> float:
        """Font size of most of its text."""
        return max(self.lines, key=lambda line: len(line.text)).size


def paragraphs_of(columns: Iterable[Column]) -> list[Paragraph | Table]:
    """Return the paragraphs and tables of columns in reading order.

    A paragraph may continue in the next column or on the next page.
    """
    paragraphs: list[Paragraph | Table] = []
    for column in columns:
        if isinstance(column, Table):
            table = paragraphs[-1] if paragraphs else None
            if isinstance(table, Table) and table.continues_with(column):
                table.add_rows(column)
            else:
                paragraphs.append(column)
            continue
        wide = _measure_width(column)
        for number, paragraph in enumerate(p for block in _split_blocks(column) for p in _split_paragraphs(block, wide)):
            before = paragraphs[-1] if paragraphs else None
            if number == 0 and isinstance(before, Paragraph) and _goes_on(before, paragraph):
                before.joins += [HYPHENATED if before.lines[-1].hyphen else WRAPPED, *paragraph.joins]
                before.lines += paragraph.lines
                before.open_end = paragraph.open_end
            else:
                paragraphs.append(paragraph)
    return paragraphs


def _goes_on(before: Paragraph, after: Paragraph) -> bool:
    last_line, next_line = before.lines[-1], after.lines[0]
    if (
        abs(before.size - after.size) > _SIZE_CHANGE * before.size
        or last_line.turn != next_line.turn
        or not next_line.text[0].islower()
    ):
        return False
    return last_line.hyphen or (before.open_end and _ENDS_SENTENCE.search(last_line.text) is None)


def _split_blocks(column: Sequence[TextLine]) -> list[list[TextLine]]:
    """Return the lines of a column in blocks, which a wider distance or another font size separates."""
    pitches = [_middle_of(line) - _middle_of(next_line) for line, next_line in pairwise(column)]
    close = [pitch for line, pitch in zip(column, pitches, strict=False) if 0 < pitch < _WIDEST_PITCH * line.size]
    usual_pitch = median(close) if close else 0.0
    blocks: list[list[TextLine]] = []
    for index, line in enumerate(column):
        before = column[index - 1]
        if index and not _are_apart(before, line, pitches[index - 1], usual_pitch):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _are_apart(before: TextLine, line: TextLine, pitch: float, usual_pitch: float) -> bool:
    change = abs(before.size - line.size) / max(before.size, line.size)
    if change > _LARGE_CHANGE or (change > _SIZE_CHANGE and pitch > _REGULAR * usual_pitch):
        return True
    return not -before.size < pitch <= min(max(_PITCH * usual_pitch, 1.05 * line.size), _WIDEST_PITCH * line.size)


def _middle_of(line: TextLine) -> float:
    return (line.box[1] + line.box[3]) / 2


def _measure_width(column: Sequence[TextLine]) -> float:
    """Return how far to the right a block of the column must reach for its lines to be full. Code and addresses do not."""
    left_edge, right = min(line.box[0] for line in column), max(line.box[2] for line in column)
    return left_edge + _WIDE * (right - left_edge)


def _split_paragraphs(block: Sequence[TextLine], wide: float) -> list[Paragraph]:
    left_edge, right = min(line.box[0] for line in block), max(line.box[2] for line in block)
    paragraphs = [Paragraph([block[0]])]
    for before, line in pairwise(block):
        full = right >= wide and _is_full(before, right, line.first_width)
        if _begins_by_indenting(before, line, left_edge) and (not full or _ENDS_SENTENCE.search(before.text)):
            paragraphs.append(Paragraph([line]))
            continue
        paragraphs[-1].joins.append(_choose_join(before, line, full=full))
        paragraphs[-1].lines.append(line)
    last_line = paragraphs[-1].lines[-1]
    paragraphs[-1].open_end = last_line.box[2] >= left_edge + 0.85 * (right - left_edge)
    return paragraphs


def _is_full(line: TextLine, right: float, next_width: float) -> bool:
    """Whether the next word has no room in ``line``."""
    return line.box[2] + _SPACE * line.size + next_width > right


def _begins_by_indenting(before: TextLine, line: TextLine, left_edge: float) -> bool:
    """Whether ``line`` begins a paragraph by its indent."""
    return line.box[0] >= left_edge + _INDENT * line.size and before.box[0] < line.box[0] - _INDENT * line.size


def _choose_join(before: TextLine, line: TextLine, *, full: bool) -> str:
    if (_ITEM.match(line.text) and not before.hyphen) or _OF_CONTENTS.search(before.text) or _are_rows(before, line):
        return BROKEN
    if before.hyphen and line.text[0].isalnum():
        return HYPHENATED
    return choose_space(before.text, line.text) if full else BROKEN


def _are_rows(before: TextLine, line: TextLine) -> bool:
    """Whether two lines are rows of a table without lines: at least two of their parts stand below each other."""
    if not before.cells or not line.cells:
        return False
    above = before.cells[:_MOST_CELLS]
    aligned = sum(
        any(abs(left_edge - x_min) <= _ALIGNED or abs(right_edge - x_max) <= _ALIGNED for x_min, x_max, _ in above)
        for left_edge, right_edge, _ in line.cells[:_MOST_CELLS]
    )
    return aligned > 1
