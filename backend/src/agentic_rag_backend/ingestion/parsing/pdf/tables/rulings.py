"""Straight lines that a page draws, horizontally or vertically, and the grids that they form."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
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


@dataclass(slots=True)
class Grid:
    """Lines that cross: ``xs`` from the left, ``ys`` from the top, and the vertical lines, which may not be complete."""

    xs: list[float]
    ys: list[float]
    vertical: list[Ruling]

    def has_line_at(self, x: float, y: float) -> bool:
        """Whether a line at ``x`` stands at the height ``y``."""
        return any(abs(line.at - x) <= TOLERANCE and line.reaches_position(y) for line in self.vertical)


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
    return Grid(_distinct_positions([line.at for line in upright]), ys[::-1], list(upright))


def _distinct_positions(positions: Sequence[float]) -> list[float]:
    ordered = sorted(positions)
    return ordered[:1] + [
        next_position for position, next_position in pairwise(ordered) if next_position - position > 2 * TOLERANCE
    ]
