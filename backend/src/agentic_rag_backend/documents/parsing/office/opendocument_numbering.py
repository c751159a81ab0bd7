"""Automatic numbers of OpenDocument texts: headings such as "1.2", list labels such as "(a)"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from agentic_rag_backend.documents.parsing.office.walking import local_name
from agentic_rag_backend.documents.parsing.office.word.docx_numbering import MAX_LABEL_CHARACTERS, format_number

BULLET = "- "

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_ID = "{http://www.w3.org/XML/1998/namespace}id"
_FORMATS: Mapping[str, str] = {
    "1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman",
}  # fmt: skip
_MAX_BASED_ON = 20
_MAX_DIGITS = 6

_Counts = dict[int, int]
"""The number of the last item of each level, from 1."""


@dataclass(frozen=True, slots=True)
class _Level:
    number_format: str
    prefix: str
    suffix: str
    start: int
    shown_levels: int


class ListNumbering:
    """Counts headings and items of lists.

    Args:
        roots: root elements of the content and of the styles of a file.
    """

    def __init__(self, *roots: etree._Element | None) -> None:
        trees = [root for root in roots if root is not None]
        self._styles = {
            style.get(_STYLE + "name"): dict(_read_levels(style)) for root in trees for style in root.iter(_TEXT + "list-style")
        }
        outline = next((style for root in trees for style in root.iter(_TEXT + "outline-style")), None)
        self._outline = {} if outline is None else dict(_read_levels(outline))
        self._outline_counts: _Counts = {}
        self._paragraph_styles = {
            style.get(_STYLE + "name"): style
            for root in reversed(trees)
            for style in root.iter(_STYLE + "style")
            if style.get(_STYLE + "family") == "paragraph"
        }
        self._counts_of_list: dict[str, _Counts] = {}
        self._counts_of_style: dict[str | None, _Counts] = {}

    def number_heading(self, heading: etree._Element, level: int) -> str:
        """Count a heading that is in no list, and return its number with a space. Empty: it has none."""
        if heading.get(_TEXT + "is-list-header") == "true" or self._is_unnumbered(heading.get(_TEXT + "style-name")):
            return ""
        return _count_item(self._outline_counts, self._outline, level, heading) if level in self._outline else ""

    def number_items(self, root: etree._Element) -> Iterator[tuple[str, etree._Element]]:
        """Yield the label and the element of each paragraph and heading in a list and in the lists within it.

        The label is a bullet, or a number with a space. It is empty for paragraphs of an item after the first one.
        """
        style_name = root.get(_TEXT + "style-name")
        counts = self._find_counts(root, style_name)
        waiting: list[tuple[etree._Element, int, str | None]] = [(root, 0, style_name)]
        label: str | None = None
        while waiting:
            element, level, style_name = waiting.pop()
            name = local_name(element)
            if name == "list":
                level, style_name = level + 1, element.get(_TEXT + "style-name", style_name)
            elif name in {"list-item", "list-header"}:
                has_text = any(local_name(child) in {"p", "h"} for child in element)
                if has_text:
                    levels = self._styles.get(style_name, {}) if name == "list-item" else {}
                    label = _count_item(counts, levels, level, element) if level in levels else BULLET
            elif name in {"p", "h"}:
                yield label or "", element
                label = None
                continue
            elif element is not root:
                continue
            waiting.extend((child, level, style_name) for child in reversed(element))

    def _find_counts(self, root: etree._Element, style_name: str | None) -> _Counts:
        """Return the counts with which a list begins: those of the list that it continues, or none."""
        counts: _Counts = {}
        if (continued := root.get(_TEXT + "continue-list", "")) in self._counts_of_list:
            counts = self._counts_of_list[continued]
        elif root.get(_TEXT + "continue-numbering") == "true":
            counts = self._counts_of_style.get(style_name, counts)
        self._counts_of_style[style_name] = counts
        if list_id := root.get(_ID):
            self._counts_of_list[list_id] = counts
        return counts

    def _is_unnumbered(self, style_name: str | None) -> bool:
        """Return whether the style of a heading, or one that it is based on, turns numbers off."""
        for _ in range(_MAX_BASED_ON):
            style = self._paragraph_styles.get(style_name)
            if style is None:
                return False
            if (list_style := style.get(_STYLE + "list-style-name")) is not None:
                return not list_style
            style_name = style.get(_STYLE + "parent-style-name")
        return False


def _read_levels(style: etree._Element) -> Iterator[tuple[int, _Level]]:
    """Yield the numbered levels of a list style, from 1. Levels with bullets or without a number have no entry."""
    for element in style:
        number_format = _FORMATS.get(element.get(_STYLE + "num-format", ""))
        if number_format is not None:
            prefix, suffix = (element.get(_STYLE + f"num-{name}", "")[:MAX_LABEL_CHARACTERS] for name in ("prefix", "suffix"))
            start, shown_levels = (_read_number(element, name, 1) for name in ("start-value", "display-levels"))
            yield _read_number(element, "level", 1), _Level(number_format, prefix, suffix, start, shown_levels)


def _count_item(counts: _Counts, levels: Mapping[int, _Level], level: int, element: etree._Element) -> str:
    """Count an item and return its number with a space."""
    start = _read_number(element, "start-value", levels[level].start)
    is_set = element.get(_TEXT + "start-value") is not None
    counts[level] = start if is_set or level not in counts else counts[level] + 1
    for lower in [number for number in counts if number > level]:
        del counts[lower]
    numbers = [
        format_number(counts.get(number, levels[number].start), levels[number].number_format)
        for number in range(max(level - levels[level].shown_levels + 1, 1), level + 1)
        if number in levels
    ]
    return f"{levels[level].prefix}{'.'.join(numbers)}{levels[level].suffix}".strip() + " "


def _read_number(element: etree._Element, name: str, default: int) -> int:
    digits = element.get(_TEXT + name, "")
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_DIGITS else default
