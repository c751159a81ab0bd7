"""Values between commas, semicolons or tabs: the text as it is written, with each record on one line."""

from __future__ import annotations

from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.parsing.text import PlainTextParser

_BEFORE_QUOTES = frozenset(",;\t\n")


class DelimitedParser(PlainTextParser):
    """Parser of CSV and TSV (RFC 4180). The document is the whole table; line breaks within quoted values become spaces."""

    def parse(self, text: str) -> ParsedDocument:
        """Return ``text`` with a record a line."""
        return ParsedDocument(text=_on_one_line_each(text))


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
