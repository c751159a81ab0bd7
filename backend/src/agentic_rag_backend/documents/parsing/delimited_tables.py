"""Values between commas, semicolons or tabs: the text as it is written, with each record on one line."""

from __future__ import annotations

from agentic_rag_backend.documents.parsing.base import MAX_COLUMNS, ParsedDocument, wide_table
from agentic_rag_backend.documents.parsing.text import PlainTextParser
from agentic_rag_backend.language.entries.delimited import DELIMITERS, fields_of
from agentic_rag_backend.language.entries.lines import Line, lines_of

_BEFORE_QUOTES = frozenset(",;\t\n")


class DelimitedParser(PlainTextParser):
    """Parser of CSV and TSV (RFC 4180). The document is the whole table; line breaks within quoted values become spaces.

    Columns beyond `MAX_COLUMNS` are left out.
    """

    def parse(self, text: str) -> ParsedDocument:
        """Return ``text`` with a record a line."""
        return _without_far_columns(_on_one_line_each(text))


def _without_far_columns(text: str) -> ParsedDocument:
    """Return the document of a text without the values beyond `MAX_COLUMNS`."""
    if max(map(text.count, DELIMITERS)) < MAX_COLUMNS:
        return ParsedDocument(text=text)
    lines = lines_of(text)
    header = next((line for line in lines if not line.blank), lines[0])
    delimiter = max(DELIMITERS, key=lambda mark: text.count(mark, header.first, header.last))
    lines_kept, widest = [], 0
    for line in lines:
        end, columns = _end_of_columns(text, line, delimiter)
        lines_kept.append(text[line.first : end])
        widest = max(widest, columns)
    if widest <= MAX_COLUMNS:
        return ParsedDocument(text=text)
    return ParsedDocument(text="\n".join(lines_kept), warnings=(wide_table(widest),))


def _end_of_columns(text: str, line: Line, delimiter: str) -> tuple[int, int]:
    """Return where the last value ends that is kept of a line, and the number of its values."""
    if text.count(delimiter, line.first, line.last) < MAX_COLUMNS:
        return line.last, 0
    fields = fields_of(text, line, delimiter)
    if fields:
        return fields[:MAX_COLUMNS][-1][1], len(fields)
    values = text[line.first : line.last].split(delimiter)  # a quotation does not end
    return line.first + len(delimiter.join(values[:MAX_COLUMNS])), len(values)


def _on_one_line_each(text: str) -> str:
    """Return the text without line breaks in quoted values; unchanged if a quotation mark does not begin or end a value."""
    parts = text.split('"')
    if len(parts) % 2 == 0:
        return text
    for inside in range(1, len(parts), 2):
        before = parts[inside - 1]
        if before and before[-1] not in _BEFORE_QUOTES:
            return text
        parts[inside] = parts[inside].replace("\n", " ")
    return '"'.join(parts)
