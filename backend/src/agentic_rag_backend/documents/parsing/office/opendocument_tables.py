"""Rows and cells of OpenDocument tables, which texts, sheets and slides share. Repeated cells are repeated if they have text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from agentic_rag_backend.documents.parsing.grid import TableGrid
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.errors import ResourceLimit

MAX_TABLE_CELLS = 1_000_000
"""Cells of one table. A few bytes can repeat a cell a billion times."""

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_UNSEEN = frozenset({"collapse", "filter"})


@dataclass(slots=True)
class OpenRow:
    """A row, which stands ``count`` times. ``spans`` are the column, the rows and the columns of cells that cover several."""

    cells: list[str] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    count: int = 1


def read_row(row: etree._Element, read_cell: Callable[[etree._Element, int], str]) -> OpenRow:
    """Return a row without the empty cells at its end.

    Args:
        read_cell: returns the text of a cell in a column.

    Raises:
        ResourceLimit: a cell with text is repeated so often that the row has more than `MAX_TABLE_CELLS` cells.
    """
    content = OpenRow(count=read_count(row, "number-rows-repeated"))
    column = 0
    for cell in row:
        name = local_name(cell)
        if name not in {"table-cell", "covered-table-cell"}:
            continue
        count = read_count(cell, "number-columns-repeated")
        if name == "table-cell" and (text := read_cell(cell, column)):
            if column + count > MAX_TABLE_CELLS:
                raise ResourceLimit(f"a table has more than {MAX_TABLE_CELLS} cells, which is the limit")
            content.cells.extend([""] * (column - len(content.cells)) + [text] * count)
            row_span, column_span = read_count(cell, "number-rows-spanned"), read_count(cell, "number-columns-spanned")
            if row_span > 1 or column_span > 1:
                content.spans.append((column, row_span, column_span))
        column += count
    return content


def read_grid(
    table: etree._Element, read_cell: Callable[[etree._Element, int], str], *, without: frozenset[str]
) -> tuple[TableGrid, int | None]:
    """Return the cells of a table, and the number of its header rows; None if it states none.

    Args:
        read_cell: returns the text of a cell in a column.
        without: names of elements that are left out.

    Raises:
        ResourceLimit: it has more than `MAX_TABLE_CELLS` cells.
    """
    rows: list[list[str]] = []
    spans: list[tuple[int, int, int, int]] = []
    cells = header_rows = 0
    for element in walk_elements(table, without={*without, "p", "h", "list"}, leaf_names={"table-row"}):
        if local_name(element) != "table-row":
            continue
        row = read_row(element, read_cell)
        count = row.count if row.cells else 1
        cells += count * max(len(row.cells), 1)
        if cells > MAX_TABLE_CELLS:
            raise ResourceLimit(f"a table has more than {MAX_TABLE_CELLS} cells, which is the limit")
        spans += [(len(rows), *span) for span in row.spans]
        rows += [list(row.cells) for _ in range(count)]
        if local_name(element.getparent()) == "table-header-rows":
            header_rows = len(rows)
    grid = TableGrid(rows)
    for number, column, row_span, column_span in spans:
        grid.add_span(number, column, row_span=row_span, column_span=column_span)
    return grid, header_rows if 0 < header_rows < len(rows) else None


def read_count(element: etree._Element, name: str) -> int:
    """Return an attribute that says how often an element stands, or how many rows or columns it covers; 1 if there is none.

    Raises:
        ResourceLimit: it is no number below a billion.
    """
    count = element.get(_TABLE + name, "1")
    if not count.isdecimal() or len(count) > 10:
        raise ResourceLimit(f"a table has more than {MAX_TABLE_CELLS} cells, which is the limit")
    return max(int(count), 1)


def is_repeated(cell: etree._Element) -> bool:
    """Return whether a cell stands several times."""
    row = cell.getparent()
    return read_count(cell, "number-columns-repeated") > 1 or (row is not None and read_count(row, "number-rows-repeated") > 1)


def is_unseen(element: etree._Element) -> bool:
    """Return whether a row or column is hidden by itself, by a filter or with its group."""
    if element.get(_TABLE + "visibility") in _UNSEEN:
        return True
    group = element.getparent()
    while group is not None and local_name(group) in {"table-row-group", "table-column-group"}:
        if group.get(_TABLE + "display") == "false":
            return True
        group = group.getparent()
    return False
