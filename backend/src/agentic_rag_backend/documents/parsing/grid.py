"""Tables as grids: cells with spans are laid out first and written to the text afterwards.

Example::

    grid = TableGrid()
    grid.add_cell(0, 0, "Port", row_span=2)
    grid.add_cell(0, 1, "Depth", column_span=2)
    grid.add_cell(1, 1, "summer")
    grid.add_cell(1, 2, "winter")
    ...
    grid.write_table(builder, places)

writes the header ``| Port | Depth – summer | Depth – winter |``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.documents.parsing.base import MAX_COLUMNS
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.header_rows import CellSpan, count_header_rows, join_header, join_places
from agentic_rag_backend.errors import ResourceLimit

MAX_COVERED_CELLS = 4_000_000
"""Cells of one table that its spans cover. A few bytes can ask for a billion of them."""


class TableGrid:
    """The cells of one table, by row and column from 0, with their spans.

    A value stands in every row and column that its cell covers. Rows and columns without a value of their own are left out, so
    that a span never makes a table larger than its values do.
    """

    def __init__(self, rows: list[list[str]] | None = None) -> None:
        """Create a grid. ``rows`` are cells without spans. The grid keeps them and may change them."""
        self._rows = rows if rows is not None else []
        self._spans: list[CellSpan] = []
        self._covered_until: dict[int, int] = {}
        self._covered = 0

    @property
    def row_count(self) -> int:
        """The number of rows, empty ones included."""
        return len(self._rows)

    def find_free_column(self, row: int, column: int = 0) -> int:
        """Return the first column of ``row``, from ``column`` on, that no cell of the rows above covers.

        Only cells added with `add_cell` count.

        Raises:
            ResourceLimit: the spans cover more than `MAX_COVERED_CELLS` cells.
        """
        while self._covered_until.get(column, 0) > row:
            column += 1
            self._count_cells(1)
        return column

    def add_cell(self, row: int, column: int, text: str, *, row_span: int = 1, column_span: int = 1) -> None:
        """Add a cell. Cells of a row come in the order of their columns.

        Args:
            row_span: rows that the cell covers. Those below the last row of the table are ignored. Less than 1 counts as 1.
            column_span: columns that the cell covers. Less than 1 counts as 1, and at most `MAX_COLUMNS` count.

        Raises:
            ResourceLimit: see `find_free_column`.
        """
        while len(self._rows) <= row:
            self._rows.append([])
        cells = self._rows[row]
        self._count_cells(max(column - len(cells), 0))
        cells.extend([""] * (column - len(cells)))
        cells[column:] = [text]
        column_span = min(max(column_span, 1), MAX_COLUMNS)
        if row_span > 1:
            self._count_cells(column_span)
            self._covered_until.update(dict.fromkeys(range(column, column + column_span), row + row_span))
        self.add_span(row, column, row_span=row_span, column_span=column_span)

    def add_span(self, row: int, column: int, *, row_span: int, column_span: int) -> None:
        """Let a cell that was added cover more rows and columns. Other values in these are removed."""
        if row_span > 1 or column_span > 1:
            self._spans.append(CellSpan(row, column, max(row_span, 1), max(column_span, 1)))

    def lay_out(self) -> LaidOutTable:
        """Return the table with every value in all rows and columns that its cell covers.

        Raises:
            ResourceLimit: see `find_free_column`.
        """
        for span in self._spans:
            self._clear_span(span)
        rows = [number for number, row in enumerate(self._rows) if any(row)]
        columns = list_used_columns([self._rows[number] for number in rows])
        cells = [_select_columns(self._rows[number], columns) for number in rows]
        spans = _renumber_spans(self._spans, rows, columns)
        for span in spans:
            self._fill_span(cells, span, len(columns))
        return LaidOutTable(cells, rows, columns, spans)

    def write_table(
        self, builder: TextBuilder, places: Sequence[Mapping[str, Any]] = (), *, header_rows: int | None = None
    ) -> None:
        """Add the table to a text: its captions, its rows below one header, and its notes. A table of one column is lines.

        Args:
            places: the fields of `Region` of each row of the grid, or nothing.
            header_rows: rows at the top that name the columns or are captions. None: they are found by spans and values.

        Raises:
            ResourceLimit: see `find_free_column`.
        """
        self.lay_out().write_table(builder, places, header_rows=header_rows)

    def _count_cells(self, count: int) -> None:
        self._covered += count
        if self._covered > MAX_COVERED_CELLS:
            raise ResourceLimit(f"the spans of a table cover more than {MAX_COVERED_CELLS} cells, which is the limit")

    def _clear_span(self, span: CellSpan) -> None:
        for number in range(span.row, min(span.end_row, len(self._rows))):
            row = self._rows[number]
            start, end = span.column + (number == span.row), min(span.end_column, len(row))
            self._count_cells(max(end - start, 0) + 1)
            if start < end:
                row[start:end] = [""] * (end - start)

    def _fill_span(self, cells: list[list[str]], span: CellSpan, width: int) -> None:
        """Write a value into the cells that it covers. A value as wide as the table stands once in its rows."""
        text = cells[span.row][span.column]
        column_span = 1 if span.column_span == width else span.column_span
        self._count_cells(span.row_span * column_span)
        for row in cells[span.row : span.end_row]:
            row.extend([""] * (span.column + column_span - len(row)))
            row[span.column : span.column + column_span] = [text] * column_span


@dataclass(frozen=True, slots=True)
class LaidOutTable:
    """The result of `TableGrid.lay_out`.

    Args:
        cells: the values row by row, in the columns that are used. Rows may be shorter than the table is wide.
        rows: the number of each row in the grid.
        columns: the number of each column in the grid.
        spans: the cells that cover several of these rows or columns.
    """

    cells: list[list[str]]
    rows: list[int]
    columns: list[int]
    spans: list[CellSpan]

    def write_table(
        self, builder: TextBuilder, places: Sequence[Mapping[str, Any]] = (), *, header_rows: int | None = None
    ) -> None:
        """See `TableGrid.write_table`."""
        where: list[Mapping[str, Any]] = [places[number] for number in self.rows] if places else [{}] * len(self.rows)
        if len(self.columns) < 2:
            builder.add_lines([(row[0], location) for row, location in zip(self.cells, where, strict=True)])
            return
        start, end = self._count_captions(), len(self.cells) - self._count_notes()
        for row, location in zip(self.cells[:start], where[:start], strict=True):
            builder.add_paragraph(row[0], **location)
        rows, row_places = self.cells[start:end], where[start:end]
        count = self._count_header_rows(start, rows) if header_rows is None else bisect_left(self.rows, header_rows) - start
        if count > 1:
            rows = [join_header(rows[:count]), *rows[count:]]
            row_places = [join_places(row_places[:count]), *row_places[count:]]
        builder.add_table(rows, row_places, header=count > 0)
        for row, location in zip(self.cells[end:], where[end:], strict=True):
            builder.add_paragraph(row[0], **location)

    def _count_captions(self) -> int:
        """Return the number of rows above the table with no more than a value in the first column: its title and remarks."""
        return next((number for number, row in enumerate(self.cells) if not row[0] or any(row[1:])), 0)

    def _count_notes(self) -> int:
        """Return the number of rows below the table with one cell that is as wide as the table."""
        wide = {span.row for span in self.spans if span.column_span == len(self.columns)}
        return next((count for count, number in enumerate(range(len(self.cells) - 1, -1, -1)) if number not in wide), 0)

    def _count_header_rows(self, start: int, rows: Sequence[Sequence[str]]) -> int:
        spans = [replace(span, row=span.row - start) for span in self.spans if span.row >= start]
        return count_header_rows(rows, spans, len(self.columns))


def list_used_columns(rows: Iterable[Sequence[str]]) -> list[int]:
    """Return the numbers of the columns with a value, in order."""
    used: set[int] = set()
    unused: set[int] = set()
    width = 0
    for row in rows:
        if len(row) > width:
            unused.update(range(width, len(row)))
            width = len(row)
        if unused:
            filled = {column for column in unused if column < len(row) and row[column]}
            used |= filled
            unused -= filled
    return sorted(used)


def _select_columns(row: list[str], columns: Sequence[int]) -> list[str]:
    if not columns or columns[-1] == len(columns) - 1:
        return row if len(row) <= len(columns) else row[: len(columns)]
    width = len(row)
    return [row[column] if column < width else "" for column in columns]


def _renumber_spans(spans: Iterable[CellSpan], rows: Sequence[int], columns: Sequence[int]) -> list[CellSpan]:
    """Return the spans with a value, in the numbers of the rows and columns that are used."""
    renumbered = []
    for span in spans:
        row, column = bisect_left(rows, span.row), bisect_left(columns, span.column)
        row_span, column_span = bisect_left(rows, span.end_row) - row, bisect_left(columns, span.end_column) - column
        has_value = rows[row : row + 1] == [span.row] and columns[column : column + 1] == [span.column]
        if has_value and (row_span > 1 or column_span > 1):
            renumbered.append(CellSpan(row, column, row_span, column_span))
    return renumbered
