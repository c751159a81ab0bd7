"""Formulas of Office (OMML) as text on one line, such as ``L=(3W)/8`` and ``x^2``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lxml import etree

from agentic_rag_backend.documents.parsing.office.walking import local_name

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
INVISIBLE = dict.fromkeys(range(0x2061, 0x2065))
"""Marks of functions and products that are not drawn."""
_SIMPLE = re.compile(
    r"[^\W\d_]|[^\w\s]|\d+(?:[.,]\d+)*|[-+\u2212]?\d+|\((?:[^()]*)\)|\[[^\[\]]*\]|(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|exp|lim|max|min|det"
)
"""An operand that needs no brackets."""


def write_formula(element: etree._Element) -> str:
    """Return the text of a formula, or of a part of one. The depth is that of the XML, which its parser limits."""
    name = local_name(element)
    if name == "t":
        return (element.text or "").translate(INVISIBLE)
    if name.endswith("Pr") or name in {"del", "moveFrom", ""}:
        return ""
    if name == "f":
        numerator, denominator = _write_operand(element, "num"), _write_operand(element, "den")
        is_choice = _read_property(element, "fPr/type") == "noBar"
        return f"({numerator} choose {denominator})" if is_choice else f"{numerator}/{denominator}"
    if name in {"sSup", "sSub", "sSubSup", "sPre", "limLow", "limUpp"}:
        base, scripts = _write_operand(element, "e"), _write_scripts(element)
        return f"{scripts} {base}" if name == "sPre" else base + scripts
    if name == "nary":
        sign = _read_property(element, "naryPr/chr")
        return f"{'∫' if sign is None else sign}{_write_scripts(element)} {_write_child(element, 'e')}"
    if name == "rad":
        degree, radicand = _write_child(element, "deg").strip(), _write_child(element, "e")
        return f"root({degree}, {radicand})" if degree else f"√{bracket_operand(radicand)}"
    return _write_group(element, name)


def _write_group(element: etree._Element, name: str) -> str:
    """Return a part whose members follow each other: brackets, functions, accents, lists of equations, matrices."""
    if name == "d":
        marks = (_read_property(element, f"dPr/{mark}") for mark in ("begChr", "sepChr", "endChr"))
        begin, separator, end = (default if mark is None else mark for mark, default in zip(marks, "(|)", strict=True))
        return begin + separator.join(map(_write_children, element.findall(MATH + "e"))) + end
    if name == "func":
        return f"{_write_child(element, 'fName').strip()} {_write_child(element, 'e').strip()}"
    if name == "acc":
        return _write_child(element, "e") + (_read_property(element, "accPr/chr") or "\u0302")
    if name == "eqArr":
        return "; ".join(map(_write_children, element.findall(MATH + "e")))
    if name == "m":
        rows = [", ".join(map(_write_children, row.findall(MATH + "e"))) for row in element.findall(MATH + "mr")]
        return f"[{'; '.join(rows)}]"
    return _write_children(element)


def _write_children(element: etree._Element) -> str:
    return "".join(map(write_formula, element))


def _write_child(element: etree._Element, name: str) -> str:
    child = element.find(MATH + name)
    return "" if child is None else _write_children(child)


def _write_operand(element: etree._Element, name: str) -> str:
    return bracket_operand(_write_child(element, name))


def _write_scripts(element: etree._Element) -> str:
    scripts: Sequence[tuple[str, str]] = (("sub", "_"), ("sup", "^"), ("lim", "_" if local_name(element) == "limLow" else "^"))
    return "".join(mark + bracket_operand(text) for name, mark in scripts if (text := _write_child(element, name).strip()))


def bracket_operand(text: str) -> str:
    """Return an operand, in brackets if it needs them."""
    text = text.strip()
    return text if not text or _SIMPLE.fullmatch(text) else f"({text})"


def _read_property(element: etree._Element, path: str) -> str | None:
    child = element.find("/".join(MATH + name for name in path.split("/")))
    return None if child is None else child.get(MATH + "val", "")
