"""The parser port, its input and its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentic_rag_backend.documents.recognition.base import Recogniser
from agentic_rag_backend.domain.document import AttachmentOptions, CodeRelation, Failure
from agentic_rag_backend.domain.location import Box, Region
from agentic_rag_backend.domain.ole_directory import SIGNATURE

SNIFFED_BYTES = 1024 * 1024
"""Bytes at the beginning of a file that decide its type, and at the end of a ZIP file, where its directory is."""
CHECKED_BYTES = 1024 * 1024
"""Files up to this size are checked completely before they are accepted. Of larger files that are text, only the beginning is."""
_CONTAINERS = (b"PK", b"%PDF-", SIGNATURE)
"""Beginnings of files whose directory may stand at the end. Without it, their title and damage cannot be seen."""


MAX_COLUMNS = 1_000
"""Columns of a table that are read."""
MAX_HEADING_CHARACTERS = 200
"""Characters of a heading in the paths above passages. The text has all of it."""


def sniff_content(content: bytes) -> bytes:
    """Return the bytes of a file that decide its type."""
    if content.startswith(SIGNATURE):  # its directory may be anywhere
        return content
    head = content[:SNIFFED_BYTES]
    return head + content[SNIFFED_BYTES:][-SNIFFED_BYTES:] if head.startswith(b"PK") else head


def checked_part(content: bytes) -> tuple[bytes, bool]:
    """Return the bytes of a file that are checked before it is accepted, and whether these are all."""
    is_whole = len(content) <= CHECKED_BYTES or content.startswith(_CONTAINERS)
    return content if is_whole else content[:CHECKED_BYTES], is_whole


def wide_table(columns: int) -> str:
    """Return the warning about tables with more than `MAX_COLUMNS` columns in the widest one."""
    return f"only the first {MAX_COLUMNS} columns of a table are read; the widest table of the file has {columns}"


def shorten_text(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters. A longer one ends with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the text; ``level`` counts from 1, ``start_char`` is where its line begins."""

    level: int
    title: str
    start_char: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The text to be stored, into which every offset points; never empty, without NUL, lines ended by ``\\n``.

    ``title`` is the one the file gives itself, or None. ``metadata`` holds JSON scalars and lists of them. ``regions`` are the
    places of the text in the file, in order and without overlap; empty if the file has no pages, sheets or boxes. ``language`` is
    the programming language of source code, as `domain.media_types.Format` names it, otherwise None. ``code`` are the relations
    of source code. ``warnings`` tell the owner how the text may differ from the file. With ``failures``, parts of the file could
    not be read, and the document is partial. ``attachments`` is the number of files in it that become documents of their own.
    """

    text: str
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headings: tuple[Heading, ...] = ()
    regions: tuple[Region, ...] = ()
    language: str | None = None
    code: tuple[CodeRelation, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    attachments: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file within another one, such as a message.

    ``place`` is unique there: ``1/report.pdf`` is the first attachment of the name ``report.pdf``, ``2/report.pdf`` the second.
    It stays when other attachments come or go. ``name`` is chosen by the sender and has no folders. ``declared`` is the declared
    media type, with the charset if there is one. ``options`` are those of the attachments within it.
    """

    place: str
    name: str
    declared: str
    content: bytes
    options: AttachmentOptions


@dataclass(frozen=True, slots=True)
class Preview:
    """The result of checking the beginning of a file: the title that the file gives itself, and the text found so far.

    ``text`` may be empty where a format hides its text from a cheap check. The document then has a title of another source.
    """

    title: str | None
    text: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """The part of a page that is shown. ``rotation`` is in degrees, clockwise."""

    box: Box
    rotation: int


class Parser(Protocol):
    """Parses one kind of file. Pure and blocking: called in a child process or a worker thread.

    Every method raises `UnreadableDocument` if the file is not of that kind or contains no text.
    """

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Check a file cheaply at upload. ``head`` is its beginning, or all of it if ``is_whole``."""

    def parse(self, content: bytes) -> ParsedDocument:
        """Parse a whole file."""

    def restore(self, text: str) -> ParsedDocument:
        """Return the parsed document whose stored text is ``text``, without title and metadata, for files that were not kept."""


class PictureParser(Parser, Protocol):
    """`Parser` of files that may contain pictures of text."""

    def with_recogniser(self, recogniser: Recogniser) -> Parser:
        """Return a parser of one file that reads pictures with ``recogniser``."""


class TextParser(Protocol):
    """`Parser` of files that are text: `encodings.decoding_parser` decodes them first."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """See `Parser.check`."""

    def parse(self, text: str) -> ParsedDocument:
        """See `Parser.parse`."""

    def restore(self, text: str) -> ParsedDocument:
        """See `Parser.restore`."""
