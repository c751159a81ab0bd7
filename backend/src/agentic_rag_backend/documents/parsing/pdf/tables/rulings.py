"""Straight lines that a page draws, horizontally or vertically, and the grids that they form."""

from __future__ import annotations

import ctypes
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import pypdfium2
import pypdfium2.raw as pdfium

MAX_PATHS = 20_000
MAX_SEGMENTS = 2_000
"""Lines and curves of one path that are read. A longer one is a drawing."""
MAX_RULINGS = 1_000
"""A page with more lines is a drawing, such as a map."""
TOLERANCE = 2.0
"""Points by which lines that meet may miss each other."""
_SHORTEST = 5.0


@dataclass(slots=True)
class Ruling:
    """A line at ``at`` of one axis, from ``start`` to ``end`` of the other."""

    at: float
    start: float
    end: float

    def reaches_position(self, position: float) -> bool:
        """Whether the line passes ``position``."""
        return self.start - TOLERANCE <= position <= self.end + TOLERANCE


class Grid:
    """Lines that cross: ``xs`` from the left, ``ys`` from the top. A line may not be complete: cells then span its gap."""

    def __init__(self, xs: list[float], ys: list[float], upright: Iterable[Ruling], across: Iterable[Ruling]) -> None:
        self.xs, self.ys = xs, ys
        self._upright = [_list_extents(x, upright) for x in xs]
        self._dividing: list[bool] = []
        self._across = [_list_extents(y, across) for y in ys]

    def has_column_line(self, index: int, y: float) -> bool:
        """Whether the line at ``xs[index]`` stands at the height ``y``."""
        return _covers(self._upright[index], y)

    def has_row_line(self, index: int, x: float) -> bool:
        """Whether the line at ``ys[index]`` runs at ``x``."""
        return _covers(self._across[index], x)

    def divides_columns(self, start: int, end: int) -> bool:
        """Whether a line at one of ``xs[start:end]`` stands beside most rows, so that a row without it has a wide cell there."""
        if not self._dividing:
            middles = [self._middle_of(self.ys, row) for row in range(len(self.ys) - 1)]
            self._dividing = [
                2 * sum(self.has_column_line(index, y) for y in middles) >= len(middles) for index in range(len(self.xs))
            ]
        return any(self._dividing[start:end])

    def measure_span(self, row: int, column: int) -> tuple[int, int]:
        """Return the rows and columns of the cell whose upper left corner is that of ``row`` and ``column``."""
        y, columns = self._middle_of(self.ys, row), 1
        while column + columns < len(self.xs) - 1 and not self.has_column_line(column + columns, y):
            columns += 1
        rows = 1
        while row + rows < len(self.ys) - 1 and self._continues_below(row + rows, column, columns):
            rows += 1
        return rows, columns

    def _continues_below(self, row: int, column: int, columns: int) -> bool:
        y = self._middle_of(self.ys, row)
        return not any(
            self.has_row_line(row, self._middle_of(self.xs, column + offset))
            or (offset and self.has_column_line(column + offset, y))
            for offset in range(columns)
        ) and (column + columns == len(self.xs) - 1 or self.has_column_line(column + columns, y))

    @staticmethod
    def _middle_of(positions: Sequence[float], index: int) -> float:
        return (positions[index] + positions[index + 1]) / 2


def _list_extents(position: float, rulings: Iterable[Ruling]) -> list[tuple[float, float]]:
    """Return the starts and ends of the lines at a position, in order and without overlap."""
    extents: list[tuple[float, float]] = []
    for ruling in sorted((line for line in rulings if abs(line.at - position) <= 2 * TOLERANCE), key=lambda line: line.start):
        if extents and ruling.start <= extents[-1][1]:
            extents[-1] = extents[-1][0], max(extents[-1][1], ruling.end)
        else:
            extents.append((ruling.start, ruling.end))
    return extents


def _covers(extents: Sequence[tuple[float, float]], position: float) -> bool:
    index = bisect_right(extents, (position + TOLERANCE, math.inf)) - 1
    return index >= 0 and extents[index][1] >= position - TOLERANCE


def grids_of(page: pypdfium2.PdfPage) -> list[Grid]:
    """Return the grids of at least two rows and two columns."""
    try:
        strokes = list(_list_strokes(page))
    except pypdfium2.PdfiumError:  # a part of the page is damaged
        return []
    across: list[Ruling] = []
    upright: list[Ruling] = []
    for (x0, y0), (x1, y1) in strokes:
        if abs(y1 - y0) <= 1 and abs(x1 - x0) >= _SHORTEST:
            across.append(Ruling((y0 + y1) / 2, min(x0, x1), max(x0, x1)))
        elif abs(x1 - x0) <= 1 and abs(y1 - y0) >= _SHORTEST:
            upright.append(Ruling((x0 + x1) / 2, min(y0, y1), max(y0, y1)))
    across, upright = _merge_rulings(across), _merge_rulings(upright)
    if not across or not upright or len(across) + len(upright) > MAX_RULINGS:
        return []
    grids = (_make_grid(*group) for group in _group_crossings(across, upright))
    return [grid for grid in grids if len(grid.xs) >= 3 and len(grid.ys) >= 3]


def _list_strokes(page: pypdfium2.PdfPage) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the straight lines of the page's paths; thin rectangles as one line."""
    for drawn in islice(_list_paths(page), MAX_PATHS):
        x_min, bottom, right, top = drawn.get_bounds()
        if right - x_min <= TOLERANCE or top - bottom <= TOLERANCE:
            middle = (x_min + right) / 2, (bottom + top) / 2
            wide = right - x_min > top - bottom
            yield ((x_min, middle[1]), (right, middle[1])) if wide else ((middle[0], bottom), (middle[0], top))
        elif 0 < pdfium.FPDFPath_CountSegments(drawn) <= MAX_SEGMENTS:
            yield from _list_segments(drawn)


def _list_paths(page: pypdfium2.PdfPage) -> Iterator[pypdfium2.PdfObject]:
    for index in range(max(pdfium.FPDFPage_CountObjects(page), 0)):
        drawn = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(drawn) == pdfium.FPDF_PAGEOBJ_PATH:  # a page has many more texts
            yield pypdfium2.PdfObject(drawn, page=page, pdf=page.pdf)


def _list_segments(drawn: pypdfium2.PdfObject) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    matrix = drawn.get_matrix()
    x, y = ctypes.c_float(), ctypes.c_float()
    begin = position = (0.0, 0.0)
    for index in range(pdfium.FPDFPath_CountSegments(drawn)):
        segment = pdfium.FPDFPath_GetPathSegment(drawn, index)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = matrix.on_point(x.value, y.value)
        if pdfium.FPDFPathSegment_GetType(segment) == pdfium.FPDF_SEGMENT_MOVETO:
            begin = point
        else:
            yield position, point
        position = point
        if pdfium.FPDFPathSegment_GetClose(segment):
            yield position, begin


def _merge_rulings(rulings: Sequence[Ruling]) -> list[Ruling]:
    """Return the rulings with those joined that continue each other, such as the edges of cells side by side."""
    merged: list[Ruling] = []
    for ruling in sorted(rulings, key=lambda line: (round(line.at / TOLERANCE), line.start)):
        last_ruling = merged[-1] if merged else None
        if (
            last_ruling is not None
            and abs(last_ruling.at - ruling.at) <= TOLERANCE
            and ruling.start <= last_ruling.end + TOLERANCE
        ):
            last_ruling.end = max(last_ruling.end, ruling.end)
        else:
            merged.append(Ruling(ruling.at, ruling.start, ruling.end))
    return merged


def _group_crossings(across: Sequence[Ruling], upright: Sequence[Ruling]) -> list[tuple[list[Ruling], list[Ruling]]]:
    """Return the groups of rulings that cross each other."""
    groups: list[tuple[dict[int, Ruling], list[Ruling]]] = []
    for line in upright:
        rows = {id(row): row for row in across if row.reaches_position(line.at) and line.reaches_position(row.at)}
        columns, apart = [line], []
        for group in groups:
            if rows.keys().isdisjoint(group[0].keys()):
                apart.append(group)
            else:
                rows = group[0] | rows
                columns += group[1]
        groups = [*apart, (rows, columns)] if rows else groups
    return [(list(rows.values()), columns) for rows, columns in groups]


def _make_grid(across: Sequence[Ruling], upright: Sequence[Ruling]) -> Grid:
    ys = _distinct_positions([line.at for line in across])
    return Grid(_distinct_positions([line.at for line in upright]), ys[::-1], upright, across)


def _distinct_positions(positions: Sequence[float]) -> list[float]:
    ordered = sorted(positions)
    return ordered[:1] + [
        next_position for position, next_position in pairwise(ordered) if next_position - position > 2 * TOLERANCE
    ]
