"""Media types of documents, with their file name suffixes and aliases. `ingestion.parsing.registry` has a parser for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from agentic_rag_backend.errors import UnsupportedMediaType

TEXT = "text/plain"
MARKDOWN = "text/markdown"
CSV = "text/csv"


@dataclass(frozen=True, slots=True)
class Format:
    """Names of one media type. The first suffix is used for files that are written."""

    suffixes: tuple[str, ...]
    aliases: tuple[str, ...] = ()


FORMATS: Mapping[str, Format] = {
    TEXT: Format(suffixes=(".txt", ".text")),
    MARKDOWN: Format(suffixes=(".md", ".markdown"), aliases=("text/x-markdown",)),
    CSV: Format(suffixes=(".csv", ".tsv"), aliases=("text/tab-separated-values", "application/csv")),
}
BY_SUFFIX: Mapping[str, str] = {suffix: name for name, each in FORMATS.items() for suffix in each.suffixes}
_BY_ALIAS: Mapping[str, str] = {alias: name for name, each in FORMATS.items() for alias in each.aliases}
_UNSPECIFIC = frozenset({"", "application/octet-stream", "binary/octet-stream", TEXT})
"""Media types that clients send for unknown files. The suffix of the name decides."""


def media_type_of(declared: str | None, file_name: str | None) -> str:
    """Return the media type to parse by, from the declared type and the file name; text if both are missing.

    Raises:
        UnsupportedMediaType: no parser reads it; the message lists the supported types.
    """
    given = (declared or "").partition(";")[0].strip().lower()
    given = _BY_ALIAS.get(given, given)
    suffix = PurePath((file_name or "").replace("\\", "/")).suffix.lower()
    if given not in _UNSPECIFIC:
        if given in FORMATS:
            return given
        raise unsupported(given)
    if suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    if given == TEXT or (not given and not suffix):
        return TEXT
    raise unsupported(suffix or given)


def unsupported(given: str) -> UnsupportedMediaType:
    """Return the error for a media type or suffix that no parser reads."""
    known = ", ".join(f"{name} ({', '.join(each.suffixes)})" for name, each in FORMATS.items())
    return UnsupportedMediaType(f"documents of type {given!r} cannot be read; supported are {known}")
