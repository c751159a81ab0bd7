"""The nesting depth of HTML, measured without a parser: parsing takes time quadratic in it."""

from __future__ import annotations

import re

from agentic_rag_backend.errors import UnreadableDocument

MAX_DEPTH = 200
"""Deepest nesting of elements. Pages of the web have fewer than 100 levels."""

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NOT_NESTING = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
        "p",
        "li",
        "dt",
        "dd",
        "tr",
        "td",
        "th",
        "thead",
        "tbody",
        "tfoot",
        "option",
        "optgroup",
        "html",
        "head",
        "body",
        "rt",
        "rp",
        "colgroup",
    ]
)
"""Elements without an end, and those that the next one of their kind may end."""


def check_depth(text: str) -> None:
    """Refuse elements that are nested too deep.

    Raises:
        UnreadableDocument: the depth is above `MAX_DEPTH`.
    """
    depth = 0
    for tag in _TAG.finditer(text):
        if tag[2].lower() not in _NOT_NESTING:
            depth = max(0, depth - 1) if tag[1] else depth + 1
            if depth > MAX_DEPTH:
                raise UnreadableDocument(f"the elements of the HTML are nested more than {MAX_DEPTH} deep")
