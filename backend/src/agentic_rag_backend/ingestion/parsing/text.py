"""Plain text: bytes of a known encoding, or an error that says which byte is wrong."""

from __future__ import annotations

import codecs
import re

from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview

MAX_CONTROL_SHARE = 0.1
"""Largest share of control characters in a text. Prose has none."""
STRAY_CONTROLS = 8
"""Number of control characters that any text may contain."""

# The longer marks first: UTF-32's begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
_SAMPLE_CHARACTERS = 65_536
_VISIBLE = re.compile(r"[^\s\u00ad\u200b-\u200d\u2060\ufeff]")


class TextParser:
    """Parser of plain text."""

    def check(self, head: bytes, *, whole: bool) -> Preview:
        """Decode the beginning; plain text has no title of its own."""
        return Preview(title=None, text=decode(head, partial=not whole))

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the text of ``content``."""
        return ParsedDocument(text=decode(content))

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; it has no structure."""
        return ParsedDocument(text=text)


def decode(content: bytes, *, partial: bool = False, declared: str = "utf-8") -> str:
    """Return the text of UTF-8, or of UTF-16 or UTF-32 with a byte order mark; NUL removed, lines ended by ``\\n``.

    ``declared`` is the name of the encoding that the file itself declares. A byte order mark is believed before it.

    Raises:
        UnreadableDocument: the bytes are of another kind, not valid in their encoding, or hold nothing to read.
    """
    mark, encoding = next(((mark, name) for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), (b"", declared))
    try:
        text = codecs.getincrementaldecoder(encoding)("strict").decode(content[len(mark) :], final=not partial)
    except UnicodeDecodeError as error:
        offset = error.start + len(mark)
        raise UnreadableDocument(
            f"the text is not valid {encoding.upper()}: byte 0x{content[offset]:02x} at offset {offset}; "
            "save it as UTF-8 (UTF-16 and UTF-32 need a byte order mark)"
        ) from None
    sample = text[:_SAMPLE_CHARACTERS]
    controls = len(_CONTROL.findall(sample))
    if controls > max(STRAY_CONTROLS, MAX_CONTROL_SHARE * len(sample)):
        raise UnreadableDocument(
            f"the file is not text: {controls} of its first {len(sample)} characters are control characters "
            f"(limit {MAX_CONTROL_SHARE:.0%})"
        )
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    if not _VISIBLE.search(text):
        raise UnreadableDocument("the document contains no text")
    return text
