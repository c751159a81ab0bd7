"""XLSX: a heading for each visible sheet, and its tables row by row with their ranges of cells."""

from __future__ import annotations

import io
import zipfile

from python_calamine import CalamineWorkbook

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import ZipContainer, xml_tree
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.drawings.drawing_parts import RELATIONSHIP_ID
from agentic_rag_backend.documents.parsing.office.drawings.sheet_drawings import list_drawings, read_relationships
from agentic_rag_backend.documents.parsing.office.sheets.extent import bound_sheet
from agentic_rag_backend.documents.parsing.office.sheets.sheet_properties import read_formats, read_properties
from agentic_rag_backend.documents.parsing.office.sheets.workbooks import SheetSource, add_workbook, report_calamine_errors
from agentic_rag_backend.errors import ResourceLimit

MAX_SHEETS = 1_000

_WORKBOOK, _STYLES = "xl/workbook.xml", "xl/styles.xml"


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
        with report_calamine_errors(), package.report_damage("workbook"):
            copy = package.copy_package(container)
            builder = TextBuilder(len(copy))
            hidden = _add_sheets(builder, copy)
        return builder.build(title=title, metadata={**metadata, **({"hidden_sheets": hidden} if hidden else {})})

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are the names of sheets is not known."""
        return ParsedDocument(text=text)


def _add_sheets(builder: TextBuilder, copy: bytes) -> list[str]:
    """Add the visible sheets, and return the names of the hidden ones."""
    bounded, sheets = _bounded_sheets(copy)
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(bounded))
    return add_workbook(builder, workbook, sheets)


def _bounded_sheets(copy: bytes) -> tuple[bytes, dict[str, SheetSource]]:
    """Return the package with compacted sheets where one spans too many cells, and the sheets by name."""
    with zipfile.ZipFile(io.BytesIO(copy)) as opened:
        changed: dict[str, bytes] = {}
        sheets: dict[str, SheetSource] = {}
        read_parts: set[str] = set()
        formats = read_formats(xml_tree(opened.read(_STYLES), _STYLES) if _STYLES in opened.NameToInfo else None)
        for name, part in _list_sheets(opened):
            xml = opened.read(part)
            changed_xml, positions = bound_sheet(xml, name)
            sheets[name] = SheetSource(positions, read_properties(xml, formats), [*list_drawings(opened, part, read_parts)])
            if changed_xml is not xml:
                changed[part] = changed_xml
        if not changed:
            return copy, sheets
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for part in opened.namelist():
                archive.writestr(part, changed[part] if part in changed else opened.read(part))
    return target.getvalue(), sheets


def _list_sheets(opened: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Return the name and the part of each sheet."""
    targets = read_relationships(opened, _WORKBOOK)
    sheets = [sheet for sheet in xml_tree(opened.read(_WORKBOOK), _WORKBOOK).iter("{*}sheet") if sheet.get("name")]
    if len(sheets) > MAX_SHEETS:
        raise ResourceLimit(f"the workbook has {len(sheets)} sheets; the limit is {MAX_SHEETS}")
    named_parts = [(sheet.get("name") or "", targets.get(sheet.get(RELATIONSHIP_ID), "")) for sheet in sheets]
    return [(name, part) for name, part in named_parts if part]
