"""The units of a passage that may answer a question, and the window of text that makes one understood.

A unit is a sentence, a row of a table, an item of a list, or the line that introduces a list. A window is a unit with what
belongs to it: the items of its list, the sentence that "she" refers to, or the next sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.language.entries.base import Entry, sentence_of
from agentic_rag_backend.language.entries.reading import read_entries
from agentic_rag_backend.language.independence import refers_back
from agentic_rag_backend.language.sentences import Sentence

UnitKind = Literal["sentence", "heading", "row", "item", "opening"]
WRAPPED_CHARACTERS = 45
"""Length from which a line is wrapped prose that continues on the next line. A shorter line is a unit of its own."""
SHORT_CHARACTERS = 60
"""Length below which a sentence is quoted with the one before it."""
PREVIOUS_CHARACTERS = 200
"""Longest previous sentence that a window includes."""
WINDOW_CHARACTERS = 300
"""Length of a window up to which the next sentence is included."""
LIST_CHARACTERS = 600
"""Length up to which a list is quoted whole."""


@dataclass(frozen=True, slots=True)
class Unit:
    """``passage.text[start:end]``.

    ``text`` states the unit: a row has the names of its columns. ``block`` is the number of its table or list, None for a
    sentence. ``context`` is the line above its table, or the line that introduces its list.
    """

    kind: UnitKind
    start: int
    end: int
    text: str
    block: int | None = None
    context: str = ""

    @property
    def in_context(self) -> str:
        """The text that is compared with a question. An item is about what introduces its list."""
        return f"{self.context}: {self.text}" if self.kind == "item" and self.context else self.text


@dataclass(frozen=True, slots=True)
class Window:
    """Units ``first`` to ``last`` (included) of a passage: ``passage.text[start:end]``. ``text`` is what an answer writes."""

    first: int
    last: int
    start: int
    end: int
    text: str


def units_of(text: str, header: str = "") -> list[Unit]:
    """Return the units of a passage in order.

    Args:
        header: see `read_entries`.
    """
    reading = read_entries(text, header)
    units = [unit for number, entry in enumerate(reading.entries) for unit in _units_of_entry(text, entry, number)]
    for sentence in reading.sentences:
        kind: UnitKind = "heading" if text[: sentence.start].rstrip(" \t").endswith("#") else "sentence"
        units += [Unit(kind, start, end, " ".join(text[start:end].split())) for start, end in _split_lines(text, sentence)]
    return sorted(units, key=lambda unit: (unit.start, unit.end))


def _units_of_entry(text: str, entry: Entry, number: int) -> Iterator[Unit]:
    if entry.table is not None:
        # Tables and lists have numbers of their own; those of tables are negative.
        yield Unit("row", max(0, entry.start), entry.end, sentence_of(entry), -1 - entry.table, entry.context)
        return
    opening = text.find(entry.subject, max(0, entry.start), entry.end) if entry.subject else -1
    if opening >= 0:
        yield Unit("opening", opening, opening + len(entry.subject), entry.subject, number)
    for value in entry.values:
        if value.start >= 0:
            yield Unit("item", value.start, value.end, str(value), number, entry.subject)


def _split_lines(text: str, sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Yield the spans of a sentence, or of each of its lines if they are not wrapped prose, such as the lines of a form."""
    start = position = sentence.start
    lines = text[sentence.start : sentence.end].split("\n")
    for number, line in enumerate(lines):
        end = position + len(line)
        position = end + 1
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if following and (len(line.rstrip()) >= WRAPPED_CHARACTERS or following[0].islower()):
            continue
        if text[start:end].strip():
            yield start, end
        start = position


def window_of(units: Sequence[Unit], number: int, excluded: Collection[int] = ()) -> Window:
    """Return the window of the unit at place ``number`` of a passage's ``units``, without the ``excluded`` ones."""
    start, end = _bounds_of_window(units, number)
    while any(index in excluded for index in range(start, number)):
        start += 1
    while any(index in excluded for index in range(number + 1, end + 1)):
        end -= 1
    unit = units[number]
    if start == end:
        return Window(number, number, unit.start, unit.end, unit.in_context)
    return _make_window(units, start, end)


def _bounds_of_window(units: Sequence[Unit], number: int) -> tuple[int, int]:
    """Return the first and the last unit of the window of a unit."""
    unit = units[number]
    if unit.kind == "row":
        return number, number
    if unit.kind in ("item", "opening"):
        return _of_list(units, number)
    start = end = number
    length = len(unit.text)
    before = units[number - 1] if number else None
    leans = unit.kind == "sentence" and (length < SHORT_CHARACTERS or refers_back(unit.text))
    if leans and before is not None and before.kind in ("sentence", "heading") and len(before.text) < PREVIOUS_CHARACTERS:
        start -= 1
        length += len(before.text)
    after = units[number + 1] if number + 1 < len(units) else None
    if after is not None and unit.text.endswith(":") and after.block is not None:
        end = _last_within(units, number + 1)
    elif after is not None and after.kind == "sentence" and length + len(after.text) < WINDOW_CHARACTERS:
        end += 1
    return start, end


def _of_list(units: Sequence[Unit], number: int) -> tuple[int, int]:
    """Return the list of an item, or of the line before a list. Of a long list, its first items or the item."""
    unit = units[number]
    members = [index for index in range(len(units)) if units[index].block == unit.block]
    end = _last_within(units, members[0])
    if number > end or (unit.kind == "item" and end < members[-1]):
        return number, number
    return members[0], end


def _last_within(units: Sequence[Unit], start: int) -> int:
    """Return the last unit of a table or list that begins at ``start``, within `LIST_CHARACTERS`; at least ``start``."""
    end, length = start, len(units[start].text)
    while end + 1 < len(units) and units[end + 1].block == units[start].block:
        length += len(units[end + 1].text)
        if length > LIST_CHARACTERS:
            break
        end += 1
    return end


def _make_window(units: Sequence[Unit], start: int, end: int) -> Window:
    chosen = units[start : end + 1]
    texts = [f"{unit.text} –" if unit.kind == "heading" else unit.text for unit in chosen if unit.kind not in ("item", "row")]
    before = " ".join(texts).removesuffix(" –")
    if chosen[0].kind == "item":
        before = chosen[0].context
    entries = "; ".join(unit.text.rstrip(" ;,") for unit in chosen if unit.kind in ("item", "row"))
    between = ": " if before and entries and not before.endswith(":") else " "
    return Window(start, end, chosen[0].start, chosen[-1].end, f"{before}{between}{entries}".strip())
