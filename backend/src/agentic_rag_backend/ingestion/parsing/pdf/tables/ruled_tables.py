"""Tables between ruled lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, product
from statistics import median

import pypdfium2

from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.ingestion.parsing.grid import TableGrid
from agentic_rag_backend.ingestion.parsing.header_rows import CellSpan
from agentic_rag_backend.ingestion.parsing.pdf.tables.rulings import Grid, grids_of
from agentic_rag_backend.ingestion.parsing.pdf.text_lines import line_of, rows_of, segments_of
from agentic_rag_backend.ingestion.parsing.pdf.text_words import PdfWord

MAX_CELLS = 20_000
_LEAST_FILLED = 0.4
"""Share of cells with text. Graph paper and charts have fewer."""
_LEAST_VALUES = 0.5
"""Number of texts ÷ rows × columns with text. A form of frames has fewer: its cells span a few ruled rows and have many lines."""
_MOST_CROSSED = 0.1
"""Share of words through which a line runs. It does so in drawings."""
_MOVES = 3.0
"""Points by which the columns of a table may move between pages."""
_SAMPLED_ROWS = 50
_DIGIT = re.compile(r"\d")


@dataclass(slots=True)
class Table:
    """A table on a page. Each row has a box, and the number of its page. ``xs`` are the edges of the columns.

    ``header_rows`` is the number of rows that name the columns, or None if it is not known.
    """

    rows: list[list[str]]
    spans: list[CellSpan]
    boxes: list[Box]
    pages: list[int]
    xs: list[float]
    box: Box
    size: float
    header_rows: int | None = None

    def continues_with(self, table: Table) -> bool:
        """Return whether a table at the top of the next page continues this one: it has the same columns and no other header."""
        same_columns = len(table.xs) == len(self.xs) and all(
            abs(x - next_x) <= _MOVES for x, next_x in zip(self.xs, table.xs, strict=True)
        )
        return same_columns and table.pages[0] == self.pages[-1] + 1 and not self._has_other_header(table.rows[0])

    def add_rows(self, table: Table) -> None:
        """Add the rows of a table that continues this one, without a header that is repeated."""
        names_groups = any(span.row == 0 and span.column_span > 1 for span in self.spans)
        repeated = 0
        while repeated < 1 + names_groups and table.rows[repeated] == self.rows[repeated]:
            repeated += 1
        offset = len(self.rows) - repeated
        self.spans += [replace(span, row=span.row + offset) for span in table.spans if span.row >= repeated]
        self.rows += table.rows[repeated:]
        self.boxes += table.boxes[repeated:]
        self.pages += table.pages[repeated:]

    def lay_out(self) -> TableGrid:
        """Return the cells, with values that stand in every row and column of their cells."""
        grid = TableGrid([list(row) for row in self.rows])
        for span in self.spans:
            grid.add_span(span.row, span.column, row_span=span.row_span, column_span=span.column_span)
        return grid

    def _has_other_header(self, row: Sequence[str]) -> bool:
        """Whether a row names columns whose values are numbers."""
        if row == self.rows[0]:
            return False
        bodies = [
            [cells[column] for cells in self.rows[1:_SAMPLED_ROWS] if cells[column]]
            for column, name in enumerate(self.rows[0])
            if not _DIGIT.search(name) and row[column] and not _DIGIT.search(row[column])
        ]
        return any(len(body) > 1 and all(map(_DIGIT.search, body)) for body in bodies)


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
    words_by_cell: dict[tuple[int, int], list[PdfWord]] = {}
    for word in words:
        position = _find_cell(grid, word)
        if position is not None:
            words_by_cell.setdefault(position, []).append(word)
    if sum(_is_crossed_out(grid, word) for word in words) > _MOST_CROSSED * len(words):
        return None
    rows, spans, filled = _fill_cells(grid, words_by_cell, number)
    used_rows, used_columns = len({row for row, _ in filled}), len({column for _, column in filled})
    places, values = used_rows * used_columns, sum(map(bool, chain.from_iterable(rows)))
    if min(used_rows, used_columns) < 2 or len(filled) < _LEAST_FILLED * places or (spans and values < _LEAST_VALUES * places):
        return None
    left_edge, right_edge = grid.xs[0], grid.xs[-1]
    return Table(
        rows=rows,
        spans=spans,
        boxes=[(left_edge, bottom, right_edge, top) for top, bottom in pairwise(grid.ys)],
        pages=[number] * len(rows),
        xs=grid.xs,
        box=(left_edge, grid.ys[-1], right_edge, grid.ys[0]),
        size=median(word.size for word in words),
    )


def _fill_cells(
    grid: Grid, words_by_cell: Mapping[tuple[int, int], Sequence[PdfWord]], number: int
) -> tuple[list[list[str]], list[CellSpan], set[tuple[int, int]]]:
    """Return the values of a table, the cells that span several rows or columns, and the places that values cover."""
    row_count, column_count = len(grid.ys) - 1, len(grid.xs) - 1
    rows = [[""] * column_count for _ in range(row_count)]
    covered: set[tuple[int, int]] = set()
    filled: set[tuple[int, int]] = set()
    spans: list[CellSpan] = []
    for row, column in product(range(row_count), range(column_count)):
        if (row, column) in covered:
            continue
        height, width = grid.measure_span(row, column)
        cells = set(product(range(row, row + height), range(column, column + width))) - covered
        cell_words = [word for cell in sorted(cells) for word in words_by_cell.get(cell, ())]
        if width > 1 and not grid.divides_columns(column + 1, column + width):
            # Text that crosses no edge of these columns is in several cells, without lines between them.
            edges, width = grid.xs[column + 1 : column + width], 1
            if not _crosses_edge(cell_words, edges):
                cells = {cell for cell in cells if cell[1] == column}
                cell_words = [word for cell in sorted(cells) for word in words_by_cell.get(cell, ())]
        covered |= cells
        rows[row][column] = _cell_text(cell_words, number)
        if rows[row][column]:
            filled |= cells
            if height > 1 or width > 1:
                spans.append(CellSpan(row, column, height, width))
    return rows, spans, filled


def _crosses_edge(words: Sequence[PdfWord], edges: Sequence[float]) -> bool:
    """Whether words that follow each other run over the edge of a column."""
    return any(segment.box[0] < edge < segment.box[2] for segment in segments_of(words) for edge in edges)


def _is_crossed_out(grid: Grid, word: PdfWord) -> bool:
    """Whether a vertical line runs through ``word``."""
    margin = 0.2 * word.size
    middle = (word.box[1] + word.box[3]) / 2
    first_line = bisect_right(grid.xs, word.box[0] + margin)
    return first_line < len(grid.xs) and grid.xs[first_line] < word.box[2] - margin and grid.has_column_line(first_line, middle)


def _cell_text(words: Sequence[PdfWord], number: int) -> str:
    """Return the text of a cell on one line."""
    text = ""
    for row in rows_of(segments_of(words)):
        line = line_of(row, 0, number)
        if line is not None:
            text += line.text if line.hyphen else line.text + " "
    return text.strip()
