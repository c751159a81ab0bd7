"""Lists of short items: "Room: C002" under a name, or "Monday 9 to 12" under "The archive is open on:"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from agentic_rag_backend.language.entries.base import Block, Entry, EntryValue, plain_cell
from agentic_rag_backend.language.entries.lines import Line
from agentic_rag_backend.language.sentences import is_statement, split_sentences

MAX_ITEM_CHARACTERS = 300
"""A list with a longer item is prose."""
MAX_ENTRY_CHARACTERS = 500
"""A longer list is several entries with the same subject."""
MAX_LEAD_CHARACTERS = 400
"""Characters before a list that are searched for the line that introduces it."""
MAX_LEAD_LINES = 3
MAX_SUBJECT_CHARACTERS = 200
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+(?=\S)")
_LABELLED = re.compile(r"[*_]{0,2}([^\W\d_](?:[^\n:|*_.!?;,]|\.(?=\w)){0,48}+)[*_]{0,2}:[*_]{0,2}[ \t]+(?=\S)")
_HEADING = re.compile(r"#{1,6}[ \t]+|(\*\*|__)(?=\S)(?=[^*_]{1,200}\1:?\Z)")
_NAME = re.compile(r"[^\W_](?:[^\s.!?;,|]|\.(?=\S))*+(?: [^\s.!?;,|]++){0,5}\Z")
"""A short line without punctuation, directly above a list."""
_LABEL_WORDS = 6


@dataclass(slots=True)
class _List:
    """Consecutive lines of the same kind and indentation."""

    marked: bool
    indent: int
    lines: list[Line] = field(default_factory=list)
    under: Line | None = None
    """The item of another list that these items belong to."""


def lists_of(text: str, lines: Sequence[Line], taken_spans: Sequence[tuple[int, int]], *, begins: int = 0) -> Iterator[Block]:
    """Yield the lists of ``text`` in order that are not within ``taken_spans``, spans in order.

    Items are short and no statements. Either all have different labels, or a line that ends with a colon introduces them.

    Args:
        begins: start of a line whose indentation is unknown, because a passage begins there; 0 for none.
    """
    for list_found in _find_lists(text, lines, taken_spans, begins):
        block = _make_block(text, list_found)
        if block is not None:
            yield block


def _find_lists(text: str, lines: Sequence[Line], taken_spans: Sequence[tuple[int, int]], begins: int) -> Iterator[_List]:
    current: _List | None = None
    index = 0
    for line in lines:
        while index < len(taken_spans) and taken_spans[index][1] <= line.start:
            index += 1
        inside = line.blank or (index < len(taken_spans) and taken_spans[index][0] <= line.start)
        marker = None if inside else _ITEM.match(text, line.start, line.end)
        if inside or not (marker or _LABELLED.match(text, line.start, line.end)):
            if current is not None:
                yield current
            current = None
            continue
        if current is not None and current.marked == bool(marker) and current.lines[-1].first == begins > 0:
            current.indent = line.indent
        if current is None or current.marked != bool(marker) or current.indent != line.indent:
            under = current.lines[-1] if current and current.marked and marker and line.indent > current.indent else None
            if current is not None:
                yield current
            current = _List(bool(marker), line.indent, under=under)
        current.lines.append(Line(marker.end() if marker else line.start, line.end, line.first, line.last))
    if current is not None:
        yield current


def _make_block(text: str, list_found: _List) -> Block | None:
    pieces = [text[line.start : line.end] for line in list_found.lines]
    if any(len(piece) > MAX_ITEM_CHARACTERS for piece in pieces):
        return None
    labels = [_read_label(piece) for piece in pieces]
    records = len(set(labels)) == len(labels) > 1 and all(labels)
    if any(is_statement(piece) for piece in pieces) or (not records and not list_found.marked):
        return None
    start, subject = _find_introduction(text, list_found, headings=records)
    if not records and not subject:
        return None
    labels_used = labels if records else [""] * len(labels)
    values = [_make_value(line, piece, label) for line, piece, label in zip(list_found.lines, pieces, labels_used, strict=True)]
    values = [value for value in values if value.text]
    if not values:
        return None
    first_offset = list_found.lines[0].first
    begin = first_offset if start is None else text.rfind("\n", 0, start) + 1 if list_found.under or records else start
    entries = partial(_make_entries, values[0].start if start is None else start, subject, values)
    return Block(begin, values[-1].end, first_offset, tuple(line.first for line in list_found.lines[1:]), entries)


def _make_entries(start: int, subject: str, values: Sequence[EntryValue]) -> list[Entry]:
    entries: list[Entry] = []
    entry_values: list[EntryValue] = []
    for value in values:
        if entry_values and value.end - start > MAX_ENTRY_CHARACTERS:
            entries.append(Entry(start, entry_values[-1].end, subject, tuple(entry_values)))
            entry_values, start = [], value.start
        entry_values.append(value)
    return [*entries, Entry(start, entry_values[-1].end, subject, tuple(entry_values))]


def _read_label(piece: str) -> str:
    match = _LABELLED.match(piece)
    label = plain_cell(match[1]) if match else ""
    return label if len(label.split()) <= _LABEL_WORDS else ""


def _make_value(line: Line, piece: str, label: str) -> EntryValue:
    match = _LABELLED.match(piece) if label else None
    start = match.end() if match else 0
    return EntryValue(label, plain_cell(piece[start:]).rstrip(";"), line.start, line.end)


def _find_introduction(text: str, list_found: _List, *, headings: bool) -> tuple[int | None, str]:
    """Return start and text of what introduces a list: the item above it, a sentence with a colon, or its heading."""
    if list_found.under is not None:
        return list_found.under.start, plain_cell(text[list_found.under.start : list_found.under.end]).rstrip(" :")
    first_offset = list_found.lines[0].first
    before = text[max(0, first_offset - MAX_LEAD_CHARACTERS) : first_offset].rstrip()
    offset = max(0, first_offset - MAX_LEAD_CHARACTERS)
    # The sentence may be on several lines, but not in several paragraphs.
    above = before.rfind("\n\n") + 2 if "\n\n" in before else 0
    lead = "\n".join(before[above:].rsplit("\n", MAX_LEAD_LINES)[-MAX_LEAD_LINES:])
    sentence = split_sentences(lead)[-1] if lead.strip() else None
    if sentence is None or sentence.end - sentence.start > MAX_SUBJECT_CHARACTERS:
        return None, ""
    line = before.rfind("\n") + 1
    start = len(before) - len(lead) + sentence.start
    if not sentence.text.rstrip("*_").endswith(":"):
        heading = _HEADING.match(before, line)
        adjacent = len(before) + 1 == first_offset - offset and _NAME.match(before, line)
        if not headings or not (heading or adjacent):
            return None, ""
        start = line if heading is None or heading[1] else heading.end()
    return offset + start, plain_cell(before[start:]).rstrip(" :")
