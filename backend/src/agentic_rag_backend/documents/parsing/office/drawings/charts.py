"""Charts of Office (DrawingML) as tables of the values that were saved with them: a row a category, a column a series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import groupby, islice
from typing import Any

from lxml import etree

from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.grid import TableGrid
from agentic_rag_backend.documents.parsing.office.sheets.cell_values import format_value
from agentic_rag_backend.documents.parsing.office.sheets.number_formats import NumberFormat
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements

MAX_SERIES = 255
"""Series of a chart that are read. Programs allow as many."""
MAX_CATEGORIES = 10_000
"""Categories of a chart that are read."""
MAX_FORMATS = 100
"""Number formats of a chart that are followed. Each costs as much as hundreds of values."""

_MAX_LEVELS = 10
_MAX_NUMBER_CHARACTERS = 40
_LAST_DAY = 2_958_465
"""Serial number of the end of the year 9999."""
_CACHES = frozenset({"numCache", "numLit", "strCache", "strLit", "lvl"})
_NUMBERS = frozenset({"numCache", "numLit", "numDim"})

Points = dict[int, str]
"""Values of a series or names of categories, by the number of the category."""


@dataclass(slots=True)
class Chart:
    """A chart. ``tables`` have a header, and a row for each category. There are several if series have different categories.

    ``title`` includes the titles of the axes if the values are ``in_cells`` of a sheet, and not in tables. ``lost`` is the number
    of series and values beyond the limits.
    """

    title: str = ""
    in_cells: bool = False
    tables: list[list[list[str]]] = field(default_factory=list)
    lost: int = 0
    _formats: dict[str, NumberFormat] = field(default_factory=dict)

    def find_format(self, code: str) -> NumberFormat:
        """Return the number format with a code, or one that changes nothing if the chart has too many."""
        if code not in self._formats:
            self._formats[code] = NumberFormat(code if len(self._formats) < MAX_FORMATS else "General")
        return self._formats[code]

    def write_chart(self, builder: TextBuilder, place: str = "", **where: Any) -> None:
        """Add the title and the tables to a text. A chart without saved values is counted as left out.

        Args:
            place: where the chart is, for `Omissions.add`.
            where: the fields of `Region` of all its text.
        """
        builder.add_paragraph(self.title, **where)
        for rows in self.tables:
            TableGrid(rows).write_table(builder, [where] * len(rows), header_rows=1)
        builder.omissions.add("charts without saved values", place, count=not self.tables and not self.in_cells)
        builder.omissions.add("values of charts beyond the limits", place, count=self.lost)


@dataclass(frozen=True, slots=True)
class _Series:
    category_title: str
    categories: Points
    name: str
    values: Points


def read_chart(root: etree._Element, sheets: Set[str] = frozenset()) -> Chart:
    """Return the chart in a part of a package: the root is ``chartSpace`` of either kind of chart.

    Args:
        sheets: names of sheets whose cells are not repeated.
    """
    chart = Chart(_read_title(root.find("{*}chart")))
    sources = {_read_sheet(element.text or "") for element in root.iter("{*}f")} if sheets else set()
    if sources and sources <= sheets:
        axes = [_read_title(axis) for axis in root.iterfind("{*}chart/{*}plotArea/*")]
        titles = ", ".join(dict.fromkeys(filter(None, axes)))
        return Chart(f"{chart.title} ({titles})" if chart.title and titles else chart.title or titles, in_cells=True)
    series = list(islice(_list_series(root, chart), MAX_SERIES + 1))
    chart.lost += len(series) > MAX_SERIES
    for (category_title, categories), group in groupby(
        series[:MAX_SERIES], key=lambda series: (series.category_title, series.categories)
    ):
        rows = _make_rows(category_title, categories, list(group))
        if len(rows) > 1:
            chart.tables.append(rows)
    return chart


def _make_rows(category_title: str, categories: Points, columns: list[_Series]) -> list[list[str]]:
    numbers = sorted(set(categories).union(*(series.values for series in columns)))
    header = [category_title, *(series.name or f"Series {number}" for number, series in enumerate(columns, 1))]
    if not any(series.values for series in columns):
        return [header]
    return [header, *([categories.get(n) or str(n + 1), *(series.values.get(n, "") for series in columns)] for n in numbers)]


def _list_series(root: etree._Element, chart: Chart) -> Iterator[_Series]:
    start = date(1904, 1, 1) if root.find("{*}date1904[@val='1']") is not None else date(1899, 12, 30)
    if root.find("{*}chartData") is not None:
        yield from _list_extended_series(root, chart, start)
        return
    axes = {_read_attribute(axis, "axId"): _read_title(axis) for axis in root.iterfind("{*}chart/{*}plotArea/*")}
    for plot in root.iterfind("{*}chart/{*}plotArea/*"):
        titles = [axes.get(axis.get("val"), "") for axis in plot.iterfind("{*}axId")][:2]
        category_title, value_title = [*titles, "", ""][:2]
        for series in plot.iterfind("{*}ser"):
            names = _find_any(series, ("cat", "xVal"))
            categories = _read_categories(names, chart, start)
            name = _read_text(series.find("{*}tx"))
            for kind in ("val", "yVal", "bubbleSize"):
                if (source := series.find(f"{{*}}{kind}")) is not None:
                    label = "size" if kind == "bubbleSize" else value_title
                    yield _Series(category_title, categories, join_name(name, label), _read_points(source, chart, start))


def _list_extended_series(root: etree._Element, chart: Chart, start: date) -> Iterator[_Series]:
    """Yield the series of a chart of the kinds since Office 2016, such as waterfalls. They refer to their data by its id."""
    data = {element.get("id"): element for element in root.iterfind("{*}chartData/{*}data")}
    titles = [_read_title(axis) for axis in root.iterfind("{*}chart/{*}plotArea/{*}axis")]
    category_title, value_title = [*titles, "", ""][:2]
    for series in root.iterfind("{*}chart/{*}plotArea/{*}plotAreaRegion/{*}series"):
        source = data.get(_read_attribute(series, "dataId"))
        if source is not None:
            categories = _read_categories(source.find("{*}strDim"), chart, start)
            name = join_name(_read_text(series.find("{*}tx")), value_title)
            for numbers in source.iterfind("{*}numDim"):
                yield _Series(category_title, categories, name, _read_points(numbers, chart, start))


def join_name(name: str, unit: str) -> str:
    """Return the header of a column: the name of the series, and the title of its axis, which often is a unit."""
    return f"{name} ({unit})" if name and unit and unit not in name else name or unit


def _read_categories(source: etree._Element | None, chart: Chart, start: date) -> Points:
    """Return the names of categories. Those of several levels are joined from the outer one to the inner one."""
    levels = [] if source is None else [*islice(source.iter("{*}lvl"), _MAX_LEVELS)]
    if source is None or len(levels) < 2:
        return {} if source is None else _read_points(source, chart, start)
    inner, *outer = (_read_points(level, chart, start) for level in levels)
    names: Points = {}
    current = [""] * len(outer)
    for number in sorted(set(inner).union(*outer)):
        current = [level.get(number, name) for level, name in zip(outer, current, strict=True)]
        names[number] = " – ".join(filter(None, [*reversed(current), inner.get(number, "")]))
    return names


def _read_points(source: etree._Element, chart: Chart, start: date) -> Points:
    caches = [source, *(element for element in walk_elements(source, leaf_names=_CACHES) if local_name(element) in _CACHES)]
    cache = caches[-1]
    is_number = any(local_name(element) in _NUMBERS for element in caches)
    code = cache.get("formatCode") or cache.findtext("{*}formatCode") or "General"
    points: Points = {}
    for point in cache.iterfind("{*}pt"):
        index, own_code = point.get("idx", ""), point.get("formatCode", code)
        if not index.isdecimal() or len(index) > 9 or int(index) >= MAX_CATEGORIES:
            chart.lost += 1
            continue
        text = " ".join((point.findtext("{*}v") or point.text or "").split())
        if is_number:
            text = _show_number(text, chart.find_format(own_code), start)
        if text:
            points[int(index)] = text
    return points


def _read_sheet(reference: str) -> str:
    """Return the name of the sheet in a reference to cells, such as ``'Sales 2024'!$B$2:$B$9``; empty if it has none."""
    name = reference.strip().lstrip("(").rpartition("!")[0]
    return name[1:-1].replace("''", "'") if name[:1] == "'" else name


def _show_number(text: str, number_format: NumberFormat, start: date) -> str:
    """Return a number or the serial number of a day as the chart shows it. Empty: it is none."""
    try:
        number = float(text) if len(text) <= _MAX_NUMBER_CHARACTERS else math.nan
    except ValueError:
        return ""
    if not math.isfinite(number):
        return ""
    display = number_format.show_value(number)
    if display is None and 0 < number < _LAST_DAY:
        moment = datetime.combine(start, time()) + timedelta(days=number)
        display = number_format.show_value(moment.date() if number.is_integer() else moment)
    return format_value(number) if display is None else display


def _read_title(element: etree._Element | None) -> str:
    title = None if element is None else element.find("{*}title")
    return "" if title is None else _read_text(title.find("{*}tx"))


def _read_text(element: etree._Element | None) -> str:
    """Return the text of a title or of the name of a series: written in the chart, or saved from cells."""
    if element is None:
        return ""
    paragraphs = [_join_texts(paragraph.iter("{*}t")) for paragraph in element.iter("{*}p")]
    return " ".join(filter(None, paragraphs)) or _join_texts(element.iter("{*}v"))


def _join_texts(elements: Iterable[etree._Element]) -> str:
    return " ".join("".join(element.text or "" for element in elements).split())


def _find_any(element: etree._Element, names: Iterable[str]) -> etree._Element | None:
    return next((child for child in element if local_name(child) in names), None)


def _read_attribute(element: etree._Element, name: str) -> str | None:
    child = element.find(f"{{*}}{name}")
    return None if child is None else child.get("val")
