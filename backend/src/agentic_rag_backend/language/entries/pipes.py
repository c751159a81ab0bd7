"""Tables of Markdown (GitHub Flavored Markdown 0.29, section 4.10): a header row, a delimiter row, and rows with pipes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from agentic_rag_backend.language.entries.base import MAX_COLUMNS, MAX_HEADER_CHARACTERS, Block, Entry, plain_cell, row_of
from agentic_rag_backend.language.entries.lines import Line, line_above

_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r":?-+:?\Z")


def pipe_tables(text: str, lines: Sequence[Line], first_table: int) -> Iterator[Block]:
    """Yield the tables of ``text`` in order. Their numbers count from ``first_table``."""
    number, index = first_table, 1
    while index < len(lines):
        labels = _read_labels(text, lines, index)
        if labels is None:
            index += 1
            continue
        header, first_row = index - 1, index + 1
        index = first_row
        while index < len(lines) and text.find("|", lines[index].start, lines[index].end) >= 0:
            index += 1
        if index > first_row:
            rows = lines[first_row:index]
            read_entries = partial(_make_entries, text, lines, header, rows, labels, number)
            yield Block(
                lines[header].start, rows[-1].end, lines[first_row - 1].end, tuple(row.start for row in rows[1:]), read_entries
            )
            number += 1


def _make_entries(
    text: str, lines: Sequence[Line], header: int, rows: Sequence[Line], labels: Sequence[str], number: int
) -> list[Entry]:
    context = line_above(text, lines, header)
    cells = ([(plain_cell(text[start:end]), start, end) for start, end in _split_cells(text, row)] for row in rows)
    return [
        row_of(row.start, row.end, labels, row_cells, table=number, context=context)
        for row, row_cells in zip(rows, cells, strict=True)
    ]


def _read_labels(text: str, lines: Sequence[Line], index: int) -> list[str] | None:
    """Return the names of the columns if line ``index`` is a delimiter row, and the line before it a header row."""
    line = lines[index]
    if "-" not in text[line.start : line.start + 8] or lines[index - 1].blank:
        return None
    under = text[line.start : line.end].replace("+", "|").strip().strip("|").split("|")
    if not all(_DELIMITER.match(cell.strip()) for cell in under):
        return None
    header = _split_cells(text, lines[index - 1])
    if (
        "|" not in text[lines[index - 1].start : line.end]
        or len(header) != len(under)
        or len(header) > MAX_COLUMNS
        or line.end - lines[index - 1].start > MAX_HEADER_CHARACTERS
    ):
        return None
    return [plain_cell(text[start:end]) for start, end in header]


def _split_cells(text: str, line: Line) -> list[tuple[int, int]]:
    """Return the spans of a line's cells. A line without a pipe is one cell."""
    pipes = [match.start() for match in _PIPE.finditer(text, line.start, line.end)]
    edges = [line.start - 1, *pipes, line.end]
    spans = [_strip_span(text, edge + 1, next_edge) for edge, next_edge in pairwise(edges)]
    # A pipe at the beginning or end of the line borders it.
    first_cell = 1 if spans[0][0] == spans[0][1] else 0
    last_cell = len(spans) - 1 if len(spans) > first_cell + 1 and spans[-1][0] == spans[-1][1] else len(spans)
    return spans[first_cell:last_cell]


def _strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    bare = piece.strip()
    begin = start + len(piece) - len(piece.lstrip()) if bare else end
    return begin, begin + len(bare)
