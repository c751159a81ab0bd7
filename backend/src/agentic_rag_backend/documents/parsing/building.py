"""Builds the text of a document from the parts of a file, with headings and regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentic_rag_backend.documents.parsing.base import (
    MAX_COLUMNS,
    MAX_HEADING_CHARACTERS,
    Heading,
    ParsedDocument,
    shorten_text,
    wide_table,
)
from agentic_rag_backend.documents.parsing.omissions import Omissions
from agentic_rag_backend.domain.location import Region
from agentic_rag_backend.domain.size_limits import make_storable
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.language.unspaced import remove_invisible

MAX_CHARACTERS_PER_BYTE = 8
"""Characters of text for each byte of a file, whose containers are unzipped. Files of the example corpora have at most 1.2. More
come from cells that are repeated, and from empty cells."""
UNLIMITED_CHARACTERS = 100_000
"""A text of this length may come from a file of any size."""
MAX_EMPTY_SHARE = 0.75
"""Rows of a table with a larger share of empty cells are not filled up to its width."""

_UNSAFE_IN_CELL = str.maketrans({"\n": " ", "\t": " ", "|": "\\|"})


class TextBuilder:
    """Collects blocks of text, which a blank line separates. White space at the ends of a block is removed.

    The keyword arguments ``where`` of each method are fields of `Region`, such as ``page=3``: the place of the added text in the
    file. Without one, the text has no region.
    """

    def __init__(self, size_bytes: int | None = None) -> None:
        """Create a builder.

        Args:
            size_bytes: size of the file, which limits its text. None: the text has no limit.
        """
        self.size_bytes = size_bytes
        self.omissions = Omissions()
        """What the parser leaves out; `build` adds it to the warnings."""
        self._widest = 0
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._regions: list[Region] = []

    def add_paragraph(self, text: str, **where: Any) -> None:
        """Add a block. A text without visible characters adds nothing."""
        self.add_lines([(text, where)])

    def add_heading(self, level: int, title: str, **where: Any) -> None:
        """Add a block that is a heading. ``level`` counts from 1."""
        plain = " ".join(_clean_text(title).split())
        if plain:
            start = self._next_block()
            self._headings.append(Heading(level, shorten_text(plain, MAX_HEADING_CHARACTERS), start))
            self.add_lines([(plain, where)])

    def add_lines(self, lines: Sequence[tuple[str, Mapping[str, Any]]], *, joins: Sequence[str] = ()) -> None:
        """Add a block of lines, each with its own place. ``joins[i]`` follows line ``i``, a line break if there is none."""
        between = "\n\n"
        for number, (line, where) in enumerate(lines):
            text = _clean_text(line).strip()
            if text:
                self._append_text(text, where, between=between)
                between = joins[number] if number < len(joins) else "\n"

    def add_table(self, rows: Sequence[Sequence[str]], places: Sequence[Mapping[str, Any]] = (), *, header: bool = True) -> None:
        """Add a table in Markdown, a row a line. The first row is its header, unless ``header`` is false.

        Columns beyond `MAX_COLUMNS` are left out, and the document has a warning.
        """
        widest = max(map(len, rows), default=0)
        self._widest = max(self._widest, widest)
        if widest > MAX_COLUMNS:
            rows = [row[:MAX_COLUMNS] for row in rows]
        filled = [[cell.strip() for cell in row] if _is_plain(row) else [_format_cell(cell) for cell in row] for row in rows]
        width = max((len(row) for row in filled), default=0)
        if not width or not any(any(row) for row in filled):
            return
        where: Sequence[Mapping[str, Any]] = places or [{}] * len(filled)
        full = sum(len(row) - row.count("") for row in filled) >= (1 - MAX_EMPTY_SHARE) * width * len(filled)
        row_width = width if full else 0
        lines = [
            (_format_row(row, row_width if number else width), location)
            for number, (row, location) in enumerate(zip(filled, where, strict=True))
        ]
        rule: tuple[str, Mapping[str, Any]] = (_format_row(["---"] * width, width), {})
        lines = [lines[0], rule, *lines[1:]] if header else [(_format_row([""] * width, width), {}), rule, *lines]
        self._add_block(lines)

    def add_document(self, parsed: ParsedDocument, *, level: int) -> None:
        """Add the text of another file, ``level`` headings deeper. Its regions are places in that file and are left out."""
        start = self._next_block()
        self._headings += [
            replace(heading, level=heading.level + level, start_char=start + heading.start_char) for heading in parsed.headings
        ]
        self._append_text(parsed.text.rstrip(), {}, between="\n\n")

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def build(self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None) -> ParsedDocument:
        """Return the document.

        Raises:
            UnreadableDocument: nothing was added.
        """
        if not self._parts:
            raise UnreadableDocument("the document contains no text")
        return ParsedDocument(
            text=self.text,
            title=" ".join(make_storable(title).split()) or None if title else None,
            metadata=dict(metadata or {}),
            headings=tuple(self._headings),
            regions=tuple(self._regions),
            warnings=(*((wide_table(self._widest),) if self._widest > MAX_COLUMNS else ()), *self.omissions.list_warnings()),
        )

    def _add_block(self, lines: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        for number, (text, where) in enumerate(lines):
            self._append_text(text, where, between="\n" if number else "\n\n")

    def _next_block(self) -> int:
        return self._length + 2 if self._parts else 0

    def _append_text(self, text: str, where: Mapping[str, Any], *, between: str) -> None:
        if self._parts:
            self._parts.append(between)
            self._length += len(between)
        if where:
            self._regions.append(Region(self._length, self._length + len(text), **where))
        self._parts.append(text)
        self._length += len(text)
        if self.size_bytes is not None and self._length > max(UNLIMITED_CHARACTERS, MAX_CHARACTERS_PER_BYTE * self.size_bytes):
            raise ResourceLimit(
                f"the file of {self.size_bytes} bytes has more than {MAX_CHARACTERS_PER_BYTE} characters of text for each byte, "
                f"which is the limit above {UNLIMITED_CHARACTERS} characters: it repeats cells or names, or its tables are "
                "almost empty"
            )


def _clean_text(text: str) -> str:
    r"""Return a text that can be stored, without marks that have no width, with lines ended by ``\n``."""
    return make_storable(remove_invisible(text.replace("\r\n", "\n").replace("\r", "\n")))


def _is_plain(row: Sequence[str]) -> bool:
    """Return whether a row's cells can be written as they are. Most rows can, and one search is cheaper than one a cell."""
    joined = "".join(row)
    return joined.isascii() and joined.isprintable() and "|" not in joined


def _format_cell(text: str) -> str:
    return _clean_text(text).strip().translate(_UNSAFE_IN_CELL)


def _format_row(cells: Sequence[str], width: int) -> str:
    """Return a row of ``width`` cells. 0: without the empty cells at its end."""
    if width:
        return f"| {' | '.join([*cells, *[''] * (width - len(cells))])} |"
    last_column = next((index for index in range(len(cells), 0, -1) if cells[index - 1]), 1)
    return f"| {' | '.join(cells[:last_column])} |"
