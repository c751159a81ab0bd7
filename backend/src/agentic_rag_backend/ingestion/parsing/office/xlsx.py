"""XLSX: a heading for each visible sheet, and its tables row by row with their ranges of cells."""

from __future__ import annotations

import contextlib
import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any

import python_calamine
from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.containers import ZipContainer, xml_tree
from agentic_rag_backend.ingestion.parsing.office import package
from agentic_rag_backend.ingestion.parsing.office.cell_values import format_value
from agentic_rag_backend.ingestion.parsing.office.extent import Positions, bound_sheet
from agentic_rag_backend.ingestion.parsing.office.sheet_tables import Row, SheetBlock, add_block

MAX_CELLS = 2_000_000
"""Cells with a value, in all visible sheets."""
MAX_SHEETS = 1_000
MAX_SHEET_NAME_CHARACTERS = 100
"""Programs allow 31. The place of every row has the name."""

_WORKBOOK = "xl/workbook.xml"
_RELATIONSHIP_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


class XlsxParser:
    """Parser of workbooks. Formulas have the values that were saved with them; hidden sheets are left out."""

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Open the package and read its title."""
        return package.check_package(head, _WORKBOOK, is_whole=is_whole)

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the sheets one after the other."""
        container = ZipContainer(content)
        package.require_main_part(container, _WORKBOOK)
        title, metadata = package.core_properties(container)
        with _calamine_errors(), package.report_damage("workbook"):
            copy = package.copy_package(container)
            builder = TextBuilder(len(copy))
            hidden = _add_sheets(builder, *_bounded_sheets(copy))
        return builder.build(title=title, metadata={**metadata, **({"hidden_sheets": hidden} if hidden else {})})

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are the names of sheets is not known."""
        return ParsedDocument(text=text)


def _add_sheets(builder: TextBuilder, copy: bytes, positions: dict[str, Positions]) -> list[str]:
    """Add the visible sheets, and return the names of the hidden ones."""
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(copy))
    hidden, filled = [], 0
    for sheet in workbook.sheets_metadata:
        if sheet.visible is not SheetVisibleEnum.Visible:
            hidden.append(sheet.name)
        elif sheet.typ is SheetTypeEnum.WorkSheet:
            blocks = _read_blocks(workbook, sheet.name, positions.get(sheet.name, Positions()), MAX_CELLS - filled)
            for number, block in enumerate(blocks):
                name = sheet.name[:MAX_SHEET_NAME_CHARACTERS]
                if number == 0:
                    builder.add_heading(1, name, sheet=name)
                add_block(builder, block, name)
                filled += block.filled
    return hidden


def _read_blocks(workbook: CalamineWorkbook, name: str, positions: Positions, limit: int) -> Iterator[SheetBlock]:
    """Yield the rows between empty rows. They may have ``limit`` cells with a value."""
    sheet = workbook.get_sheet_by_name(name)
    if sheet.start is None:
        return
    first_column, rows, filled = sheet.start[1], list[Row](), 0
    for index, values in enumerate(sheet.iter_rows()):
        cells = [format_value(value) for value in values]
        count = len(cells) - cells.count("")
        number = positions.row_number(index) if count else -1
        if rows and number != rows[-1][0] + 1:
            yield SheetBlock(rows, filled, first_column, positions)
            rows, filled = [], 0
        if count:
            rows.append((number, cells))
            filled, limit = filled + count, limit - count
        if limit < 0:
            raise ResourceLimit(f"the workbook has more than {MAX_CELLS} cells with a value, which is the limit")
    if rows:
        yield SheetBlock(rows, filled, first_column, positions)


def _bounded_sheets(copy: bytes) -> tuple[bytes, dict[str, Positions]]:
    """Return the package with compacted sheets where one spans too many cells, and the positions in these by name."""
    with zipfile.ZipFile(io.BytesIO(copy)) as opened:
        changed: dict[str, bytes] = {}
        positions: dict[str, Positions] = {}
        for name, part in _list_sheets(opened):
            xml = opened.read(part)
            changed_xml, positions[name] = bound_sheet(xml, name)
            if changed_xml is not xml:
                changed[part] = changed_xml
        if not changed:
            return copy, positions
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for part in opened.namelist():
                archive.writestr(part, changed[part] if part in changed else opened.read(part))
    return target.getvalue(), positions


def _list_sheets(opened: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Return the name and the part of each sheet."""
    relationships = xml_tree(opened.read("xl/_rels/workbook.xml.rels"), "xl/_rels/workbook.xml.rels")
    targets = {
        relationship.get("Id"): posixpath.normpath(posixpath.join("/xl", relationship.get("Target") or ""))
        for relationship in relationships
    }
    sheets = [sheet for sheet in xml_tree(opened.read(_WORKBOOK), _WORKBOOK).iter("{*}sheet") if sheet.get("name")]
    if len(sheets) > MAX_SHEETS:
        raise ResourceLimit(f"the workbook has {len(sheets)} sheets; the limit is {MAX_SHEETS}")
    named_parts = [(sheet.get("name") or "", targets.get(sheet.get(_RELATIONSHIP_ID), "").lstrip("/")) for sheet in sheets]
    return [(name, part) for name, part in named_parts if part in opened.NameToInfo]


@contextlib.contextmanager
def _calamine_errors() -> Iterator[Any]:
    """Turn errors of the library into `UnreadableDocument`, a panic of its Rust code included: that is no `Exception`."""
    try:
        yield
    except (python_calamine.CalamineError, python_calamine.ZipError, python_calamine.XmlError) as error:
        raise UnreadableDocument(f"the workbook is damaged: {str(error)[:200]}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableDocument("the workbook is damaged: its sheets cannot be read") from None
