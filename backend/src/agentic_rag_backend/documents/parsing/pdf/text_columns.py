"""Reading order: the columns of a page, found by the white space between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Protocol, TypeVar

from agentic_rag_backend.domain.location import Box

MAX_DEPTH = 4
"""Columns within columns."""
_LEAST_ROWS = 3
"""A column has this many rows."""
_LEAST_WIDTH = 8.0
"""A column is this many font sizes wide. A narrower one is a column of a table, or the numbers of a list."""
_LEAST_FILL = 0.5
"""Text fills this share of the rows of a column; the cells of a table do not."""
_LEAST_GAP = 0.6
"""The gap between two columns, in font sizes."""
_MOST_CROSSING = 0.75
"""Rows across the gap, such as a title or the lines of an abstract, as a share of the rows beside it."""


class Placed(Protocol):
    """A part of a page: text or a table."""

    box: Box
    size: float


Item = TypeVar("Item", bound=Placed)


@dataclass(slots=True)
class _Gutter:
    x: float
    crossing: int
    balance: int


def columns_of(items: Sequence[Item], depth: int = 0) -> list[list[Item]]:
    """Return the items by columns in reading order. Items of one column are in no order.

    A part that crosses the gap between columns ends them: all columns above it are read before it.
    """
    gutter = _find_gutter(items) if depth < MAX_DEPTH else None
    if gutter is None:
        return [list(items)] if items else []
    ordered: list[list[Item]] = []
    left_items: list[Item] = []
    right: list[Item] = []
    across: list[Item] = []

    def close_columns() -> None:
        for side in (left_items, right):
            ordered.extend(columns_of(side, depth + 1))
            side.clear()

    for item in sorted(items, key=lambda item: -(item.box[1] + item.box[3])):
        if item.box[0] < gutter.x < item.box[2]:
            heading = _heading_below(left_items, right)
            close_columns()
            across += [*heading, item]
            continue
        if across:
            ordered.append(across)
            across = []
        (left_items if item.box[2] <= gutter.x else right).append(item)
    close_columns()
    if across:
        ordered.append(across)
    return ordered


def _heading_below(left_items: list[Item], right: Sequence[Item]) -> list[Item]:
    """Remove the last item of the left column and return it, if it is a heading of what follows below both columns."""
    if len(left_items) < 2 or not right:
        return []
    before, lowest = left_items[-2:]
    apart = before.box[1] - lowest.box[3] > lowest.size
    if not apart or lowest.box[3] > min(item.box[1] for item in right):
        return []
    return [left_items.pop()]


def _find_gutter(items: Sequence[Item]) -> _Gutter | None:
    """Return the best gap between two columns; None if the items are one column."""
    if len(items) < 2 * _LEAST_ROWS:
        return None
    size = median(item.size for item in items)
    starts = sorted(item.box[0] for item in items)
    ends = sorted(item.box[2] for item in items)
    gutters: list[_Gutter] = []
    for end, start in _find_gaps(starts, ends, _LEAST_GAP * size):
        x = (end + start) / 2
        before = bisect_right(ends, x)
        after = len(items) - bisect_right(starts, x)
        crossing = len(items) - before - after
        if min(before, after) >= _LEAST_ROWS and crossing <= _MOST_CROSSING * (before + after):
            gutters.append(_Gutter(x, crossing, min(before, after)))
    gutters.sort(key=lambda gutter: (gutter.crossing, -gutter.balance))
    return next((gutter for gutter in gutters[:8] if _separates_columns(items, gutter.x, size)), None)


def _find_gaps(starts: list[float], ends: list[float], least: float) -> list[tuple[float, float]]:
    """Return the spans of at least this width in which no item begins or ends, from an end to a start."""
    edges = sorted([*((x, 1) for x in starts), *((x, 0) for x in ends)])
    return [
        (edge, next_edge)
        for (edge, kind), (next_edge, next_kind) in pairwise(edges)
        if next_edge - edge >= least and kind == 0 and next_kind == 1
    ]


def _separates_columns(items: Sequence[Item], x: float, size: float) -> bool:
    """Whether the items on both sides of ``x`` are columns of text that stand side by side."""
    sides = ([item for item in items if item.box[2] <= x], [item for item in items if item.box[0] >= x])
    spans = []
    for side in sides:
        low, high = min(item.box[1] for item in side), max(item.box[3] for item in side)
        width = max(item.box[2] for item in side) - min(item.box[0] for item in side)
        rows = len({round((item.box[1] + item.box[3]) / size) for item in side})
        if width < _LEAST_WIDTH * size or rows < _LEAST_ROWS:
            return False
        if sum(item.box[2] - item.box[0] for item in side) < _LEAST_FILL * rows * width:
            return False
        spans.append((low, high))
    common = min(spans[0][1], spans[1][1]) - max(spans[0][0], spans[1][0])
    return common >= _LEAST_ROWS * size
