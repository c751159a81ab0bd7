"""The sheets of a workbook that the library opens: their values as the sheets show them, written as tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import python_calamine
from python_calamine import CalamineSheet, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import xml_tree
from agentic_rag_backend.documents.parsing.office.drawings.drawing_parts import write_drawing
from agentic_rag_backend.documents.parsing.office.drawings.sheet_drawings import SheetDrawing
from agentic_rag_backend.documents.parsing.office.sheets.cell_values import format_value
from agentic_rag_backend.documents.parsing.office.sheets.extent import Positions, column_name
from agentic_rag_backend.documents.parsing.office.sheets.sheet_properties import SheetProperties
from agentic_rag_backend.documents.parsing.office.sheets.sheet_tables import Row, SheetTables
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_CELLS = 2_000_000
"""Cells with a value, in all visible sheets."""
MAX_SHEET_NAME_CHARACTERS = 100
"""Programs allow 31. The place of every row has the name."""


@dataclass(frozen=True, slots=True)
class SheetSource:
    """A sheet of a workbook: the original positions of its cells, the properties that its file states, and its drawings."""

    positions: Positions = field(default_factory=Positions)
    properties: SheetProperties = field(default_factory=SheetProperties)
    drawings: Sequence[SheetDrawing] = ()


def add_workbook(builder: TextBuilder, workbook: CalamineWorkbook, sources: Mapping[str, SheetSource]) -> list[str]:
    """Add the visible sheets, and return the names of the hidden ones.

    Raises:
        ResourceLimit: the visible sheets have more than `MAX_CELLS` cells with a value.
    """
    hidden: list[str] = []
    filled = 0
    visible = {metadata.name for metadata in workbook.sheets_metadata if metadata.visible is SheetVisibleEnum.Visible}
    for metadata in workbook.sheets_metadata:
        if metadata.name not in visible:
            hidden.append(metadata.name)
            builder.omissions.add("hidden sheets", metadata.name[:MAX_SHEET_NAME_CHARACTERS])
            continue
        source = sources.get(metadata.name, SheetSource())
        sheet = workbook.get_sheet_by_name(metadata.name) if metadata.typ is SheetTypeEnum.WorkSheet else None
        has_heading = False
        if sheet is not None and sheet.start is not None:
            reader = _SheetReader(sheet, source, MAX_CELLS - filled, builder)
            has_heading = reader.write_tables()
            filled += reader.filled
        if source.drawings:
            name = metadata.name[:MAX_SHEET_NAME_CHARACTERS]
            _write_drawings(builder, name, source.drawings, visible, has_heading=has_heading)
    return hidden


def _write_drawings(
    builder: TextBuilder, name: str, drawings: Sequence[SheetDrawing], visible: Set[str], *, has_heading: bool
) -> None:
    """Add the drawings of a sheet after its tables. Values of charts that are in the cells of visible sheets stand there."""
    if not has_heading:
        builder.add_heading(1, name, sheet=name)
    for cells, xml in drawings:
        try:
            root = xml_tree(xml, name)
        except UnreadableDocument:
            root = None
        write_drawing(builder, root, name, sheets=visible, sheet=name, **cells)


class _SheetReader:
    """Reads the rows of a sheet. It may have ``limit`` cells with a value."""

    def __init__(self, sheet: CalamineSheet, source: SheetSource, limit: int, builder: TextBuilder) -> None:
        self._sheet, self._source, self._limit, self._builder = sheet, source, limit, builder
        start = sheet.start[1] if sheet.start is not None else 0
        self._columns = [source.positions.column_number(start + index) for index in range(sheet.width)]
        self._formats = iter(source.properties.styled)
        self._next_format = next(self._formats, None)
        self.filled = 0

    def write_tables(self) -> bool:
        """Write the tables of the sheet. Return whether it has any."""
        name = self._sheet.name[:MAX_SHEET_NAME_CHARACTERS]
        tables = SheetTables(self._builder, name, self._columns, self._source.properties)
        tables.add_rows(self._iterate_rows())
        return tables.has_heading

    def _iterate_rows(self) -> Iterator[Row]:
        """Yield the rows with a value."""
        indexes = {column: index for index, column in enumerate(self._columns)}
        for position, values in enumerate(self._sheet.iter_rows()):
            cells = [format_value(value) for value in values]
            count = len(cells) - cells.count("")
            if not count:
                continue
            number = self._source.positions.row_number(position)
            self._format_row(number, values, cells, indexes)
            self.filled += count
            if self.filled > self._limit:
                raise ResourceLimit(f"the workbook has more than {MAX_CELLS} cells with a value, which is the limit")
            yield number, cells

    def _format_row(self, number: int, values: list[Any], cells: list[str], indexes: Mapping[int, int]) -> None:
        """Replace the values that the sheet shows in a number format."""
        while self._next_format is not None and self._next_format[0] <= number:
            row, column, number_format = self._next_format
            index = indexes.get(column)
            if row == number and index is not None and cells[index]:
                display = number_format.show_value(values[index])
                if display == "" and values[index]:
                    reference = f"{self._sheet.name[:MAX_SHEET_NAME_CHARACTERS]}!{column_name(column)}{number + 1}"
                    self._builder.omissions.add("values that a number format hides", reference)
                cells[index] = cells[index] if display is None else display
            self._next_format = next(self._formats, None)


@contextlib.contextmanager
def report_calamine_errors() -> Iterator[None]:
    """Turn errors of the library into `UnreadableDocument`, a panic of its Rust code included: that is no `Exception`."""
    try:
        yield
    except (python_calamine.CalamineError, python_calamine.ZipError, python_calamine.XmlError) as error:
        raise UnreadableDocument(f"the workbook is damaged: {str(error)[:200]}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableDocument("the workbook is damaged: its sheets cannot be read") from None
