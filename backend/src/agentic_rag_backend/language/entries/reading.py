"""Reads the tables and lists of a text, also of a passage that begins within one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.language.entries.base import MAX_HEADER_CHARACTERS, Block, Entry, plain_cell
from agentic_rag_backend.language.entries.delimited import delimited_tables
from agentic_rag_backend.language.entries.lines import lines_of
from agentic_rag_backend.language.entries.lists import lists_of
from agentic_rag_backend.language.entries.markup import markup_tables, pipe_tables
from agentic_rag_backend.language.sentences import Sentence, split_sentences


@dataclass(frozen=True, slots=True)
class EntryReading:
    """The entries of a text, and its sentences outside of tables and lists; both in order."""

    entries: tuple[Entry, ...]
    sentences: tuple[Sentence, ...]


def read_entries(text: str, header: str = "") -> EntryReading:
    """Return the entries and sentences of a passage. All offsets are those of ``text``.

    Args:
        header: the lines that name the columns of the table with which the passage begins, or that introduce its list; empty if
            the passage does not begin within one.
    """
    before = len(header) + 1 if header else 0
    blocks = blocks_of(f"{header}\n{text}" if header else text, begins=before)
    entries = [_move_entry(entry, -before) for block in blocks for entry in block.read() if entry.end > before]
    return EntryReading(
        tuple(entries), tuple(_sentences_outside(text, [(block.start - before, block.end - before) for block in blocks]))
    )


def header_at(text: str, header: str, position: int) -> str:
    """Return the header of the table or list within which the part of a passage from ``position`` begins; empty if in none.

    Args:
        header: of the passage itself.
    """
    if position == 0:
        return header
    before = len(header) + 1 if header else 0
    source = f"{header}\n{text}" if header else text
    return Headers(source, blocks_of(source, begins=before)).header_at(position + before)


def header_text(header: str) -> str:
    """Return the words of a header, without markup and lines of marks."""
    return plain_cell("\n".join(line for line in header.split("\n") if any(map(str.isalnum, line))))


class Headers:
    """Tables and lists of a text, with the places where it may be cut.

    Args:
        blocks: in order.
    """

    def __init__(self, text: str, blocks: Sequence[Block]) -> None:
        self._text = text
        self._blocks = blocks
        self._starts = [block.start for block in blocks]

    def is_whole(self, position: int) -> bool:
        """Return whether ``position`` is outside of tables and lists, or begins a row or item."""
        block = self._find_block(position)
        return block is None or self._begins_at(block, position)

    def is_inside(self, position: int) -> bool:
        """Return whether ``position`` is within a table or list, after its beginning."""
        return self._find_block(position) is not None

    def list_cuts(self, start: int, end: int) -> list[int]:
        """Return the starts of rows and items in [start, end), except the first of each table and list."""
        first_block = max(0, bisect_right(self._starts, start) - 1)
        last_block = bisect_left(self._starts, end)
        return [
            cut
            for block in self._blocks[first_block:last_block]
            for cut in block.cuts[bisect_left(block.cuts, start) : bisect_left(block.cuts, end)]
        ]

    def header_at(self, position: int) -> str:
        """Return the header of the table or list in which a row or item begins at ``position``; otherwise an empty text."""
        block = self._find_block(position)
        if block is None or block.header - block.start > MAX_HEADER_CHARACTERS or not self._begins_at(block, position):
            return ""
        return self._text[block.start : block.header].rstrip()

    def _find_block(self, position: int) -> Block | None:
        index = bisect_left(self._starts, position) - 1
        return self._blocks[index] if index >= 0 and position < self._blocks[index].end else None

    def _begins_at(self, block: Block, position: int) -> bool:
        index = bisect_right(block.cuts, position) - 1
        # A passage does not begin with the white space before an item.
        return index >= 0 and not self._text[block.cuts[index] : position].strip()


def blocks_of(text: str, *, begins: int = 0) -> list[Block]:
    """Return the tables and lists of ``text`` in order, without overlap. The time is linear in its length.

    Args:
        begins: where a passage begins, with the header of its first table or list before it; 0 without one.
    """
    lines = lines_of(text)
    blocks = list(markup_tables(text, 0))
    blocks = join_blocks(blocks, pipe_tables(text, lines, len(blocks)) if "|" in text else ())
    blocks = join_blocks(blocks, delimited_tables(text, lines, len(blocks), is_known=begins > 0 and not blocks))
    return join_blocks(blocks, lists_of(text, lines, [(block.start, block.end) for block in blocks], begins=begins))


def join_blocks(blocks: Sequence[Block], other_blocks: Iterable[Block]) -> list[Block]:
    """Return all blocks in order, without those of ``other_blocks`` that overlap ``blocks``."""
    blocks_found: list[Block] = []
    index = 0
    for other_block in other_blocks:
        while index < len(blocks) and blocks[index].end <= other_block.start:
            blocks_found.append(blocks[index])
            index += 1
        if index == len(blocks) or other_block.end <= blocks[index].start:
            blocks_found.append(other_block)
    return [*blocks_found, *blocks[index:]]


def _move_entry(entry: Entry, by: int) -> Entry:
    values = tuple(value._replace(start=value.start + by, end=value.end + by) for value in entry.values)
    start = entry.start + by
    return replace(entry, start=start if start >= 0 or not values else values[0].start, end=entry.end + by, values=values)


def _sentences_outside(text: str, spans: Sequence[tuple[int, int]]) -> Iterable[Sentence]:
    """Yield the sentences of ``text`` outside of ``spans``, in order."""
    at = 0
    for start, end in [*spans, (len(text), len(text))]:
        if start > at:
            for sentence in split_sentences(text[at:start]):
                yield Sentence(sentence.start + at, sentence.end + at, sentence.text)
        at = max(at, end)
