"""Tables of values that commas, semicolons or tabs separate (RFC 4180), with a record on each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from agentic_rag_backend.language.entries.base import (
    MAX_COLUMNS,
    MAX_HEADER_CHARACTERS,
    Block,
    Entry,
    names_columns,
    plain_cell,
    row_of,
)
from agentic_rag_backend.language.entries.lines import Line, line_above

DELIMITERS = ("\t", ";", ",")
_FEW = 2
"""Columns of a table that needs two rows to be recognised."""
Span = tuple[int, int]


def delimited_tables(text: str, lines: Sequence[Line], first_table: int, *, is_known: bool) -> Iterator[Block]:
    """Yield the tables of ``text`` in order.

    A table has a line of names and lines with as many values. No name of a column begins with a space, as words after a comma
    do.

    Args:
        is_known: the first line is the header of a table.
    """
    number, index = first_table, 0
    while index + 1 < len(lines):
        header_found = _find_header(text, lines, index, is_known=is_known and index == 0)
        if header_found is None:
            index += 1
            continue
        delimiter, labels = header_found
        header = index
        index += 1
        if is_known and index == 1 and not _as_wide(text, lines[1], delimiter, len(labels)):
            index += 1  # the text was cut within a row, or before its first value
        first_row = index
        while index < len(lines) and _as_wide(text, lines[index], delimiter, len(labels)):
            index += 1
        if index > first_row:
            rows = lines[first_row:index]
            read_entries = partial(_make_entries, text, lines, header, rows, header_found, number)
            yield Block(lines[header].start, rows[-1].end, lines[header].end, tuple(row.start for row in rows[1:]), read_entries)
            number += 1


def _make_entries(
    text: str,
    lines: Sequence[Line],
    header: int,
    rows: Sequence[Line],
    delimiter_and_labels: tuple[str, Sequence[str]],
    number: int,
) -> list[Entry]:
    context = line_above(text, lines, header)
    delimiter, labels = delimiter_and_labels
    spans = (_as_wide(text, row, delimiter, len(labels)) for row in rows)
    cells = ([(unquote_field(text[start:end]), start, end) for start, end in row_spans] for row_spans in spans)
    return [
        row_of(row.start, row.end, labels, row_cells, table=number, context=context)
        for row, row_cells in zip(rows, cells, strict=True)
    ]


def _find_header(text: str, lines: Sequence[Line], index: int, *, is_known: bool) -> tuple[str, list[str]] | None:
    """Return the delimiter and the names of the columns if a table begins at line ``index``."""
    line = lines[index]
    if not 0 < line.end - line.start <= MAX_HEADER_CHARACTERS or "|" in text[line.start : line.end]:
        return None
    for delimiter in DELIMITERS:
        below = lines[index + 1]
        if not is_known and text.count(delimiter, below.first, below.last) < text.count(delimiter, line.first, line.last):
            continue
        spans = fields_of(text, line, delimiter)
        if not 1 < len(spans) <= MAX_COLUMNS:
            continue
        labels = [unquote_field(text[start:end]) for start, end in spans]
        spaced = any(text[start : start + 1].isspace() for start, _ in spans)
        if not names_columns(labels) or (spaced and not is_known):
            continue
        least = 1 if len(labels) > _FEW or delimiter == "\t" else 2
        rows = lines[index + 1 : index + 1 + least] if not is_known else []
        least = 0 if is_known else least
        if len(rows) == least and all(_as_wide(text, row, delimiter, len(labels)) for row in rows):
            return delimiter, labels
    return None


def _as_wide(text: str, line: Line, delimiter: str, columns: int) -> list[Span]:
    """Return the spans of a line's values if it has one for each column."""
    spans = fields_of(text, line, delimiter) if not line.blank else []
    if delimiter == "\t" and line.last == len(text) and 1 < len(spans) < columns:
        # A passage does not end with white space. Its last row may lack empty values.
        spans += [(line.last, line.last)] * (columns - len(spans))
    return spans if len(spans) == columns else []


def fields_of(text: str, line: Line, delimiter: str) -> list[Span]:
    """Return the spans of a line's values, with their quotation marks; none if a quotation does not end."""
    spans: list[Span] = []
    at, line_end = line.first, line.last
    while True:
        end = _quoted_end(text, at, line_end) if text.startswith('"', at, line_end) else text.find(delimiter, at, line_end)
        end = line_end if end < 0 else end
        if end > line_end or (end < line_end and text[end] != delimiter):
            return []
        spans.append((at, end))
        if end == line_end:
            return spans
        at = end + 1


def _quoted_end(text: str, start: int, end: int) -> int:
    """Return the end of a quoted value; ``last + 1`` if it does not end."""
    at = start + 1
    while (at := text.find('"', at, end)) >= 0:
        if not text.startswith('""', at, end):
            return at + 1
        at += 2
    return end + 1


def unquote_field(field: str) -> str:
    """Return the text of a value."""
    bare = field.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == '"':
        bare = bare[1:-1].replace('""', '"')
    return plain_cell(bare)
