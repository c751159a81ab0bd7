"""Tables of RTF: rows of cells whose right edges and merge marks say what they cover."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.grid import TableGrid

EDGE_TOLERANCE = 40
"""Edges of two rows that differ by fewer twips (1/1440 inch) are one. Programs round them."""
MAX_DEFINED_CELLS = 1_000
"""Cells of a row whose definitions are read. Programs allow 63."""


@dataclass(slots=True)
class CellDefinition:
    """What the definition of a row states about a cell. ``right`` is its right edge in twips; None if it states none."""

    right: int | None = None
    begins_rows: bool = False
    continues_rows: bool = False
    continues_columns: bool = False


@dataclass(slots=True)
class RtfTable:
    """The rows of a table, and the definitions of the cells of the row that is read."""

    rows: list[tuple[list[str], list[CellDefinition]]] = field(default_factory=list)
    definitions: list[CellDefinition] = field(default_factory=list)
    _next: CellDefinition = field(default_factory=CellDefinition)

    def begin_definitions(self) -> None:
        """Forget the definitions of the row before."""
        self.definitions, self._next = [], CellDefinition()

    def read_property(self, word: str, number: int | None) -> None:
        """Read a control word of a cell's definition, which ``cellx`` ends."""
        if word == "cellx":
            if len(self.definitions) < MAX_DEFINED_CELLS:
                self._next.right = number
                self.definitions.append(self._next)
            self._next = CellDefinition()
        else:
            setattr(self._next, CELL_PROPERTIES[word], True)

    def end_row(self, cells: list[str]) -> None:
        """Add a row. Cells without a definition stand to the right of the others."""
        self.rows.append((cells, self.definitions))

    def write_table(self, builder: TextBuilder) -> None:
        """Add the table to a text and begin a new one."""
        if self.rows:
            self._lay_out().write_table(builder)
        self.rows = []

    def _lay_out(self) -> TableGrid:
        edges = _merge_edges(definition.right for _, definitions in self.rows for definition in definitions)
        grid = TableGrid()
        merges: dict[int, list[int]] = {}
        for number, (cells, definitions) in enumerate(self.rows):
            ends = _find_ends(edges, definitions, len(cells))
            column = 0
            index = 0
            while index < len(cells):
                definition = definitions[index] if index < len(definitions) else CellDefinition()
                last_index = index
                while last_index + 1 < min(len(cells), len(definitions)) and definitions[last_index + 1].continues_columns:
                    last_index += 1
                end = max(ends[last_index], column + 1)
                if definition.continues_rows and column in merges:
                    merges[column][1] = number + 1
                else:
                    _end_merge(grid, merges, column)
                    grid.add_cell(number, column, cells[index], column_span=1 if definition.begins_rows else end - column)
                    if definition.begins_rows:
                        merges[column] = [number, number + 1, end - column]
                column, index = end, last_index + 1
        for column in list(merges):
            _end_merge(grid, merges, column)
        return grid


CELL_PROPERTIES = {
    "cellx": "right", "clvmgf": "begins_rows", "clvmrg": "continues_rows", "clmrg": "continues_columns",
}  # fmt: skip
"""Control words of a cell's definition, with the fields of `CellDefinition`."""


def _end_merge(grid: TableGrid, merges: dict[int, list[int]], column: int) -> None:
    if column in merges:
        row, end, column_span = merges.pop(column)
        grid.add_span(row, column, row_span=end - row, column_span=column_span)


def _merge_edges(rights: Iterable[int | None]) -> list[int]:
    """Return the different edges from left to right."""
    edges: list[int] = []
    for right in sorted({right for right in rights if right is not None}):
        if not edges or right - edges[-1] > EDGE_TOLERANCE:
            edges.append(right)
    return edges


def _find_ends(edges: Sequence[int], definitions: Sequence[CellDefinition], count: int) -> list[int]:
    """Return the column after each cell of a row, by the edge to its right."""
    ends: list[int] = []
    for index in range(count):
        right = definitions[index].right if index < len(definitions) else None
        previous = ends[-1] if ends else 0
        ends.append(previous + 1 if right is None else max(bisect_left(edges, right - EDGE_TOLERANCE) + 1, previous + 1))
    return ends
