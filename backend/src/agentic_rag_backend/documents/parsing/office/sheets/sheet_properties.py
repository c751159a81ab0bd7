"""Properties of the cells of a sheet that its reader does not return: hidden and merged ones, and number formats.

They are found in the XML by regular expressions, which are many times as fast as a parser. Rows and columns count from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from lxml import etree

from agentic_rag_backend.documents.parsing.office.sheets.extent import MAX_SHEET_COLUMNS, column_number
from agentic_rag_backend.documents.parsing.office.sheets.number_formats import BUILT_IN_FORMATS, NumberFormat

MAX_MERGED_RANGES = 200_000
NARROW_WIDTH = 4.0
"""Columns of fewer characters only space the columns of one table."""

_COLUMN = re.compile(rb"<(?:\w+:)?col\s([^<>]{0,500})>")
_HIDDEN_ROW = re.compile(rb"<(?:\w+:)?row([^<>]{0,500}?\shidden=[\"'](?:1|true)[\"'][^<>]{0,500})>")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^<>]{0,200}?ref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})[\"']")
_WIDTH = re.compile(rb"\d{1,4}(?:\.\d{1,20})?")
_ATTRIBUTE = re.compile(rb"\b(\w+)=[\"']([^\"']*)[\"']")
_STYLED = re.compile(
    rb"<(?:\w+:)?c(?=[^<>]{0,500}?\ss=[\"'](?P<style>\d{1,6})[\"'])[^<>]{0,500}?\sr=[\"'](?P<column>[A-Z]{1,3})"
    rb"(?P<row>\d{1,7})[\"']"
)
_USUAL_STYLED = re.compile(rb'<c r="(?P<column>[A-Z]{1,3})(?P<row>\d{1,7})" s="(?P<style>\d{1,6})"')
"""Cells as most programs write them. This pattern is six times as fast."""
_FORMULAS = (b"<f>", b"<f ", b"<f/", b":f>", b":f ", b":f/")
_UNSAVED = re.compile(
    rb"<(?:\w+:)?c[^<>]{0,500}?\sr=[\"']([A-Z]{1,3}\d{1,7})[\"'][^<>]{0,500}>\s*<(?:\w+:)?f(?:\s[^<>]*)?(?:/>|>[^<>]*</(?:\w+:)?f>)"
    rb"\s*(?:</(?:\w+:)?c>|<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</)"
)


StyledCell = tuple[int, int, NumberFormat]
"""Row, column and number format of a cell."""


@dataclass(slots=True)
class SheetProperties:
    """Properties of one sheet.

    Args:
        hidden_rows: numbers of the rows that are hidden.
        hidden_columns: numbers of the columns that are hidden.
        narrow_columns: numbers of the columns of at most `NARROW_WIDTH` characters.
        merged: first row, first column, end row and end column of each merged range. The ends are not part of the range.
        unsaved: references of the cells whose formula has no saved value.
        styled: row, column and number format of the cells that have one, in the order of the rows. They can be read once.
    """

    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    narrow_columns: set[int] = field(default_factory=set)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    unsaved: list[str] = field(default_factory=list)
    styled: Iterable[StyledCell] = ()


def read_properties(xml: bytes, formats: Sequence[NumberFormat | None]) -> SheetProperties:
    """Return the properties in the XML of a sheet."""
    properties = SheetProperties(styled=_iterate_styled_cells(xml, formats) if any(formats) else ())
    if b"hidden=" in xml:
        rows = (dict(_ATTRIBUTE.findall(row[1])).get(b"r", b"") for row in _HIDDEN_ROW.finditer(xml))
        properties.hidden_rows = {int(digits) - 1 for digits in rows if digits.isdigit() and len(digits) < 8}
    for column in _COLUMN.finditer(xml, 0, max(xml.find(b"sheetData"), 0)):
        _read_column(properties, dict(_ATTRIBUTE.findall(column[1])))
    for merged in islice(_MERGED.finditer(xml), MAX_MERGED_RANGES):
        start, end = column_number(merged[1]), column_number(merged[3]) + 1
        properties.merged.append((int(merged[2]) - 1, start, int(merged[4]), end))
    if any(mark in xml for mark in _FORMULAS):
        properties.unsaved = [cell[1].decode() for cell in _UNSAVED.finditer(xml)]
    return properties


def _iterate_styled_cells(xml: bytes, formats: Sequence[NumberFormat | None]) -> Iterator[StyledCell]:
    cell = _STYLED.search(xml)
    pattern = _USUAL_STYLED if cell is not None and _USUAL_STYLED.match(xml, cell.start()) else _STYLED
    for letters, digits, style in (cell.group("column", "row", "style") for cell in pattern.finditer(xml)):
        number_format = formats[int(style)] if int(style) < len(formats) else None
        if number_format is not None:
            yield int(digits) - 1, column_number(letters), number_format


def _read_column(properties: SheetProperties, attributes: Mapping[bytes, bytes]) -> None:
    limits = attributes.get(b"min", b""), attributes.get(b"max", b"")
    if not all(limit.isdigit() and len(limit) < 6 for limit in limits):
        return
    columns = range(int(limits[0]) - 1, min(int(limits[1]), MAX_SHEET_COLUMNS))
    width = attributes.get(b"width", b"")
    if attributes.get(b"hidden") in {b"1", b"true"}:
        properties.hidden_columns.update(columns)
    elif _WIDTH.fullmatch(width) and float(width) <= NARROW_WIDTH:
        properties.narrow_columns.update(columns)


def read_formats(styles: etree._Element | None) -> list[NumberFormat | None]:
    """Return the number format of each style of a workbook, None where it changes nothing."""
    if styles is None:
        return []
    codes = dict(BUILT_IN_FORMATS)
    for element in styles.iter("{*}numFmt"):
        if (number := element.get("numFmtId", "")).isdecimal() and element.get("formatCode"):
            codes[int(number)] = element.get("formatCode", "")
    numbers = [style.get("numFmtId", "") for style in styles.iterfind("{*}cellXfs/{*}xf")]
    return make_formats(codes, [int(number) if number.isdecimal() else 0 for number in numbers])


def make_formats(codes: Mapping[int, str], numbers: Iterable[int]) -> list[NumberFormat | None]:
    """Return the number format of each style by the number of its code, None where it changes nothing."""
    shared: dict[str, NumberFormat | None] = {"": None, "General": None, "@": None}
    formats: list[NumberFormat | None] = []
    for number in numbers:
        code = codes.get(number, "")
        if code not in shared:
            shared[code] = NumberFormat(code)
        formats.append(shared[code])
    return formats


def group_runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of numbers that follow each other."""
    run: list[int] = []
    for number in sorted(numbers):
        if run and number != run[1] + 1:
            yield run[0], run[1]
            run = []
        run = [run[0] if run else number, number]
    if run:
        yield run[0], run[1]
