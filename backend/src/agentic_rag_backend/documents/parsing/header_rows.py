"""The rows of a table that name its columns, found by spans and values, and joined into one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

MAX_HEADER_ROWS = 5
MAX_HEADER_CELL_CHARACTERS = 200
_BETWEEN_NAMES = " – "
_NUMBER = re.compile(r"[-+]?[\d.,]+%?|\d{4}-\d\d-\d\d.*|TRUE|FALSE")
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class CellSpan:
    """A cell that covers several rows or columns. Rows and columns count from 0."""

    row: int
    column: int
    row_span: int
    column_span: int

    @property
    def end_row(self) -> int:
        """The row below the cell."""
        return self.row + self.row_span

    @property
    def end_column(self) -> int:
        """The column to the right of the cell."""
        return self.column + self.column_span


def count_header_rows(rows: Sequence[Sequence[str]], spans: Sequence[CellSpan], width: int) -> int:
    """Return the number of rows at the top of a laid out table that name its columns; 0 if there is none.

    A first row that names groups of columns has the names of these columns below it. A cell of the first row that covers rows
    below it, without such groups, is a value.

    Args:
        rows: the values; a span's value stands in all cells that it covers.
        spans: the cells that cover several rows or columns.
        width: columns of the table.
    """
    depth = 1
    while depth < min(MAX_HEADER_ROWS, len(rows) - 1) and _names_groups(rows, spans, depth, width):
        depth += 1
    if depth == 1 and any(span.row == 0 and span.row_span > 1 for span in spans):
        return 0
    repeated = _list_repeated_columns(spans, depth - 1)
    header = join_header(rows[:depth])
    names = [name for column, name in enumerate(header) if name and column not in repeated]
    named_columns = width - len(repeated) - (not header[0])  # the names of rows often have no name
    return depth if len(rows) > depth and _are_names(names, named_columns) else 0


def join_header(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one row with the different values of each column from top to bottom, such as "Depth – summer"."""
    columns = zip_longest(*rows, fillvalue="")
    return [_BETWEEN_NAMES.join(dict.fromkeys(filter(None, values))) for values in columns]


def join_places(places: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the place of rows that are joined: the range of their cells, and the smallest box around their boxes."""
    joined = dict(places[0])
    if "cells" in joined:
        joined["cells"] = f"{joined['cells'].partition(':')[0]}:{places[-1]['cells'].rpartition(':')[2]}"
    if "box" in joined:
        lefts, bottoms, rights, tops = zip(*(location["box"] for location in places), strict=True)
        joined["box"] = (min(lefts), min(bottoms), max(rights), max(tops))
    return joined


def _names_groups(rows: Sequence[Sequence[str]], spans: Sequence[CellSpan], depth: int, width: int) -> bool:
    """Return whether the row at ``depth`` names the columns of the groups that the row above it names."""
    groups = [span for span in spans if span.row == depth - 1 and span.end_row == depth and 1 < span.column_span < width]
    if not groups:
        return False
    above, names = _fill_row(rows[depth - 1], width), _fill_row(rows[depth], width)
    repeated = _list_repeated_columns(spans, depth)
    parts = [
        [names[column] for column in range(group.column, group.end_column) if names[column] and column not in repeated]
        for group in groups
    ]
    if not all(_are_names(part, 0) for part in parts if part) or max(map(len, parts)) < 2:
        return False
    covered = {column for span in spans if span.row < depth < span.end_row for column in range(span.column, span.end_column)}
    grouped = {column for group in groups for column in range(group.column, group.end_column)}
    single = set(range(width)) - grouped
    if single:
        return all(column in covered or not above[column] or not names[column] for column in single)
    below = _fill_row(rows[depth + 1], width)
    return len(set(map(tuple, parts))) < len(parts) or any(map(_NUMBER.fullmatch, below))


def _list_repeated_columns(spans: Sequence[CellSpan], row: int) -> set[int]:
    """Return the columns that repeat the value of a cell of ``row`` to the left of them."""
    return {column for span in spans if span.row <= row < span.end_row for column in range(span.column + 1, span.end_column)}


def _fill_row(row: Sequence[str], width: int) -> list[str]:
    return [*row, *[""] * (width - len(row))]


def _are_names(names: Sequence[str], columns: int) -> bool:
    """Return whether values can name columns: short and different, with no numbers but years, for most of the columns."""
    if len(set(names)) < len(names) or any(len(name) > MAX_HEADER_CELL_CHARACTERS for name in names):
        return False
    numbers = [name for name in names if _NUMBER.fullmatch(name)]
    only_years = all(map(_YEAR.fullmatch, numbers))
    return only_years and (len(numbers) < len(names) or columns == 0) and len(names) > columns // 2
