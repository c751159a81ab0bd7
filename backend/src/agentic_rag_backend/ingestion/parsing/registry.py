"""Selection of the parser for a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath

from agentic_rag_backend.domain.limits import MAX_TITLE_CHARACTERS, storable
from agentic_rag_backend.errors import UnsupportedMediaType
from agentic_rag_backend.ingestion.parsing.base import Heading, ParsedDocument, Parser
from agentic_rag_backend.ingestion.parsing.markdown import headings_of, parse_markdown
from agentic_rag_backend.ingestion.parsing.text import parse_text

TEXT = "text/plain"
MARKDOWN = "text/markdown"

PARSERS: Mapping[str, Parser] = {TEXT: parse_text, MARKDOWN: parse_markdown}
_HEADINGS: Mapping[str, Callable[[str], Iterable[Heading]]] = {MARKDOWN: headings_of}
SUFFIXES: Mapping[str, str] = {".txt": TEXT, ".text": TEXT, ".md": MARKDOWN, ".markdown": MARKDOWN}
_ALIASES = {"text/x-markdown": MARKDOWN}
_UNSPECIFIC = frozenset({"", "application/octet-stream", "binary/octet-stream", TEXT})
"""Media types that clients send for unknown files. The suffix of the name decides."""

_LINE_AS_TITLE_CHARACTERS = 80


def media_type_of(media_type: str | None, file_name: str | None) -> str:
    """Return the media type to parse by, from the declared type and the file name; text if both are missing.

    Raises:
        UnsupportedMediaType: no parser reads it; the message lists the supported types.
    """
    declared = (media_type or "").partition(";")[0].strip().lower()
    declared = _ALIASES.get(declared, declared)
    suffix = PurePath((file_name or "").replace("\\", "/")).suffix.lower()
    if declared not in _UNSPECIFIC:
        if declared in PARSERS:
            return declared
        raise _unsupported(declared)
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if declared == TEXT or (not declared and not suffix):
        return TEXT
    raise _unsupported(suffix or declared)


def parse(content: bytes, media_type: str, *, partial: bool = False) -> ParsedDocument:
    """Parse ``content`` as ``media_type`` (one that `media_type_of` returned).

    Raises:
        UnsupportedMediaType: no parser reads it.
        UnreadableDocument: the content is not of that type, or holds no text.
    """
    if media_type not in PARSERS:
        raise _unsupported(media_type)
    return PARSERS[media_type](content, partial=partial)


def parse_stored(text: str, media_type: str) -> ParsedDocument:
    """Return what `parse` made of a document whose text is ``text``, without the title and metadata that it gave itself."""
    headings = _HEADINGS.get(media_type)
    return ParsedDocument(text=text, headings=tuple(headings(text)) if headings else ())


def title_of(parsed: ParsedDocument, file_name: str | None) -> str:
    """Return the title a document has where its owner gives none: its own, the file's name, or its first line."""
    stem = PurePath((file_name or "").replace("\\", "/")).stem.strip()
    if parsed.title or stem:
        return storable(parsed.title or stem)[:MAX_TITLE_CHARACTERS]
    line = next(line for line in map(str.strip, parsed.text.splitlines()) if line)
    if len(line) <= _LINE_AS_TITLE_CHARACTERS:
        return line
    return line[: _LINE_AS_TITLE_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip() + "…"


def _unsupported(given: str) -> UnsupportedMediaType:
    known = ", ".join(f"{name} ({', '.join(suffix for suffix, of in SUFFIXES.items() if of == name)})" for name in PARSERS)
    return UnsupportedMediaType(f"documents of type {given!r} cannot be read; supported are {known}")
