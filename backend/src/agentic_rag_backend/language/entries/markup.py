"""Tables of markup: HTML, where cells may span rows and columns, and Markdown."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from agentic_rag_backend.language.entries.base import (
    MAX_COLUMNS,
    MAX_HEADER_CHARACTERS,
    Block,
    Entry,
    EntryValue,
    names_columns,
    plain_cell,
    row_of,
)
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


MAX_SPAN = 200
"""Most rows or columns that a cell spans."""
_ELEMENT = re.compile(r"<(/?)(table|caption|thead|tbody|tfoot|tr|th|td)\b([^<>]*+)>", re.IGNORECASE)
_SPANNED = re.compile(r"\b(row|col)span\s*+=\s*+[\"']?(\d{1,3})", re.IGNORECASE)


@dataclass(slots=True)
class _Cell:
    start: int
    end: int
    text: str
    head: bool
    columns: int = 1
    rows: int = 1


@dataclass(slots=True)
class _Row:
    start: int
    end: int
    head: bool
    cells: list[_Cell] = field(default_factory=list)
    open_below: bool = False
    """Whether one of its cells spans the next row, too."""

    @property
    def names(self) -> bool:
        """Whether all its cells are header cells."""
        return bool(self.cells) and (self.head or all(cell.head for cell in self.cells))


def markup_tables(text: str, first_table: int) -> Iterator[Block]:
    """Yield the tables of ``text`` in order. A table that does not end reaches to the end of its last row."""
    if "<t" not in text and "<T" not in text:
        return
    number = first_table
    for start, end, elements in _find_tables(text):
        caption, rows = _read_rows(text, elements, end)
        _fill_spans(rows)
        block = _make_block(start, end, caption, rows, number)
        if block is not None:
            yield block
            number += 1


def _find_tables(text: str) -> Iterator[tuple[int, int, list[re.Match[str]]]]:
    """Yield start, end and elements of the outer tables."""
    depth, start = 0, 0
    elements: list[re.Match[str]] = []
    for match in _ELEMENT.finditer(text):
        name, closing = match[2].casefold(), bool(match[1])
        if name == "table":
            if not closing and depth == 0:
                start, elements = match.start(), []
            depth = max(0, depth + (-1 if closing else 1))
            if closing and depth == 0 and elements:
                yield start, match.end(), elements
                elements = []
        elif depth == 1:
            elements.append(match)
    if depth and elements:
        yield start, len(text), elements


def _read_rows(text: str, elements: Sequence[re.Match[str]], end: int) -> tuple[str, list[_Row]]:
    """Return the caption and the rows. An element ends where the next one begins, whether it is closed or not."""
    caption, head = "", False
    rows: list[_Row] = []
    for match, after in zip(elements, [*(element.start() for element in elements[1:]), end], strict=True):
        name, closing = match[2].casefold(), bool(match[1])
        if name in ("thead", "tbody", "tfoot"):
            head = name == "thead" and not closing
        elif name == "caption" and not closing:
            caption = plain_cell(text[match.end() : min(after, match.end() + MAX_HEADER_CHARACTERS)])
        elif name == "tr" and not closing:
            rows.append(_Row(match.start(), match.end(), head))
        elif name == "tr" and rows:
            rows[-1].end = match.end()
        elif name in ("th", "td") and not closing and rows:
            rows[-1].cells.append(_read_cell(text, match, after))
            rows[-1].end = max(rows[-1].end, match.end() + len(text[match.end() : after].rstrip()))
        elif name in ("th", "td") and rows:
            rows[-1].end = max(rows[-1].end, match.end())
    return caption, [row for row in rows if row.cells]


def _read_cell(text: str, match: re.Match[str], after: int) -> _Cell:
    spans = {kind.casefold(): max(1, min(MAX_SPAN, int(size))) for kind, size in _SPANNED.findall(match[3])}
    piece = text[match.end() : after].split("</table", 1)[0]
    start = match.end() + len(piece) - len(piece.lstrip())
    bare = piece.strip()
    head = match[2].casefold() == "th"
    return _Cell(start, start + len(bare), plain_cell(bare), head, spans.get("col", 1), spans.get("row", 1))


def _fill_spans(rows: Sequence[_Row]) -> None:
    """Repeat cells in the columns and rows that they span, at most `MAX_COLUMNS` in a row."""
    spanning: dict[int, tuple[int, _Cell]] = {}
    for row in rows:
        filled: list[_Cell] = []
        row_cells = deque(row.cells)
        below: dict[int, tuple[int, _Cell]] = {}
        while (row_cells or len(filled) in spanning) and len(filled) < MAX_COLUMNS:
            column = len(filled)
            if column in spanning:
                rows_left, above = spanning[column]
                filled.append(above)
                if rows_left > 1:
                    below[column] = (rows_left - 1, above)
                continue
            cell = row_cells.popleft()
            for covered_column in range(column, min(column + cell.columns, MAX_COLUMNS)):
                filled.append(cell)
                if cell.rows > 1:
                    below[covered_column] = (cell.rows - 1, cell)
        spanning, row.cells, row.open_below = below, filled, bool(below)


def _make_block(start: int, end: int, caption: str, rows: list[_Row], number: int) -> Block | None:
    head = 0
    while head < len(rows) and rows[head].names:
        head += 1
    if head == 0 and len(rows) > 1 and not rows[0].cells[0].head and names_columns([cell.text for cell in rows[0].cells]):
        head = 1
    if head == 0:
        return _make_record_block(start, end, caption, rows) if rows else None
    if len(rows) == head:
        return None
    header = rows[head - 1].end
    if header - start > MAX_HEADER_CHARACTERS:
        return None
    width = max(len(row.cells) for row in rows[:head])
    labels = [_join_labels(rows[:head], column) for column in range(width)]
    body = rows[head:]
    cuts = tuple(row.start for before, row in pairwise(body) if not before.open_below)
    return Block(start, end, header, cuts, lambda: [_make_entry(row, labels, number, caption) for row in body])


def _join_labels(rows: Sequence[_Row], column: int) -> str:
    """Return the names above a column, each once, from the top."""
    return " ".join(dict.fromkeys(row.cells[column].text for row in rows if column < len(row.cells) and row.cells[column].text))


def _make_entry(row: _Row, labels: Sequence[str], number: int, caption: str) -> Entry:
    cells = [(cell.text, cell.start, cell.end) for cell in row.cells]
    return row_of(row.start, row.end, labels, cells, table=number, context=caption)


def _make_record_block(start: int, end: int, caption: str, rows: Sequence[_Row]) -> Block | None:
    """Return a table of names and values, such as an information box: a header cell and another one in each row."""
    pairs = [row.cells for row in rows if len(row.cells) == 2 and row.cells[0].head and not row.cells[1].head]
    if len(pairs) * 2 <= len(rows):
        return None
    values = tuple(EntryValue(name.text.rstrip(":"), cell.text, cell.start, cell.end) for name, cell in pairs if cell.text)
    return Block(start, end, rows[0].start, (), lambda: [Entry(start, end, caption, values)])
