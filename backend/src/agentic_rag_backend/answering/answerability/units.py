"""The units of a passage that may answer a question.

A unit is a sentence, a row of a table, an item of a list, or the line that introduces a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.language.entries.base import Entry, sentence_of
from agentic_rag_backend.language.entries.reading import read_entries
from agentic_rag_backend.language.sentences import Sentence

UnitKind = Literal["sentence", "heading", "row", "item", "opening"]
WRAPPED_CHARACTERS = 45
"""Length from which a line is wrapped prose that continues on the next line. A shorter line is a unit of its own."""


@dataclass(frozen=True, slots=True)
class Unit:
    """``passage.text[start:end]``.

    ``text`` states the unit: a row has the names of its columns. ``block`` is the number of its table or list, None for a
    sentence. ``context`` is the line above its table, or the line that introduces its list. ``label`` is the name of the first
    column of a row, which ``text`` leaves out if the cell is a word.
    """

    kind: UnitKind
    start: int
    end: int
    text: str
    block: int | None = None
    context: str = ""
    label: str = ""

    @property
    def in_context(self) -> str:
        """The text that is compared with a question. An item is about what introduces its list."""
        return f"{self.context}: {self.text}" if self.kind == "item" and self.context else self.text


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
        text = sentence_of(entry)
        yield Unit("row", max(0, entry.start), entry.end, text, -1 - entry.table, entry.context, entry.subject_label)
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
