"""The result of parsing a file: one text and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the text; ``level`` counts from 1, ``start_char`` is where its line begins."""

    level: int
    title: str
    start_char: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The text to be stored, into which every offset points; never empty, without NUL, lines ended by ``\\n``.

    ``title`` is the one the file gives itself, or None. ``metadata`` holds JSON scalars and lists of them.
    """

    text: str
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headings: tuple[Heading, ...] = ()


class Parser(Protocol):
    """Parses one kind of file. Pure and blocking: called in a worker thread."""

    def __call__(self, content: bytes, *, partial: bool = False) -> ParsedDocument:
        """Parse ``content``; ``partial``: it is only the beginning of a file, which is judged by what is there.

        Raises:
            UnreadableDocument: it is not a file of that kind, or holds no text.
        """
