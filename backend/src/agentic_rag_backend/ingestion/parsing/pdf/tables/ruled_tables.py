"""Tables between ruled lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import pypdfium2

from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.ingestion.parsing.pdf.tables.rulings import Grid, grids_of
from agentic_rag_backend.ingestion.parsing.pdf.text_lines import line_of, rows_of, segments_of
from agentic_rag_backend.ingestion.parsing.pdf.text_words import PdfWord

MAX_CELLS = 20_000
_LEAST_FILLED = 0.4
"""Share of cells with text. Graph paper, charts and forms have fewer."""
_MOST_CROSSED = 0.1
"""Share of words through which a line runs. It does so in drawings."""


@dataclass(slots=True)
class Table:
    """A table on a page. Each row has a box."""

    rows: list[list[str]]
    boxes: list[Box]
    box: Box
    size: float
    page: int


def tables_of(page: pypdfium2.PdfPage, words: Sequence[PdfWord], number: int) -> tuple[list[Table], list[PdfWord]]:
    """Return the ruled tables of upright ``words``, and the words outside of them."""
    tables: list[Table] = []
    outside = list(words)
    for grid in grids_of(page):
        if (len(grid.xs) - 1) * (len(grid.ys) - 1) > MAX_CELLS:
            continue
        inside = [word for word in outside if _find_cell(grid, word) is not None]
        table = _make_table(grid, inside, number) if inside else None
        if table is not None:
            tables.append(table)
            word_ids = set(map(id, inside))
            outside = [word for word in outside if id(word) not in word_ids]
    return tables, outside


def _find_cell(grid: Grid, word: PdfWord) -> tuple[int, int] | None:
    """Return the row and the column in which the middle of ``word`` is; None if it is outside of the grid."""
    x, y = (word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2
    if not (grid.xs[0] <= x < grid.xs[-1] and grid.ys[-1] < y <= grid.ys[0]):
        return None
    row = bisect_right(grid.ys, -y, key=lambda height_above: -height_above) - 1
    return max(row, 0), bisect_right(grid.xs, x) - 1


def _make_table(grid: Grid, words: Sequence[PdfWord], number: int) -> Table | None:
    cells: dict[tuple[int, int], list[PdfWord]] = {}
    for word in words:
        position = _find_cell(grid, word)
        if position is not None:
            row, column = position
            middle = (grid.ys[row] + grid.ys[row + 1]) / 2
            while column > 0 and not grid.has_line_at(grid.xs[column], middle):
                column -= 1  # the cell spans several columns
            cells.setdefault((row, column), []).append(word)
    used = sorted({row for row, _ in cells})
    columns = sorted({column for _, column in cells})
    if sum(_is_crossed_out(grid, word) for word in words) > _MOST_CROSSED * len(words):
        return None
    if len(used) < 2 or len(columns) < 2 or len(cells) < _LEAST_FILLED * len(used) * len(columns):
        return None
    edges = grid.xs[0], grid.xs[-1]
    return Table(
        rows=[[_cell_text(cells.get((row, column), ()), number) for column in columns] for row in used],
        boxes=[(edges[0], grid.ys[row + 1], edges[1], grid.ys[row]) for row in used],
        box=(edges[0], grid.ys[-1], edges[1], grid.ys[0]),
        size=median(word.size for word in words),
        page=number,
    )


def _is_crossed_out(grid: Grid, word: PdfWord) -> bool:
    """Whether a vertical line runs through ``word``."""
    margin = 0.2 * word.size
    middle = (word.box[1] + word.box[3]) / 2
    first_line = bisect_right(grid.xs, word.box[0] + margin)
    return (
        first_line < len(grid.xs) and grid.xs[first_line] < word.box[2] - margin and grid.has_line_at(grid.xs[first_line], middle)
    )


def _cell_text(words: Sequence[PdfWord], number: int) -> str:
    """Return the text of a cell on one line."""
    text = ""
    for row in rows_of(segments_of(words)):
        line = line_of(row, 0, number)
        if line is not None:
            text += line.text if line.hyphen else line.text + " "
    return text.strip()
