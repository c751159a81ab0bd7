"""Superscripts and subscripts that are elements of XML, replaced by their text on the line."""

from __future__ import annotations

from collections.abc import Collection

from lxml import etree

from agentic_rag_backend.ingestion.parsing.raised_text import BASE_CHARACTERS, SUPERSCRIPT, write_script


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
