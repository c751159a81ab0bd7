"""Tables of HTML: their rows, cells and spans, and whether they hold data or only place the content of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from agentic_rag_backend.documents.parsing.grid import TableGrid

MAX_ROW_SPAN = 65_534
MAX_DATA_CHARACTERS = 300
"""A table without header cells and with a longer cell places prose on a page."""

_GROUPS = ("thead", "tbody", "tfoot")
_CELLS = frozenset({"td", "th"})
_SECTIONS = "table, h1, h2, h3, h4, h5, h6"


@dataclass(frozen=True, slots=True)
class HtmlTable:
    """A table. ``groups`` are its groups of rows in the order in which they are shown. A row is its cells."""

    node: LexborNode
    caption: LexborNode | None
    groups: tuple[tuple[str, list[list[LexborNode]]], ...]

    def iterate_rows(self) -> Iterator[list[LexborNode]]:
        """Yield the rows from top to bottom."""
        for _, rows in self.groups:
            yield from rows

    def is_layout(self) -> bool:
        """Return whether the table only places content: it says so, or has no header and cells with sections or prose."""
        if self.node.attributes.get("role") in {"presentation", "none"}:
            return True
        if self.caption is not None or any(name == "thead" for name, _ in self.groups):
            return False
        cells = [cell for row in self.iterate_rows() for cell in row]
        if any(cell.tag == "th" and cell.css_first(_SECTIONS) is None for cell in cells):
            return False
        return any(len(cell.text(deep=True)) > MAX_DATA_CHARACTERS or cell.css_first(_SECTIONS) is not None for cell in cells)

    def count_header_rows(self) -> int | None:
        """Return the number of rows at the top that name columns by their elements; None if no element says so."""
        heads = sum(len(rows) for name, rows in self.groups if name == "thead")
        if heads:
            return heads
        rows = list(self.iterate_rows())
        if not any(cell.tag == "th" for row in rows for cell in row):
            return None
        header = 0
        for number, row in enumerate(rows):
            if any(cell.tag == "td" and cell.text(deep=True).strip() for cell in row):
                break
            header = number + 1 if any(cell.tag == "th" for cell in row) else header
        return header if header < len(rows) else None

    def make_grid(self, read_cell: Callable[[LexborNode], str]) -> TableGrid:
        """Return the cells with their spans. Rows span no further than their group."""
        grid, number = TableGrid(), 0
        for _, rows in self.groups:
            end = number + len(rows)
            for row in rows:
                column = 0
                for cell in row:
                    column = grid.find_free_column(number, column)
                    row_span = min(_read_span(cell, "rowspan") or MAX_ROW_SPAN, end - number)
                    column_span = _read_span(cell, "colspan") or 1
                    grid.add_cell(number, column, read_cell(cell), row_span=row_span, column_span=column_span)
                    column += column_span
                number += 1
        return grid


def read_table(node: LexborNode) -> HtmlTable:
    """Return a table by its element. Tables within its cells are part of the cells."""
    caption = None
    groups: list[tuple[str, list[list[LexborNode]]]] = []
    for child in node.iter():
        if child.tag == "caption":
            caption = caption or child
        elif child.tag in _GROUPS:
            rows = [[cell for cell in row.iter() if cell.tag in _CELLS] for row in child.iter() if row.tag == "tr"]
            groups.append((child.tag, rows))
    return HtmlTable(node, caption, tuple(sorted(groups, key=lambda group: _GROUPS.index(group[0]))))


def _read_span(cell: LexborNode, name: str) -> int:
    span = cell.attributes.get(name) or "1"
    return min(int(span[:6]), MAX_ROW_SPAN) if span.isdecimal() else 1
