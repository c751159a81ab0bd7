"""`Parser` of a text format: decodes the file, and reports how, so that the parser of the format reads text only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview, TextParser
from agentic_rag_backend.documents.parsing.encodings.declarations import charset_within
from agentic_rag_backend.documents.parsing.encodings.decoding import Declaration, Decoded, decode_text
from agentic_rag_backend.documents.parsing.encodings.names import UTF8


@dataclass(frozen=True, slots=True)
class DecodingParser:
    """Parser of files of ``media_type``. ``charset`` is the one that the upload declares; it comes before the file's own."""

    inner: TextParser
    media_type: str
    charset: str | None = None

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Decode and check the beginning."""
        source = self._decode_content(head, partial=not is_whole)
        return replace(self.inner.check(source.text, is_whole=is_whole), warnings=source.warnings)

    def parse(self, content: bytes) -> ParsedDocument:
        """Decode and parse a whole file. The metadata has ``encoding`` unless it is UTF-8."""
        source = self._decode_content(content)
        parsed = self.inner.parse(source.text)
        facts = {} if source.encoding == UTF8 else {"encoding": source.encoding}
        return replace(parsed, metadata={**parsed.metadata, **facts}, warnings=(*source.warnings, *parsed.warnings))

    def restore(self, text: str) -> ParsedDocument:
        """Return the document whose text is stored."""
        return self.inner.restore(text)

    def _decode_content(self, content: bytes, *, partial: bool = False) -> Decoded:
        within = charset_within(self.media_type, content)
        declared = [Declaration(name, by) for name, by in ((self.charset, "the upload"), (within, "the file")) if name]
        return decode_text(content, declared, partial=partial)
