"""Objects within OpenDocument files: formulas become text, and charts become tables, so that they are read at their place."""

from __future__ import annotations

import re

from lxml import etree

from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.documents.parsing.office.drawings.charts import join_name
from agentic_rag_backend.documents.parsing.office.drawings.mathml import write_mathml
from agentic_rag_backend.documents.parsing.office.walking import local_name
from agentic_rag_backend.errors import UnreadableDocument

_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_CHART = "{urn:oasis:names:tc:opendocument:xmlns:chart:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_REFERENCE = "{http://www.w3.org/1999/xlink}href"
_OWN_CELLS = re.compile(r"local-table\b|\.?\$?[A-Z]{1,3}\$?[0-9]")
"""Addresses of cells in the table that a chart keeps itself."""


class EmbeddedObjects:
    """Reads the objects of one file, each member once."""

    def __init__(self, container: ZipContainer) -> None:
        self._container = container
        self._read: set[str] = set()

    def replace_objects(self, root: etree._Element) -> None:
        """Replace the formulas and charts below ``root``. Other objects stay."""
        for element in list(root.iter(_DRAW + "object")):
            content, parent = self.read_object(element), element.getparent()
            if content is not None and parent is not None:
                content.tail = element.tail
                parent.replace(element, content)

    def read_object(self, element: etree._Element) -> etree._Element | None:
        """Return a formula as a paragraph, and a chart as a table.

        A chart of cells outside it is a paragraph with its titles. None: the object is of another kind, or has no values.
        """
        root = self._read_root(element)
        if root is None:
            return None
        if local_name(root) == "math":
            return _make_paragraph(write_mathml(root))
        chart = root.find(f"{_OFFICE}body/{_OFFICE}chart/{_CHART}chart")
        return None if chart is None else _convert_chart(chart)

    def _read_root(self, element: etree._Element) -> etree._Element | None:
        """Return the root element of an object, which stands within its element or in a member of its own."""
        if len(element):
            return element[0]
        member = element.get(_REFERENCE, "").removeprefix("./").strip("/") + "/content.xml"
        if member in self._read or member not in self._container:
            return None
        self._read.add(member)
        try:
            return self._container.read_tree(member)
        except UnreadableDocument:
            return None


def _convert_chart(chart: etree._Element) -> etree._Element | None:
    title = _read_title(chart)
    axes = {axis.get(_CHART + "dimension"): _read_title(axis) for axis in chart.iterfind(f"{_CHART}plot-area/{_CHART}axis")}
    ranges = [series.get(_CHART + "values-cell-range-address", "") for series in chart.iter(_CHART + "series")]
    if any(address and not _OWN_CELLS.match(address) for address in ranges):
        titles = ", ".join(filter(None, axes.values()))
        return _make_paragraph(f"{title} ({titles})" if title and titles else title or titles)
    table = chart.find(_TABLE + "table")
    if table is None:
        return _make_paragraph(title) if title else None
    for cell in table.iter(_TABLE + "table-cell"):
        if cell.get(_OFFICE + "value") == "NaN":
            cell.clear()
    header = table.find(f"{_TABLE}table-header-rows")
    names = None if header is None else header.find(_TABLE + "table-row")
    if header is None or names is None:
        return table
    for number, cell in enumerate(names.iterfind(_TABLE + "table-cell")):
        name = " ".join("".join(cell.itertext()).split())
        for child in list(cell):
            cell.remove(child)
        cell.append(_make_paragraph(join_name(name, axes.get("y", "")) if number else name or axes.get("x", "")))
    if title:
        caption = etree.Element(_TABLE + "table-row")
        etree.SubElement(caption, _TABLE + "table-cell").append(_make_paragraph(title))
        header.insert(0, caption)
    return table


def _make_paragraph(text: str) -> etree._Element:
    paragraph = etree.Element(_TEXT + "p")
    paragraph.text = text
    return paragraph


def _read_title(element: etree._Element) -> str:
    title = element.find(_CHART + "title")
    return "" if title is None else " ".join("".join(title.itertext()).split())
