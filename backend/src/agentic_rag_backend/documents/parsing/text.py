"""Plain text: the text as it is written."""

from __future__ import annotations

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview


class PlainTextParser:
    """Parser of plain text."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Return the beginning; plain text has no title of its own."""
        return Preview(title=None, text=head)

    def parse(self, text: str) -> ParsedDocument:
        """Return ``text``; it has no structure."""
        return ParsedDocument(text=text)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``."""
        return ParsedDocument(text=text)
