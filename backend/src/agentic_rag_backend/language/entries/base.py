"""An entry: a subject with labelled values, and the sentence that states it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_COLUMNS = 50
"""Columns of a table that is read. A wider one is text."""
MAX_HEADER_CHARACTERS = 1500
"""Length of the lines that name a table's columns, or introduce a list. With longer ones, it is text."""
_BLANK = frozenset({"", "-", "–", "—", "...", "…"})
"""Cells that state nothing."""
BETWEEN_VALUES = "; "
_LINK = re.compile(r"!?\[([^\[\]\n]*+)\]\((?:[^()\n]|\([^()\n]*+\))*+\)")
_TAG = re.compile(r"<[/!]?[a-zA-Z][^<>]*+>")
_MARKS = re.compile(r"\*{1,3}|`+|(?<!\w)_{1,3}|_{1,3}(?!\w)|\[\s*\d[\d\s,;–-]*+\]")
_ENDED = re.compile(r"[.!?…。！？][\"'”’)\]»]*\Z")


class EntryValue(NamedTuple):
    """A cell of a table, or an item of a list: ``source[start:end]``.

    ``text`` is its text without markup, never empty. ``label`` is the name of its column, or the words before its colon, and may
    be empty.
    """

    label: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.label}: {self.text}" if self.label else self.text


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a table, or a list: ``source[start:end]``.

    ``subject`` is the first cell of a row, or the line that introduces a list; it may be empty. ``blank`` are the columns without
    a value. Rows of a table have the same number ``table``; a list has none. ``context`` is the line above a table.
    ``subject_label`` is the name of the column of the subject.
    """

    start: int
    end: int
    subject: str
    values: tuple[EntryValue, ...]
    blank: tuple[str, ...] = ()
    table: int | None = None
    context: str = ""
    subject_label: str = ""

    @property
    def row(self) -> bool:
        """Whether it is a row of a table."""
        return self.table is not None


@dataclass(frozen=True, slots=True)
class Block:
    """A table or a list: ``source[start:end]``.

    ``header`` is the end of the lines that name its columns or introduce it. A text may be cut at ``cuts``, which are the starts
    of its rows or items, except the first. ``read`` returns its entries.
    """

    start: int
    end: int
    header: int
    cuts: tuple[int, ...]
    read: Callable[[], Sequence[Entry]]


def sentence_of(entry: Entry, values: Iterable[EntryValue] | None = None) -> str:
    """Return the entry as a sentence: "Petra Sauvage – Role: Archivist; Room: C002."

    Args:
        values: the values to state; None: all.
    """
    chosen = entry.values if values is None else tuple(values)
    values_text = BETWEEN_VALUES.join(map(str, chosen))
    text = _choose_separator(chosen).join(filter(None, (entry.subject, values_text)))
    return text if _ENDED.search(text) else f"{text}."


def _choose_separator(values: Sequence[EntryValue]) -> str:
    return " – " if any(value.label for value in values) else ": "


def plain_cell(source: str) -> str:
    """Return the text of a cell or item on one line, without markup and references such as "[3]"; empty if it states nothing."""
    text = source.replace("\\|", "|")
    if "<" in text or "&" in text:
        text = html.unescape(_TAG.sub(" ", text))
    text = " ".join(_MARKS.sub("", _LINK.sub(r"\1", text)).split())
    return "" if text in _BLANK else text


def row_of(
    start: int, end: int, labels: Sequence[str], cells: Sequence[tuple[str, int, int]], *, table: int, context: str
) -> Entry:
    """Return the row with these cells, each its text and its span. A row may have fewer cells than its table has columns.

    The first cell is the subject. If it is no word, it has the name of its column ("Year 2023").
    """
    subject, label, first_value = "", "", 0
    if len(labels) > 1 and cells:
        label, subject_text, first_value = labels[0], cells[0][0], 1
        subject = f"{label} {subject_text}" if label and subject_text and not subject_text[0].isalpha() else subject_text
    pairs = list(zip(labels[first_value:], cells[first_value:], strict=False))
    values = tuple(EntryValue(label, *cell) for label, cell in pairs if cell[0])
    blank = (*(label for label, cell in pairs if not cell[0]), *labels[first_value + len(pairs) :])
    return Entry(start, end, subject, values, blank, table, context, label)


def names_columns(cells: Sequence[str]) -> bool:
    """Return whether a row without markup looks like the names of columns: short, different, no numbers except years."""
    if len(cells) < 2 or len(cells) > MAX_COLUMNS:
        return False
    names = [cell.casefold() for cell in cells]
    if len(set(names)) < len(names) or "" in names[1:] or sum(map(len, names)) > MAX_HEADER_CHARACTERS:
        return False
    return all(len(name) <= 40 and len(name.split()) <= 5 and not _ENDED.search(name) for name in names) and any(
        name and not any(map(str.isdigit, name)) for name in names
    )
