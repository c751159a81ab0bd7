"""The nesting depth of HTML and the attributes of its elements, measured without a parser: its time is quadratic in them."""

from __future__ import annotations

import re

from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_DEPTH = 200
"""Deepest nesting of elements. Pages of the web have fewer than 100 levels."""
MAX_ATTRIBUTES = 1_000
"""Attributes of an element. The parsers of HTML compare each with all before it: 100,000 take 16 seconds."""

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ATTRIBUTE = r"""[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+"""
_ATTRIBUTES = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|title|xmp|iframe|noembed|noframes)\b[^>]*+>.*?(?:</\1|\Z)"
    rf"|<[a-z][^\s/>]*+(?P<own>(?:[\s/]*+{_ATTRIBUTE})*+)",
    re.IGNORECASE | re.DOTALL,
)
"""A comment, an element without elements in it, or the attributes of a tag."""
_NAME_AND_VALUE = re.compile(_ATTRIBUTE)
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


def check_elements(text: str) -> None:
    """Refuse elements that are nested too deep, or have too many attributes.

    Raises:
        UnreadableDocument: the depth is above `MAX_DEPTH`.
        ResourceLimit: an element has more than `MAX_ATTRIBUTES`.
    """
    check_attributes(text)
    _check_depth(text)


def check_attributes(text: str) -> None:
    """Refuse elements with more than `MAX_ATTRIBUTES` attributes.

    Raises:
        ResourceLimit: there is one.
    """
    for tag in _ATTRIBUTES.finditer(text):
        start, end = tag.span("own")
        if end - start > 2 * MAX_ATTRIBUTES:  # each takes two characters at least
            count = sum(1 for _ in _NAME_AND_VALUE.finditer(text, start, end))
            if count > MAX_ATTRIBUTES:
                raise ResourceLimit(f"an element has {count} attributes; the limit is {MAX_ATTRIBUTES}")


def _check_depth(text: str) -> None:
    depth = 0
    for tag in _TAG.finditer(text):
        if tag[2].lower() not in _NOT_NESTING:
            depth = max(0, depth - 1) if tag[1] else depth + 1
            if depth > MAX_DEPTH:
                raise UnreadableDocument(f"the elements of the HTML are nested more than {MAX_DEPTH} deep")
