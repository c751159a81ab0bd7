"""Charts and diagrams on the sheets of a workbook: their parts, and the cells that they cover."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator

from lxml import etree

from agentic_rag_backend.documents.parsing.containers import xml_tree
from agentic_rag_backend.documents.parsing.office.drawings.drawing_parts import drawing_id
from agentic_rag_backend.documents.parsing.office.sheets.extent import MAX_SHEET_COLUMNS, MAX_SHEET_ROWS, column_name
from agentic_rag_backend.errors import UnreadableDocument

SheetDrawing = tuple[dict[str, str], bytes]
"""The field of `Region` with the cells that a drawing covers, empty if it covers none, and the XML of its part."""


def list_drawings(opened: zipfile.ZipFile, sheet_part: str, read_parts: set[str]) -> Iterator[SheetDrawing]:
    """Yield the charts and diagrams of a sheet. Each part is read once.

    Args:
        read_parts: the parts that were read, to which this call adds its own.
    """
    for drawing_part in read_relationships(opened, sheet_part, "/drawing").values():
        root = _read_tree(opened, drawing_part)
        parts = read_relationships(opened, drawing_part) if root is not None else {}
        for anchor in root if root is not None else ():
            for element in anchor.iterfind(".//{*}graphicData/*"):
                part = parts.get(drawing_id(element))
                if part is not None and part not in read_parts:
                    read_parts.add(part)
                    yield _read_cells(anchor), opened.read(part)


def read_relationships(opened: zipfile.ZipFile, part: str, kind: str = "") -> dict[str | None, str]:
    """Return the parts that a part of a package refers to, by the id of the relationship.

    Args:
        kind: how the types of the relationships end. Empty: all of them.
    """
    folder, name = posixpath.split(part)
    root = _read_tree(opened, f"{folder}/_rels/{name}.rels")
    targets = {
        relationship.get("Id"): posixpath.normpath(posixpath.join("/", folder, relationship.get("Target") or "")).lstrip("/")
        for relationship in (root if root is not None else ())
        if relationship.get("Type", "").endswith(kind)
    }
    return {number: target for number, target in targets.items() if target in opened.NameToInfo}


def _read_tree(opened: zipfile.ZipFile, part: str) -> etree._Element | None:
    """Return the root element of a part; None if it is missing or damaged, so that it loses only itself."""
    try:
        return xml_tree(opened.read(part), part) if part in opened.NameToInfo else None
    except UnreadableDocument:
        return None


def _read_cells(anchor: etree._Element) -> dict[str, str]:
    start, end = (_read_corner(anchor, name) for name in ("from", "to"))
    return {"cells": f"{start}:{end}" if end else start} if start else {}


def _read_corner(anchor: etree._Element, name: str) -> str:
    column, row = (anchor.findtext(f"{{*}}{name}/{{*}}{axis}", "").strip() for axis in ("col", "row"))
    if not (column.isdecimal() and row.isdecimal() and len(column) < 6 and len(row) < 8):
        return ""
    return f"{column_name(min(int(column), MAX_SHEET_COLUMNS - 1))}{min(int(row), MAX_SHEET_ROWS - 1) + 1}"
