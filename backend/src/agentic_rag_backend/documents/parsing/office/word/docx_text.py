"""The text of WordprocessingML paragraphs, and their styles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from agentic_rag_backend.documents.parsing.inline_scripts import join_scripts
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.documents.parsing.office.word.formulas import write_formula
from agentic_rag_backend.documents.parsing.office.word.symbols import read_symbol

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
LEFT_OUT = frozenset({"del", "moveFrom", "Fallback", "pPr", "rt", "sdtPr", "instrText", "object"})
"""Elements whose text is not part of a paragraph: deletions, ruby, fields, and the second form of what is written twice."""
BOXES = frozenset({"txbxContent"})
_LEAVES = BOXES | {"oMath", "ffData"}

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
    parts: list[tuple[str, str]] = []
    for element in walk_elements(paragraph, without=LEFT_OUT, leaf_names=_LEAVES):
        name = local_name(element)
        if name == "t":
            parts.append(("", "") if is_hidden(element) else (_read_script(element), element.text or ""))
        elif name == "br":
            parts.append(("", "" if element.get(W + "type") in {"page", "column"} else "\n"))
        elif name in {"footnoteReference", "endnoteReference"}:
            parts.append(("", f"[{note_mark(name, element.get(W + 'id'))}]"))
        elif name == "oMath":
            follows = local_name(element.getprevious()) == "oMath" if element.getprevious() is not None else False
            parts.append(("", ("\n" if follows else "") + write_formula(element)))
        elif name == "sym":
            parts.append(("", read_symbol(element.get(W + "font") or "", element.get(W + "char") or "")))
        elif name == "ffData":
            parts.append(("", _read_form_field(element)))
        elif name in _CHARACTERS and local_name(element.getparent()) == "r":
            parts.append(("", _CHARACTERS[name]))
    return join_scripts(parts)


def _read_script(text: etree._Element) -> str:
    return read_value(text.getparent(), "rPr/vertAlign") or ""


def _read_form_field(field: etree._Element) -> str:
    """Return the value of a form field: the chosen entry of a list, or a tick. The value of a text field is a run of its own."""
    choices = field.find(W + "ddList")
    if choices is not None:
        entries = [entry.get(W + "val") or "" for entry in choices.iter(W + "listEntry")]
        number = read_value(choices, "result") or read_value(choices, "default") or "0"
        return entries[int(number)] if number.isdecimal() and len(number) < 5 and int(number) < len(entries) else ""
    box = field.find(W + "checkBox")
    if box is None:
        return ""
    state = box.find(W + "checked") if box.find(W + "checked") is not None else box.find(W + "default")
    return "[x] " if state is not None and state.get(W + "val") not in {"0", "false"} else "[ ] "


def note_mark(name: str, number: str | None) -> str:
    """Return the mark of a note; those of endnotes have an "e"."""
    return f"{'e' if name.startswith('endnote') else ''}{number}"


def is_hidden(text: etree._Element) -> bool:
    """Return whether a text is in a run that its author hid."""
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
