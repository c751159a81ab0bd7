"""Tables of WordprocessingML: their cells with the rows and columns that they cover, and the tables within cells."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from agentic_rag_backend.documents.parsing.base import MAX_COLUMNS
from agentic_rag_backend.documents.parsing.grid import TableGrid
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.documents.parsing.office.word.docx_text import LEFT_OUT, W, read_value, text_of
from agentic_rag_backend.errors import ResourceLimit

MAX_DATA_CHARACTERS = 300
"""A table of one row with a longer cell places text side by side."""


@dataclass(slots=True)
class WordTable:
    """A table. ``cells`` are all its cells in their order, ``nested`` the tables within them.

    ``header_rows`` is the number of rows at the top that are repeated on each page; None if the table states none.
    """

    grid: TableGrid = field(default_factory=TableGrid)
    cells: list[etree._Element] = field(default_factory=list)
    nested: list[etree._Element] = field(default_factory=list)
    header_rows: int | None = None
    rows: int = 0
    longest: int = 0
    _merges: dict[int, list[int]] = field(default_factory=dict)

    def is_layout(self) -> bool:
        """Return whether the table is a frame around its content, or places text or tables side by side."""
        return len(self.cells) <= 1 or (self.rows == 1 and (self.longest > MAX_DATA_CHARACTERS or bool(self.nested)))

    def add_row(self, row: etree._Element) -> None:
        """Add a row with its cells."""
        column = _read_span(row, "trPr/gridBefore", least=0)
        for cell in walk_elements(row, without=LEFT_OUT, leaf_names={"tc"}):
            if local_name(cell) == "tc":
                column = self._add_cell(cell, column)
        if column > MAX_COLUMNS:
            raise ResourceLimit(f"a table has {column} columns; the limit is {MAX_COLUMNS}")
        header = row.find(f"{W}trPr/{W}tblHeader")
        if header is not None and header.get(W + "val") not in {"0", "false"} and (self.header_rows or 0) == self.rows:
            self.header_rows = self.rows + 1
        self.rows += 1

    def end_merges(self) -> None:
        """End the cells that cover rows up to the last one."""
        for column in list(self._merges):
            self._end_merge(column)
        if self.header_rows == self.rows:
            self.header_rows = None

    def _add_cell(self, cell: etree._Element, column: int) -> int:
        """Add a cell at ``column`` and return the column after it."""
        column_span = _read_span(cell, "tcPr/gridSpan", least=1)
        merge = cell.find(f"{W}tcPr/{W}vMerge")
        if merge is not None and merge.get(W + "val") in {None, "continue"} and column in self._merges:
            self._merges[column][1] += 1
            return column + column_span
        self._end_merge(column)
        text = self._read_cell(cell)
        self.cells.append(cell)
        self.longest = max(self.longest, len(text))
        self.grid.add_cell(self.rows, column, text, column_span=1 if merge is not None else column_span)
        if merge is not None:
            self._merges[column] = [self.rows, 1, column_span]
        return column + column_span

    def _end_merge(self, column: int) -> None:
        if column in self._merges:
            row, row_span, column_span = self._merges.pop(column)
            self.grid.add_span(row, column, row_span=row_span, column_span=column_span)

    def _read_cell(self, cell: etree._Element) -> str:
        parts: list[str] = []
        for block in walk_elements(cell, without=LEFT_OUT, leaf_names={"p", "tbl"}):
            if local_name(block) == "p":
                parts.append(text_of(block).strip())
            elif local_name(block) == "tbl":
                self.nested.append(block)
        return "\n".join(filter(None, parts))


def read_table(element: etree._Element) -> WordTable:
    """Return a table by its element. Rows that were deleted are left out.

    Raises:
        ResourceLimit: it has more than `MAX_COLUMNS` columns.
    """
    table = WordTable()
    for row in walk_elements(element, without=LEFT_OUT, leaf_names={"tr"}):
        if local_name(row) == "tr" and row.find(f"{W}trPr/{W}del") is None:
            table.add_row(row)
    table.end_merges()
    return table


def _read_span(element: etree._Element, path: str, *, least: int) -> int:
    span = read_value(element, path) or ""
    return min(max(int(span), least), MAX_COLUMNS + 1) if span.isdecimal() and len(span) < 9 else least
