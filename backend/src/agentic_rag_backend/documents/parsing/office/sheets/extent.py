"""The extent of a sheet: a reader allocates all cells between its corners, so that one far cell could ask for 400 GB.

Sheets that span too many cells are compacted: their rows and columns without cells are removed, and the numbers of the others
are kept. Cells are found in the XML by regular expressions, which are many times as fast as a parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.errors import ResourceLimit

MAX_AREA_CELLS = 8_000_000
"""Cells between the corners of a sheet, empty ones included. Each takes about 32 bytes."""
MAX_SHEET_ROWS = 1_048_576
MAX_SHEET_COLUMNS = 16_384

_COLUMN = re.compile(rb"\sr=[\"']([A-Z]{1,3})[0-9]")
_TAG = re.compile(rb"<(?:\w+:)?c(?=[\s/>])")
_CELL = re.compile(rb"(<(?:\w+:)?c\s(?:[^<>]*?\s)?r=[\"'])([A-Z]{1,3})([0-9]{1,7})(?=[\"'])")
_ROW = re.compile(rb"<(?:\w+:)?row\s(?:[^<>]*?\s)?r=[\"']([0-9]{1,7})")
_ROW_TAG = re.compile(rb"<(?:\w+:)?row(?=[\s/>])")


@dataclass(frozen=True, slots=True)
class Positions:
    """The numbers of a compacted sheet's rows and columns in the original sheet, from 0. None if nothing was removed."""

    rows: Sequence[int] | None = None
    columns: Sequence[int] | None = None

    def row_number(self, index: int) -> int:
        """Return the number of a row in the original sheet."""
        return index if self.rows is None else self.rows[index]

    def column_number(self, index: int) -> int:
        """Return the number of a column in the original sheet."""
        return index if self.columns is None else self.columns[index]


def bound_sheet(xml: bytes, name: str) -> tuple[bytes, Positions]:
    """Return the XML of a sheet that spans at most `MAX_AREA_CELLS`, and the original positions of its cells.

    Raises:
        ResourceLimit: it spans more even without its empty rows and columns.
    """
    columns_found = _COLUMN.findall(xml)
    columns = set(map(column_number, set(columns_found)))
    # Cells may leave out their references. They then follow the cell before them.
    implicit = len(_TAG.findall(xml)) - len(columns_found)
    width = max(max(columns, default=0) + 1, implicit)
    if width * MAX_SHEET_ROWS <= MAX_AREA_CELLS:
        return xml, Positions()
    if implicit > 0:
        area = _area_without_references(xml)
        return _refuse_area(name, area) if area > MAX_AREA_CELLS else (xml, Positions())
    rows = {int(digits) - 1 for _, _, digits in _CELL.findall(xml)}
    if (max(rows, default=0) + 1) * width <= MAX_AREA_CELLS:
        return xml, Positions()
    if len(rows) * len(columns) > MAX_AREA_CELLS:
        return _refuse_area(name, len(rows) * len(columns))
    return _compact_sheet(xml, sorted(rows), sorted(columns))


def _area_without_references(xml: bytes) -> int:
    """Return the most cells that a sheet may span if some of its rows or cells have no references."""
    numbers = [int(digits) for digits in _ROW.findall(xml)]
    height = max(numbers, default=0) + len(_ROW_TAG.findall(xml)) - len(numbers)
    return height * max(map(_count_columns, _ROW_TAG.split(xml)))


def _count_columns(row: bytes) -> int:
    columns = _COLUMN.findall(row)
    return max(map(column_number, columns), default=-1) + 1 + len(_TAG.findall(row)) - len(columns)


def _refuse_area(name: str, area: int) -> tuple[bytes, Positions]:
    raise ResourceLimit(f"the sheet {name[:100]!r} spans {area} cells; the limit is {MAX_AREA_CELLS}")


def _compact_sheet(xml: bytes, rows: list[int], columns: list[int]) -> tuple[bytes, Positions]:
    new_row = {row: index for index, row in enumerate(rows)}
    new_column = {column: column_name(index).encode() for index, column in enumerate(columns)}

    def move_cell(cell: re.Match[bytes]) -> bytes:
        return b"%b%b%d" % (cell[1], new_column[column_number(cell[2])], new_row[int(cell[3]) - 1] + 1)

    return _CELL.sub(move_cell, xml), Positions(rows, columns)


def column_number(letters: bytes) -> int:
    """Return the number of a column from 0: 0 for A, 26 for AA."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number - 1


def column_name(number: int) -> str:
    """Return the letters of a column, whose number counts from 0."""
    letters = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(65 + letter) + letters
    return letters
