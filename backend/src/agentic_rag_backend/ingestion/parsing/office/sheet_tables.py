"""Tables of a sheet: rows without an empty row between them, with their captions and their header."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.office.extent import Positions, column_name

Row = tuple[int, list[str]]
"""The number of a row in its sheet, from 0, and its cells from the first column that the sheet uses."""

MAX_HEADER_CELL_CHARACTERS = 200
_NUMBER = re.compile(r"[-+]?[\d.,]+%?|\d{4}-\d\d-\d\d.*|TRUE|FALSE")
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class SheetBlock:
    """Rows without an empty row between them. ``filled`` counts their cells with a value."""

    rows: Sequence[Row]
    filled: int
    first_column: int
    positions: Positions

    def used_columns(self) -> list[int]:
        """Return the indexes of the columns with a value, in order."""
        used: set[int] = set()
        for _, cells in self.rows:
            used.update(index for index, cell in enumerate(cells) if cell)
        return sorted(used)

    def column_letters(self, index: int) -> str:
        """Return the letters of a column in the sheet."""
        return column_name(self.positions.column_number(self.first_column + index))


def add_block(builder: TextBuilder, block: SheetBlock, sheet: str) -> None:
    """Add a block: its captions and a table, or lines if it has one column. Columns without a value are left out."""
    columns = block.used_columns()
    places = _locate_cells(block, columns, sheet)
    rows = [[cells[index] for index in columns] if len(columns) < len(cells) else cells for _, cells in block.rows]
    if len(columns) == 1:
        builder.add_lines([(row[0], location) for row, location in zip(rows, places, strict=True)])
        return
    captions = _count_captions(rows)
    for row, location in zip(rows[:captions], places[:captions], strict=True):
        builder.add_paragraph(next(filter(None, row)), **location)
    rows, places = rows[captions:], places[captions:]
    builder.add_table(rows, places, header=is_header(rows))


def _locate_cells(block: SheetBlock, columns: Sequence[int], sheet: str) -> list[Mapping[str, Any]]:
    first_column, last_column = block.column_letters(columns[0]), block.column_letters(columns[-1])
    if first_column == last_column:
        return [{"sheet": sheet, "cells": f"{first_column}{number + 1}"} for number, _ in block.rows]
    return [{"sheet": sheet, "cells": f"{first_column}{number + 1}:{last_column}{number + 1}"} for number, _ in block.rows]


def _count_captions(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of rows above a table that have only one value: its title and notes."""
    for number, row in enumerate(rows):
        if len(row) - row.count("") > 1:
            return number
    return 0


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns: it has short different texts or years, and there are rows below it."""
    if len(rows) < 2:
        return False
    names = [name for name in rows[0] if name]
    if len(set(names)) < len(names) or any(len(name) > MAX_HEADER_CELL_CHARACTERS for name in names):
        return False
    numbers = [name for name in names if _NUMBER.fullmatch(name)]
    return len(numbers) < len(names) and all(map(_YEAR.fullmatch, numbers)) and len(names) > len(rows[0]) // 2
