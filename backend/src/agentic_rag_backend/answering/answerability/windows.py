"""The windows of text that an answer quotes: each a unit of a passage with what belongs to it.

A window begins with one unit. It takes the sentence to which "she" refers, the question to which it replies, and the list that
it announces, and then grows to the neighbours that are more likely to answer, as long as its length allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.answering.answerability.units import Unit
from agentic_rag_backend.language.independence import refers_back

MAX_QUOTATIONS = 3
"""Windows that an answer quotes."""
FIRST_CHARACTERS = 300
"""Length to which the first window grows."""
LATER_CHARACTERS = 120
"""Least length to which a later window grows."""
TOTAL_CHARACTERS = 460
"""Length of all windows together from which no further one is quoted."""
EXCESS = 1.15
"""Factor by which the first unit of a later window may exceed what is left."""
REFERRED_CHARACTERS = 150
"""Characters above its length that a window may have with the sentence to which it refers."""
LIST_CHARACTERS = 600
"""Length up to which an announced list is quoted."""
ITEM_CHARACTERS = 80
"""Length of a line up to which it may be an item of an announced list without marks."""
MAX_ITEMS = 16
_ANNOUNCES = re.compile(r"(?::|\b(?:following|as follows|below))\W{0,3}$|\bthe following\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Window:
    """Units ``first`` to ``last`` (included) of a passage: ``passage.text[start:end]``. ``text`` is what an answer writes."""

    first: int
    last: int
    start: int
    end: int
    text: str


def choose_windows(
    units: Mapping[int, Sequence[Unit]], ranked: Iterable[tuple[int, int]], worth: Mapping[tuple[int, int], float]
) -> list[tuple[int, Window]]:
    """Return the windows to quote, best first, each with the number of its passage.

    No unit and no text is quoted twice, and no heading alone.

    Args:
        units: of each passage, by the passage's number.
        ranked: numbers of passages and of units in them with which windows begin, best first.
        worth: of units, by the same numbers: how likely they are to answer. Windows grow to those that are worth more.
    """
    quoted: dict[int, set[int]] = {}
    windows: list[tuple[int, Window]] = []
    length = 0
    for passage, number in ranked:
        room = TOTAL_CHARACTERS - length
        if len(windows) == MAX_QUOTATIONS or room <= 0:
            break
        passage_units, quoted_units = units[passage], quoted.setdefault(passage, set())
        if number in quoted_units or (windows and len(passage_units[number].text) > EXCESS * room):
            continue
        limit = max(LATER_CHARACTERS, room // (MAX_QUOTATIONS - len(windows))) if windows else FIRST_CHARACTERS
        values = [worth.get((passage, index), 0.0) for index in range(len(passage_units))]
        window = _Growth(passage_units, values, quoted_units, number).grow(limit)
        if window.first == window.last and passage_units[number].kind == "heading":
            continue
        quoted_units.update(range(window.first, window.last + 1))
        # Documents may have sentences in common, as copies and versions do.
        if any(_repeats(window, earlier) for _, earlier in windows):
            continue
        windows.append((passage, window))
        length += len(window.text)
    return windows


def _repeats(window: Window, earlier: Window) -> bool:
    """Return whether a window says nothing but what an earlier one says, in the same words."""
    return " ".join(window.text.casefold().split()) in " ".join(earlier.text.casefold().split())


class _Growth:
    """A window that grows from unit ``number`` of a passage, without the ``quoted`` units."""

    def __init__(self, units: Sequence[Unit], values: Sequence[float], quoted: Iterable[int], number: int) -> None:
        self._units = units
        self._values = values
        self._quoted = frozenset(quoted)
        self._number = self._first = self._last = number
        self._length = len(units[number].text)

    def grow(self, limit: int) -> Window:
        """Return the window, which has at most ``limit`` characters without its list and the sentence to which it refers."""
        unit = self._units[self._number]
        if unit.kind != "row":
            if unit.kind == "sentence" and (refers_back(unit.text) or self._replies()):
                self._add_referred(limit)
            self._add_announced(self._number)
            while (neighbour := self._better_neighbour(limit)) is not None:
                self._add(neighbour)
            self._complete_list()
        if self._first == self._last:
            return Window(self._number, self._number, unit.start, unit.end, unit.in_context)
        return make_window(self._units, self._first, self._last)

    def _add(self, number: int) -> None:
        self._first, self._last = min(self._first, number), max(self._last, number)
        self._length += len(self._units[number].text) + 1

    def _is_free(self, number: int) -> bool:
        return 0 <= number < len(self._units) and number not in self._quoted

    def _replies(self) -> bool:
        """Return whether the unit before is a question, as in an interview: "**Who taught you?** Ann Marsh, for a year."."""
        before = self._units[self._first - 1] if self._first else None
        return before is not None and before.kind == "sentence" and _is_question(before)

    def _add_referred(self, limit: int) -> None:
        before = self._first - 1
        room = limit + REFERRED_CHARACTERS - self._length
        if self._is_free(before) and self._units[before].block is None and len(self._units[before].text) < room:
            self._add(before)

    def _add_announced(self, number: int) -> None:
        """Add the list that a unit at the end of the window announces, or the short lines below it, as far as there is room."""
        if number == self._last and self._announces(number):
            self._add_items(number)

    def _complete_list(self) -> None:
        """Add what is missing of the last list that a unit of the window announces, if the window ends within that list."""
        for number in range(self._last, self._first - 1, -1):
            if self._announces(number):
                self._add_items(number)
                return
            if not self._is_item(number):
                return

    def _announces(self, number: int) -> bool:
        unit = self._units[number]
        return unit.kind == "opening" or _ANNOUNCES.search(unit.text) is not None

    def _is_item(self, number: int) -> bool:
        unit = self._units[number]
        return unit.kind == "item" or (unit.block is None and len(unit.text) < ITEM_CHARACTERS)

    def _add_items(self, announcing: int) -> None:
        """Add the units after the window that belong to the list after unit ``announcing``, as far as there is room."""
        block = self._units[announcing + 1].block if announcing + 1 < len(self._units) else None
        for item in range(self._last + 1, min(announcing + 1 + MAX_ITEMS, len(self._units))):
            text = self._units[item].text
            belongs = self._units[item].block == block if block is not None else len(text) < ITEM_CHARACTERS
            if not belongs or not self._is_free(item) or self._length + len(text) > LIST_CHARACTERS:
                return
            self._add(item)

    def _better_neighbour(self, limit: int) -> int | None:
        """Return the neighbour that is worth more and fits; the one after the window if both are worth the same.

        A window does not grow over the ends of a table or list, nor over a heading.
        """
        first, last = self._units[self._first], self._units[self._last]
        neighbours = []
        if self._is_free(self._last + 1):
            after = self._units[self._last + 1]
            if after.kind != "heading" and (after.block == last.block or (last.block is None and after.kind == "opening")):
                neighbours.append(self._last + 1)
        if self._is_free(self._first - 1) and first.kind != "heading" and self._units[self._first - 1].block == first.block:
            neighbours.append(self._first - 1)
        fitting = [number for number in neighbours if self._length + 1 + len(self._units[number].text) <= limit]
        return max(fitting, key=lambda number: self._values[number], default=None)


def make_window(units: Sequence[Unit], start: int, end: int) -> Window:
    """Return units ``start`` to ``end`` (included) as one window."""
    chosen = units[start : end + 1]
    texts = [_write_unit(unit) for unit in chosen if unit.kind not in ("item", "row")]
    before = " ".join(texts).removesuffix(" –")
    if chosen[0].kind == "item":
        before = chosen[0].context
    entries = "; ".join(unit.text.rstrip(" ;,") for unit in chosen if unit.kind in ("item", "row"))
    between = ": " if before and entries and not before.endswith(":") else " "
    return Window(start, end, chosen[0].start, chosen[-1].end, f"{before}{between}{entries}".strip())


def _write_unit(unit: Unit) -> str:
    if unit.kind == "heading":
        return f"{unit.text} –"
    # A label in emphasis before a sentence is left out, but not a question to which it replies.
    return unit.text.strip("*_") if _is_question(unit) else unit.text


def _is_question(unit: Unit) -> bool:
    return unit.text.rstrip("*_ ").endswith("?")
