"""Tables of a sheet: rows without an empty row between them, and columns without an empty column between tables."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.grid import TableGrid, list_used_columns
from agentic_rag_backend.documents.parsing.header_rows import count_header_rows
from agentic_rag_backend.documents.parsing.office.sheets.extent import column_name
from agentic_rag_backend.documents.parsing.office.sheets.sheet_properties import SheetProperties, group_runs

Row = tuple[int, list[str]]
"""The number of a row in its sheet, from 0, and its cells in the columns of the sheet that are read."""


@dataclass(slots=True)
class SheetTables:
    """Writes the rows of one sheet as tables.

    Args:
        name: name of the sheet.
        columns: the number in the sheet of each column of the rows.
        properties: hidden and merged cells of the sheet.
        has_heading: whether the name of the sheet stands above its rows, which is so after the first one.
    """

    builder: TextBuilder
    name: str
    columns: Sequence[int]
    properties: SheetProperties
    _rows: list[Row] = field(default_factory=list)
    _end: int = 0
    _hidden_rows: list[int] = field(default_factory=list)
    _merged: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    has_heading: bool = False

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Write rows, which come in order, without the hidden ones. An empty row ends a table, unless a merged cell covers it.

        Hidden parts are added to the omissions of the builder.
        """
        hidden_indexes = [index for index, column in enumerate(self.columns) if column in self.properties.hidden_columns]
        hidden_with_values: set[int] = set()
        for merged in self.properties.merged:
            self.add_merge(*merged)
        for number, cells in rows:
            if number in self.properties.hidden_rows:
                self._hidden_rows.append(number)
                continue
            for index in hidden_indexes:
                if index < len(cells) and cells[index]:
                    hidden_with_values.add(self.columns[index])
                    cells[index] = ""
            if any(cells):  # a hidden column or a number format may have emptied them
                self._add_row(number, cells)
        self._end_rows()
        self._name_hidden(hidden_with_values)

    def add_merge(self, first_row: int, first_column: int, end_row: int, end_column: int) -> None:
        """Add a merged cell. The ends are not part of it. Its first row was not yet written."""
        self._merged.setdefault(first_row, []).append((first_column, end_row, end_column))

    def _add_row(self, number: int, cells: list[str]) -> None:
        while self._rows and self._end < number and self._end in self.properties.hidden_rows:
            self._end += 1
        if self._rows and number > self._end:
            self._end_rows()
        self._rows.append((number, cells))
        self._end = max(self._end, self._find_end(number, cells))

    def _find_end(self, number: int, cells: Sequence[str]) -> int:
        """Return the row below a row and below the merged cells that begin in it with a value."""
        end = number + 1
        for first_column, end_row, _ in self._merged.get(number, ()):
            index = bisect_left(self.columns, first_column)
            if end_row > end and index < len(cells) and cells[index]:
                end = end_row
        return end

    def _end_rows(self) -> None:
        rows, self._rows, self._end = self._rows, [], 0
        if rows and not self.has_heading:
            self.builder.add_heading(1, self.name, sheet=self.name)
            self.has_heading = True
        for start, end in self._divide_columns(rows):
            if (start, end) == (0, len(self.columns)):
                self._write_table(rows, start)
                continue
            for table in self._divide_rows([(number, cells[start:end]) for number, cells in rows], start):
                self._write_table(table, start)

    def _name_hidden(self, columns: Iterable[int]) -> None:
        omissions = self.builder.omissions
        for row, last_row in group_runs(self._hidden_rows):
            omissions.add("hidden rows", _name_range(self.name, str(row + 1), str(last_row + 1)), count=last_row - row + 1)
        for column, last_column in group_runs(columns):
            names = _name_range(self.name, column_name(column), column_name(last_column))
            omissions.add("hidden columns", names, count=last_column - column + 1)
        for reference in self.properties.unsaved:
            omissions.add("formulas without a saved value", f"{self.name}!{reference}")

    def _divide_columns(self, rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
        """Yield the first column and the end of each table. Empty columns divide a block only if its parts are tables."""
        runs = list(group_runs(list_used_columns(cells for _, cells in rows)))
        if len(runs) < 2:
            yield from [(0, len(self.columns))] if rows else []
            return
        starts, end = [0], runs[0][1] + 1
        are_tables = [_is_table(rows, *run) for run in runs]
        divides = are_tables[0]
        unseen = self.properties.narrow_columns | self.properties.hidden_columns
        for (column, last_column), is_table in zip(runs[1:], are_tables[1:], strict=True):
            if divides and is_table and not all(self.columns[index] in unseen for index in range(end, column)):
                starts.append(column)
            end = last_column + 1
        yield from pairwise([*starts, len(self.columns)])

    def _divide_rows(self, rows: Sequence[Row], start: int) -> Iterator[Sequence[Row]]:
        """Yield the rows between empty rows of a part of the columns."""
        table: list[Row] = []
        end = 0
        for number, cells in rows:
            if not any(cells):
                continue
            while end < number and end in self.properties.hidden_rows:
                end += 1
            if table and number > end:
                yield table
                table = []
            table.append((number, cells))
            end = max(end, self._find_end(number, [""] * start + cells))
        if table:
            yield table

    def _write_table(self, rows: Sequence[Row], start: int) -> None:
        numbers = [number for number, _ in rows]
        columns = self.columns[start : start + max(len(cells) for _, cells in rows)]
        grid = TableGrid([cells for _, cells in rows])
        for row, number in enumerate(numbers):
            for first_column, end_row, end_column in self._merged.get(number, ()):
                column = bisect_left(columns, first_column)
                if list(columns[column : column + 1]) == [first_column]:
                    row_span, column_span = bisect_left(numbers, end_row) - row, bisect_left(columns, end_column) - column
                    grid.add_span(row, column, row_span=row_span, column_span=column_span)
        used = list_used_columns(cells for _, cells in rows)
        start_name, end_name = column_name(columns[used[0]]), column_name(columns[used[-1]])
        grid.write_table(self.builder, [self._locate_row(number, start_name, end_name) for number in numbers])

    def _locate_row(self, number: int, start_name: str, end_name: str) -> Mapping[str, Any]:
        cells = f"{start_name}{number + 1}" if start_name == end_name else f"{start_name}{number + 1}:{end_name}{number + 1}"
        return {"sheet": self.name, "cells": cells}


def _is_table(rows: Sequence[Row], column: int, last_column: int) -> bool:
    """Return whether columns are a table by themselves: they have a header, and the first one names the rows."""
    cells = [row[column : last_column + 1] for _, row in rows if any(row[column : last_column + 1])]
    captions = next((number for number, row in enumerate(cells) if len(row) - row.count("") > 1), len(cells))
    names = [row[0] for row in cells[captions + 1 :]]
    has_names = bool(names) and len(set(names)) == len(names) and not any(name[:1].isdigit() or not name for name in names)
    return has_names and count_header_rows(cells[captions:], (), last_column - column + 1) > 0


def _name_range(sheet: str, start: str, end: str) -> str:
    return f"{sheet}!{start}" if start == end else f"{sheet}!{start}:{end}"
