"""The text of WordprocessingML paragraphs, their styles and their list numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from agentic_rag_backend.ingestion.parsing.office.walking import local_name, walk_elements

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
LEFT_OUT = frozenset({"del", "moveFrom", "Fallback", "pPr", "rt", "sdtPr", "instrText", "object"})
"""Elements whose text is not part of a paragraph: deletions, ruby, fields, and the second form of what is written twice."""
BOXES = frozenset({"txbxContent"})

_CHARACTERS: Mapping[str, str] = {"tab": "\t", "ptab": "\t", "cr": "\n", "noBreakHyphen": "-"}
_HEADING = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_MAX_LEVEL = 9
_MAX_BASED_ON = 20


def read_value(element: etree._Element | None, path: str) -> str | None:
    """Return the attribute ``val`` of a descendant; None if there is none."""
    descendant = None if element is None else element.find("/".join(W + name for name in path.split("/")))
    return None if descendant is None else descendant.get(W + "val")


def text_of(paragraph: etree._Element) -> str:
    """Return the text of a paragraph without its text boxes. A reference to a note is its number in brackets."""
    parts: list[str] = []
    for element in walk_elements(paragraph, without=LEFT_OUT, leaf_names=BOXES):
        name = local_name(element)
        if name == "t":
            parts.append("" if _is_hidden(element) else element.text or "")
        elif name == "br":
            parts.append("" if element.get(W + "type") in {"page", "column"} else "\n")
        elif name in {"footnoteReference", "endnoteReference"}:
            parts.append(f"[{note_mark(name, element.get(W + 'id'))}]")
        elif name in _CHARACTERS and local_name(element.getparent()) == "r":
            parts.append(_CHARACTERS[name])
    return "".join(parts)


def note_mark(name: str, number: str | None) -> str:
    """Return the mark of a note; those of endnotes have an "e"."""
    return f"{'e' if name.startswith('endnote') else ''}{number}"


def _is_hidden(text: etree._Element) -> bool:
    vanish = text.getparent().find(f"{W}rPr/{W}vanish")
    return vanish is not None and vanish.get(W + "val") not in {"0", "false"}


@dataclass(frozen=True, slots=True)
class Style:
    """Properties of a paragraph style: its level if it is a heading's (0: the title's), and its list."""

    level: int | None = None
    number_id: str | None = None
    list_level: str | None = None


def styles_of(root: etree._Element | None) -> dict[str, Style]:
    """Return the paragraph styles by id. A style inherits missing properties from the style that it is based on."""
    elements = {} if root is None else {style.get(W + "styleId"): style for style in root.iter(W + "style")}
    return {name: _resolve_style(name, elements) for name in elements if name}


def _resolve_style(name: str, elements: Mapping[str | None, etree._Element]) -> Style:
    level: int | None = None
    number_id = list_level = None
    current: str | None = name
    for _ in range(_MAX_BASED_ON):
        element = elements.get(current)
        if element is None:
            break
        level = level if level is not None else _level_of_style(element)
        number_id = number_id or read_value(element, "pPr/numPr/numId")
        list_level = list_level or read_value(element, "pPr/numPr/ilvl")
        current = read_value(element, "basedOn")
    return Style(level, number_id, list_level)


def _level_of_style(element: etree._Element) -> int | None:
    style_name = read_value(element, "name") or ""
    if style_name.lower() == "title":
        return 0
    heading = _HEADING.match(style_name)
    return int(heading[1]) if heading else outline_level(element)


def outline_level(element: etree._Element) -> int | None:
    """Return the outline level of a style or paragraph, from 1. None if it is body text."""
    level = read_value(element, "pPr/outlineLvl") or ""
    return int(level) + 1 if level.isdecimal() and int(level) < _MAX_LEVEL else None


class Numbering:
    """Counts the items of lists."""

    def __init__(self, root: etree._Element | None) -> None:
        self._formats: dict[tuple[str | None, str | None], str] = {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        if root is None:
            return
        abstract = {definition.get(W + "abstractNumId"): definition for definition in root.iter(W + "abstractNum")}
        for number in root.iter(W + "num"):
            levels = abstract.get(read_value(number, "abstractNumId"))
            for level in () if levels is None else levels.iter(W + "lvl"):
                self._formats[number.get(W + "numId"), level.get(W + "ilvl")] = read_value(level, "numFmt") or "decimal"

    def make_mark(self, number_id: str, list_level: str) -> str:
        """Return the mark of the next item of a list: "- ", or its number. An empty string if there is no such list."""
        level_format = self._formats.get((number_id, list_level))
        if level_format is None or level_format == "none":
            return ""
        if level_format == "bullet":
            return "- "
        counts, level = self._counts[number_id], int(list_level)
        counts[level] = counts.get(level, 0) + 1
        for deeper in [known_level for known_level in counts if known_level > level]:
            del counts[deeper]
        return f"{counts[level]}. "
