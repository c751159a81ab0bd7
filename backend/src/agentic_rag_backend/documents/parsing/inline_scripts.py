"""Superscripts and subscripts as text on one line: powers such as ``10^6``, formulas such as ``CO2``, marks of notes ``[12]``.

Without a mark, "10" with an exponent 6 would become 106, and "3" with note 12 would become 312.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import groupby

from lxml import etree

BASE_CHARACTERS = 40
"""Characters before a superscript or subscript that decide its form."""
SUPERSCRIPT, SUBSCRIPT = "superscript", "subscript"

_BASE_PARTS = 3
_SCRIPTS = frozenset({SUPERSCRIPT, SUBSCRIPT})
_NOTE = re.compile(r"\d{1,3}(?:[,–-]\s?\d{1,3})*")
_POWER = re.compile(r"[+-]?\d*(?:[.,/]\d+)?[+-]?|[A-Za-z]")
_WORD = re.compile(r"(?<![^\W\d_])[^\W\d_]++\Z")
_DASHES = str.maketrans({"\u2212": "-", "–": "-"})


def join_scripts(parts: Iterable[tuple[str, str]]) -> str:
    """Return parts of a text joined. Each has its script: `SUPERSCRIPT`, `SUBSCRIPT`, or another one for text on the line."""
    texts: list[str] = []
    for script, run in groupby(parts, key=lambda part: part[0] if part[0] in _SCRIPTS else ""):
        text = "".join(part[1] for part in run)
        base = "".join(texts[-_BASE_PARTS:]) if script else ""
        texts.append(write_script(script, base, text) if script else text)
    return "".join(texts)


def write_script(script: str, base: str, text: str) -> str:
    """Return a superscript or subscript as it follows ``base``."""
    return write_superscript(base, text) if script == SUPERSCRIPT else write_subscript(base, text)


def write_superscript(base: str, raised: str) -> str:
    """Return a superscript as it follows ``base``: a power, the mark of a note, or letters such as those of "4th"."""
    raised, base = raised.strip(), base[-BASE_CHARACTERS:]
    power = raised.translate(_DASHES)
    word = _WORD.search(base)
    letters = len(word[0]) if word else 0
    if not raised or raised[0] in "[(^:;,." or not (base.strip() and not base[-1].isspace()):
        return raised if not _NOTE.fullmatch(raised) else f"[{raised}]"
    if raised.isalpha():
        return f"^{raised}" if len(raised) == 1 and raised.isascii() and (base[-1].isdigit() or letters == 1) else raised
    if not any(map(str.isalnum, raised)):
        return f"^{power}" if power in {"+", "-"} else raised
    is_power = base[-1].isdigit() or letters == 1 or (power in {"2", "3"} and (letters == 2 or base[-1] in ")]"))
    if _NOTE.fullmatch(raised) and not is_power:
        return f"[{raised}]"
    return f"^{power}" if _POWER.fullmatch(power) else f"^({power})"


def write_subscript(base: str, lowered: str) -> str:
    """Return a subscript as it follows ``base``: as it is in chemical formulas, otherwise with a mark."""
    lowered, base = lowered.strip(), base[-BASE_CHARACTERS:]
    word = _WORD.search(base)
    is_formula = base.endswith((")", "]")) or (word is not None and re.search(r"[A-Z][a-z]?\Z", word[0]) is not None)
    if not lowered or not base.strip() or base[-1].isspace() or (lowered.isdecimal() and is_formula):
        return lowered
    return f"_{lowered}" if len(lowered) == 1 or lowered.isalnum() else f"_({lowered})"


def replace_script(element: etree._Element, script: str, *, blocks: Collection[str]) -> None:
    """Replace the content of an element by its text on the line. ``blocks`` are the names of elements that begin a line."""
    text = "".join(element.itertext())
    has_link = element.find(".//{*}a") is not None or etree.QName(element.getparent()).localname == "a"
    if script == SUPERSCRIPT and has_link and text.strip().isdecimal():
        replace_by_text(element, f"[{text.strip()}]")
    else:
        replace_by_text(element, write_script(script, _text_before(element, blocks)[-BASE_CHARACTERS:], text))


def replace_by_text(element: etree._Element, text: str) -> None:
    """Replace everything in an element by a text. What follows it stays."""
    tail = element.tail
    element.clear()
    element.text, element.tail = text, tail


def _text_before(element: etree._Element, blocks: Collection[str]) -> str:
    previous = element.getprevious()
    if previous is not None:
        return previous.tail or "".join(previous.itertext())
    parent = element.getparent()
    if parent.text or parent.getparent() is None or etree.QName(parent).localname in blocks:
        return parent.text or ""
    return _text_before(parent, blocks)
