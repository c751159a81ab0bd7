"""Walks trees of XML without recursion."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lxml import etree


def local_name(element: etree._Element) -> str:
    """Return the name of an element without its namespace; an empty string for what is no element."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def walk_elements(
    root: etree._Element, *, without: Collection[str] = (), leaf_names: Collection[str] = ()
) -> Iterator[etree._Element]:
    """Yield the elements below ``root`` in document order.

    Args:
        without: names of elements that are left out with everything in them.
        leaf_names: names of elements that are yielded without what is in them.
    """
    stack = list(reversed(root))
    while stack:
        element = stack.pop()
        name = local_name(element)
        if name and name not in without:
            yield element
            if name not in leaf_names:
                stack.extend(reversed(element))
