"""Automatic numbers of WordprocessingML: headings such as "2.1", list labels such as "(a)"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from agentic_rag_backend.documents.parsing.office.word.docx_text import Style, W, read_value

MAX_LABEL_CHARACTERS = 80
MAX_NUMBER = 32_767
"""Numbers that Word counts to. Larger ones are written in digits."""
_LEVELS = 9
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"),
    (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Level:
    """Format of one level of a list. ``restart`` is the level above which it starts again; None: every one, 0: none."""

    number_format: str = "decimal"
    label: str = ""
    start: int = 1
    restart: int | None = None
    style_id: str | None = None
    is_legal: bool = False


@dataclass(frozen=True, slots=True)
class _List:
    """Levels of a list and the key of its counters, which lists with the same definition share."""

    key: str
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]
    """Levels that start again with the first item of this list."""


class Numbering:
    """Counts headings and items of lists."""

    def __init__(self, root: etree._Element | None, styles: Mapping[str, Style]) -> None:
        self._lists: dict[str, _List] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._used: set[tuple[str, int]] = set()
        definitions = {} if root is None else {item.get(W + "abstractNumId"): item for item in root.iter(W + "abstractNum")}
        numbers = {} if root is None else {number.get(W + "numId"): number for number in root.iter(W + "num")}
        for number_id, number in numbers.items():
            key = read_value(number, "abstractNumId")
            definition = definitions.get(key)
            linked_style = styles.get(read_value(definition, "numStyleLink") or "")
            if linked_style is not None and linked_style.number_id in numbers:  # the levels are those of a style of lists
                key = read_value(numbers[linked_style.number_id], "abstractNumId")
                definition = definitions.get(key)
            if number_id and key and definition is not None:
                self._lists[number_id] = _read_list(key, definition, number)

    def level_of(self, number_id: str, style_id: str | None) -> int | None:
        """Return the level of a list that a paragraph style has. None: the list names no level for it."""
        levels = self._lists[number_id].levels if number_id in self._lists else {}
        return next((index for index, level in levels.items() if style_id and level.style_id == style_id), None)

    def make_label(self, number_id: str, level: int) -> str:
        """Count an item and return its label with a space: "- ", or its number. Empty: it has none."""
        numbered_list = self._lists.get(number_id)
        if numbered_list is None or level not in numbered_list.levels:
            return ""
        counts = self._counts.setdefault(numbered_list.key, {})
        for index, start in numbered_list.starts.items():
            if (number_id, index) not in self._used and index <= level:
                self._used.add((number_id, index))
                counts[index] = start - 1 if index == level else start
        for index in range(level):
            counts.setdefault(index, numbered_list.levels.get(index, _Level()).start)
        counts[level] = counts[level] + 1 if level in counts else numbered_list.levels[level].start
        for deeper in [index for index in counts if index > level and _restarts(numbered_list.levels.get(index), level)]:
            del counts[deeper]
        return _format_label(numbered_list.levels, level, counts)


def _read_list(key: str, definition: etree._Element, number: etree._Element) -> _List:
    levels = {index: _read_level(level) for level in definition.iter(W + "lvl") if (index := _read_index(level)) is not None}
    starts: dict[int, int] = {}
    for override in number.iter(W + "lvlOverride"):
        index = _read_index(override)
        if index is None:
            continue
        level = override.find(W + "lvl")
        if level is not None:
            levels[index] = _read_level(level)
        if (start := _read_number(override, "startOverride")) is not None:
            starts[index] = start
    return _List(key, levels, starts)


def _read_index(level: etree._Element) -> int | None:
    text = level.get(W + "ilvl") or ""
    return int(text) if text.isdecimal() and len(text) == 1 and int(text) < _LEVELS else None


def _read_number(element: etree._Element, path: str) -> int | None:
    text = read_value(element, path) or ""
    return int(text) if text.isdecimal() and len(text) < 9 else None


def _read_level(level: etree._Element) -> _Level:
    number_format = read_value(level, "numFmt") or "decimal"
    label = read_value(level, "lvlText")
    if label is None:
        label = f"%{int(level.get(W + 'ilvl') or 0) + 1}."
    start = _read_number(level, "start")
    return _Level(
        number_format,
        label[:MAX_LABEL_CHARACTERS],
        1 if start is None else start,
        _read_number(level, "lvlRestart"),
        read_value(level, "pStyle"),
        level.find(W + "isLgl") is not None and read_value(level, "isLgl") not in {"0", "false"},
    )


def _restarts(level: _Level | None, above: int) -> bool:
    return level is None or level.restart is None or above < level.restart


def _format_label(levels: Mapping[int, _Level], level: int, counts: Mapping[int, int]) -> str:
    own_level = levels[level]
    if own_level.number_format == "bullet":
        return "- "

    def write_number(placeholder: re.Match[str]) -> str:
        index = int(placeholder[1]) - 1
        if index > level:
            return ""
        number_format = "decimal" if own_level.is_legal else levels.get(index, _Level()).number_format
        return format_number(counts.get(index, 1), number_format)

    label = " ".join(_PLACEHOLDER.sub(write_number, own_level.label).split())
    return f"{label} " if label else ""


def format_number(number: int, number_format: str) -> str:
    """Return a number as a list writes it. Formats of other scripts are written in digits."""
    if number_format in {"none", "bullet"}:
        return ""
    text = str(number)
    if number_format == "decimalZero":
        text = text.zfill(2)
    elif number_format in {"lowerLetter", "upperLetter"} and 0 < number <= MAX_NUMBER:
        text = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, MAX_LABEL_CHARACTERS)
    elif number_format in {"lowerRoman", "upperRoman"} and 0 < number <= MAX_NUMBER:
        text = _to_roman(number)
    elif number_format == "ordinal":
        text += {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in {11, 12, 13} else 0, "th")
    return text.upper() if number_format.startswith("upper") else text


def _to_roman(number: int) -> str:
    letters = ""
    for value, numeral in _ROMAN:
        count, number = divmod(number, value)
        letters += numeral * count
    return letters
