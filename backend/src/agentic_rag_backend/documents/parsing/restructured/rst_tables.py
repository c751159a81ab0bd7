"""Tables of reStructuredText: between lines of a grid, and between rules (simple tables)."""

from __future__ import annotations

import re
from collections.abc import Sequence

GRID = re.compile(r"\+(?:-+\+)+\s*")
RULE = re.compile(r"=+(?: +=+)+\s*")
_HEADER_END = re.compile(r"\+(?:=+\+)+\s*")
_PART = re.compile(r"=+")


def read_grid_table(lines: Sequence[str]) -> tuple[list[list[str]], bool]:
    """Return the rows of a table between lines of ``+---+``, and whether its first row is a header. Spans are not divided."""
    rows: list[list[list[str]]] = []
    current: list[list[str]] = []
    has_header = False
    for line in lines:
        if line.startswith("|"):
            cells = line.strip().strip("|").split("|")
            current += [[] for _ in range(len(cells) - len(current))]
            for cell, text in zip(current, cells, strict=False):
                cell.append(text.strip())
        elif current and not line.strip("+-= \n"):
            has_header = has_header or (not rows and _HEADER_END.fullmatch(line) is not None)
            rows.append(current)
            current = []
    return [_join_cells(row) for row in [*rows, *([current] if current else [])]], has_header


def read_simple_table(lines: Sequence[str]) -> tuple[list[list[str]], bool]:
    """Return the rows of a table between rules of ``=== ===``, and whether its first row is a header.

    A line without text in the first column goes on in the row above.
    """
    starts = [part.start() for part in _PART.finditer(lines[0])]
    rules = [number for number, line in enumerate(lines) if RULE.fullmatch(line)]
    rows: list[list[list[str]]] = []
    for line in lines[1:]:
        if line.strip() and not RULE.fullmatch(line) and line.strip("- "):
            cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
            if cells[0] or not rows:
                rows.append([[] for _ in cells])
            for cell, text in zip(rows[-1], cells, strict=True):
                cell.append(text)
    return [_join_cells(row) for row in rows], len(rules) > 2


def _join_cells(row: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join(filter(None, cell)) for cell in row]
