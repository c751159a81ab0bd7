"""ODS: a heading for each visible sheet of an OpenDocument spreadsheet, and its tables with their ranges of cells."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from copy import copy
from itertools import chain

from lxml import etree

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import refuse_document_type, xml_problem
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.drawings.opendocument_objects import EmbeddedObjects
from agentic_rag_backend.documents.parsing.office.opendocument import (
    MAIN,
    OpenDocumentParser,
    cell_text,
    open_container,
    read_properties,
    text_of,
)
from agentic_rag_backend.documents.parsing.office.opendocument_tables import is_unseen, read_count, read_grid, read_row
from agentic_rag_backend.documents.parsing.office.sheets.extent import MAX_SHEET_COLUMNS, column_name
from agentic_rag_backend.documents.parsing.office.sheets.sheet_properties import SheetProperties
from agentic_rag_backend.documents.parsing.office.sheets.sheet_tables import Row, SheetTables
from agentic_rag_backend.documents.parsing.office.sheets.workbooks import MAX_CELLS, MAX_SHEET_NAME_CHARACTERS
from agentic_rag_backend.documents.parsing.office.walking import local_name
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_SIGNIFICANT_DIGITS = 8
"""A value with more digits was computed, and is not written after the number that the sheet shows."""

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_DIGITS = re.compile(r"\D+")


class OdsParser(OpenDocumentParser):
    """Parser of OpenDocument spreadsheets. Values have the form of the sheets; hidden parts are left out."""

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the sheets one after the other."""
        container = open_container(content)
        title, metadata = read_properties(container)
        xml = container.read_member(MAIN)
        refuse_document_type(xml, MAIN)
        reader = _Reader(TextBuilder(container.unzipped_bytes), xml, EmbeddedObjects(container))
        with package.report_damage("OpenDocument spreadsheet"):
            reader.read_sheets()
        hidden = {"hidden_sheets": reader.hidden_sheets} if reader.hidden_sheets else {}
        return reader.builder.build(title=title, metadata={**metadata, **hidden})


class _Reader:
    """Reads the elements one after the other and forgets each row, because the tree of a large sheet does not fit into memory."""

    def __init__(self, builder: TextBuilder, xml: bytes, objects: EmbeddedObjects) -> None:
        self.builder = builder
        self._objects = objects
        self._embedded: list[etree._Element] = []
        self.hidden_sheets: list[str] = []
        self._hidden_styles: set[str] = set()
        self._filled = 0
        self._events = etree.iterparse(
            io.BytesIO(xml), events=("start", "end"), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
            remove_comments=True, remove_pis=True,
        )  # fmt: skip

    def read_sheets(self) -> None:
        """Add the visible sheets."""
        is_sheet_file = False
        try:
            for event, element in self._events:
                name = local_name(element)
                if event == "start" and name == "spreadsheet":
                    is_sheet_file = True
                elif event == "end" and name == "table-properties" and element.get(_TABLE + "display") == "false":
                    self._hidden_styles.add(element.getparent().get(_STYLE + "name") or "")
                elif event == "start" and name == "table":
                    self._read_sheet(element)
        except etree.XMLSyntaxError as error:
            raise xml_problem(error.code, str(error), f"the XML of {MAIN!r}") from None
        if not is_sheet_file:
            raise UnreadableDocument("the OpenDocument spreadsheet is damaged: it has no body")

    def _read_sheet(self, table: etree._Element) -> None:
        name = " ".join((table.get(_TABLE + "name") or "").split())[:MAX_SHEET_NAME_CHARACTERS]
        properties = SheetProperties()
        tables = SheetTables(self.builder, name, range(MAX_SHEET_COLUMNS), properties)
        rows = self._iterate_rows(table, tables)
        if table.get(_TABLE + "style-name") in self._hidden_styles:
            self.hidden_sheets.append(name)
            self.builder.omissions.add("hidden sheets", name)
            for _ in rows:
                pass
            return
        first_row = next(rows, None)  # the columns stand before it
        if first_row is not None:
            tables.add_rows(chain((first_row,), rows))
        self._write_objects(name, has_heading=tables.has_heading)

    def _write_objects(self, name: str, *, has_heading: bool) -> None:
        """Add the charts and formulas of a sheet after its tables."""
        contents = [self._objects.read_object(element) for element in self._embedded]
        self.builder.omissions.add("embedded objects", name, count=contents.count(None))
        if any(content is not None for content in contents) and not has_heading:
            self.builder.add_heading(1, name, sheet=name)
        for content in contents:
            if content is not None and local_name(content) == "table":
                grid, header_rows = read_grid(content, lambda cell, _: cell_text(cell), without=frozenset())
                grid.write_table(self.builder, [{"sheet": name}] * grid.row_count, header_rows=header_rows)
            elif content is not None:
                self.builder.add_paragraph(text_of(content), sheet=name)

    def _iterate_rows(self, table: etree._Element, tables: SheetTables) -> Iterator[Row]:
        """Yield the rows of a sheet with text, and forget them. Hidden and merged cells are added to ``tables``."""
        number = column = 0
        self._embedded = []
        for event, element in self._events:
            name = local_name(element)
            if event == "start":
                continue
            if name == "object":
                self._embedded.append(copy(element))
            if name == "table" and element is table:
                table.clear()
                return
            if name == "table-column" and element.getparent() is not None:
                count = read_count(element, "number-columns-repeated")
                if is_unseen(element):
                    tables.properties.hidden_columns.update(range(column, min(column + count, MAX_SHEET_COLUMNS)))
                column += count
            elif name == "table-row":
                yield from self._read_rows(element, number, tables)
                number += read_count(element, "number-rows-repeated")
                _forget_element(element)

    def _read_rows(self, element: etree._Element, number: int, tables: SheetTables) -> Iterator[Row]:
        unsaved: list[int] = []

        def read_cell(cell: etree._Element, column: int) -> str:
            text = _show_cell(cell)
            if not text and cell.get(_TABLE + "formula") and cell.get(_OFFICE + "value-type") is None:
                unsaved.append(column)
            return text

        row = read_row(element, read_cell)
        tables.properties.unsaved += [f"{column_name(column)}{number + 1}" for column in unsaved]
        if not row.cells:
            return
        self._filled += row.count * (len(row.cells) - row.cells.count(""))
        if self._filled > MAX_CELLS:
            raise ResourceLimit(f"the spreadsheet has more than {MAX_CELLS} cells with a value, which is the limit")
        if is_unseen(element):
            tables.properties.hidden_rows.update(range(number, number + row.count))
        for column, row_span, column_span in row.spans:
            tables.add_merge(number, column, number + row_span, column + column_span)
        for repetition in range(row.count):
            yield number + repetition, row.cells[:MAX_SHEET_COLUMNS]


def _forget_element(element: etree._Element) -> None:
    """Free the memory of an element that was read, and of those before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _show_cell(cell: etree._Element) -> str:
    """Return the text that the sheet shows, followed by the value of the cell if the form hides it."""
    text = cell_text(cell)
    if moment := cell.get(_OFFICE + "date-value"):
        moment = moment.removesuffix("T00:00:00")[:30]
        return text if not text or moment[:10] in text else f"{text} ({moment})"
    value = cell.get(_OFFICE + "value") or ""
    digits = _read_digits(value)
    if text and 0 < len(digits) <= MAX_SIGNIFICANT_DIGITS and digits != _read_digits(text) and "e" not in value.lower():
        return f"{text} ({value})"
    return text


def _read_digits(number: str) -> str:
    return _DIGITS.sub("", number[:40]).strip("0")
