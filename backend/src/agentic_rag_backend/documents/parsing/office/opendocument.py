"""What the parsers of OpenDocument files share: the container, its properties and body, and the texts of its elements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from agentic_rag_backend.documents.metadata_checks import keep_valid_fields
from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.documents.parsing.inline_scripts import SUBSCRIPT, SUPERSCRIPT, replace_script
from agentic_rag_backend.documents.parsing.office.drawings.opendocument_objects import EmbeddedObjects
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.documents.parsing.omissions import Omissions
from agentic_rag_backend.errors import UnreadableDocument

MAX_SPACES = 1_000

MAIN, STYLES, _META, _MANIFEST = "content.xml", "styles.xml", "meta.xml", "META-INF/manifest.xml"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_LOWERED, _RAISED = re.compile(r"-[1-9]"), re.compile(r"\+?[1-9]")
LEFT_OUT = frozenset({"tracked-changes", "annotation", "annotation-end", "ruby-text", "sequence-decls", "desc", "forms"})
_APART = LEFT_OUT | {"text-box", "note", "table", "number", ""}
"""Elements within a paragraph that are no part of its text."""
_FIELDS = {
    "author": ("initial-creator", "creator"), "created": ("creation-date",), "modified": ("date",), "subject": ("subject",),
    "keywords": ("keyword",), "language": ("language",),
}  # fmt: skip


class OpenDocumentParser:
    """The methods that are the same for texts, sheets and slides."""

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Open the container and read the title. A part of a ZIP file cannot be opened."""
        return Preview(title=read_properties(open_container(head))[0] if is_whole else None, text="")

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are headings is not known."""
        return ParsedDocument(text=text)


def open_container(content: bytes) -> ZipContainer:
    """Return the members of an OpenDocument file.

    Raises:
        UnreadableDocument: it is damaged or encrypted.
    """
    container = ZipContainer(content)
    if _MANIFEST in container and b"encryption-data" in container.read_member(_MANIFEST):
        raise UnreadableDocument("the file is encrypted; remove its password")
    if MAIN not in container:
        raise UnreadableDocument(f"the file is damaged: it has no member {MAIN!r}")
    return container


def read_properties(container: ZipContainer) -> tuple[str | None, dict[str, Any]]:
    """Return the title of an OpenDocument file and its other properties as metadata. A damaged list of them is empty."""
    try:
        root = container.read_tree(_META)
    except UnreadableDocument:
        return None, {}
    properties = {
        local_name(element): " ".join((element.text or "").split())[:500] for element in reversed(list(walk_elements(root)))
    }
    fields = {name: next(filter(None, map(properties.get, names)), None) for name, names in _FIELDS.items()}
    return properties.get("title") or None, keep_valid_fields({name: value for name, value in fields.items() if value})


def open_body(container: ZipContainer, kind: str) -> tuple[etree._Element, etree._Element]:
    """Return the root element of the content and its body, with embedded charts and formulas as text.

    Args:
        kind: name of the body's element: "text" or "presentation".

    Raises:
        UnreadableDocument: it has no such body.
    """
    root = container.read_tree(MAIN)
    body = root.find(f".//{{*}}body/{{*}}{kind}")
    if body is None:
        raise UnreadableDocument(f"the OpenDocument {kind} is damaged: it has no body")
    EmbeddedObjects(container).replace_objects(body)
    return root, body


def normalise_body(root: etree._Element, body: etree._Element, omissions: Omissions) -> None:
    """Write superscripts and subscripts on the line, and count comments, which are not read."""
    positions = {
        style.get(_STYLE + "name"): properties.get(_STYLE + "text-position", "")
        for style in root.iter(_STYLE + "style")
        for properties in style.iterfind(_STYLE + "text-properties")
    }
    for span in list(body.iter(_TEXT + "span")):
        position = positions.get(span.get(_TEXT + "style-name"), "")
        if position.startswith("sub") or _LOWERED.match(position):
            replace_script(span, SUBSCRIPT, blocks={"p", "h"})
        elif position.startswith("super") or _RAISED.match(position):
            replace_script(span, SUPERSCRIPT, blocks={"p", "h"})
    omissions.add("comments", count=sum(local_name(element) == "annotation" for element in body.iter()))


def list_items(block: etree._Element) -> Iterator[str]:
    """Yield the texts of the items of a list, those within each other included."""
    for element in walk_elements(block, without=_APART):
        if local_name(element) in {"p", "h"} and (text := text_of(element).strip()):
            yield text


def cell_text(cell: etree._Element) -> str:
    """Return the text of a table's cell without the tables within it."""
    blocks = walk_elements(cell, without={*LEFT_OUT, "table"}, leaf_names={"p", "h"})
    return "\n".join(text_of(block).strip() for block in blocks if local_name(block) in {"p", "h"})


def text_of(paragraph: etree._Element) -> str:
    """Return the text of a paragraph without its text boxes. A note is its citation in brackets."""
    parts = [paragraph.text or ""]
    stack = [(paragraph, iter(paragraph))]
    while stack:
        parent, children = stack[-1]
        element = next(children, None)
        if element is None:
            stack.pop()
            parts.append(parent.tail or "" if stack else "")
            continue
        parts.append(_read_beginning(element))
        if local_name(element) in _APART:
            parts.append(element.tail or "")
        else:
            stack.append((element, iter(element)))
    return "".join(parts)


def _read_beginning(element: etree._Element) -> str:
    """Return the text of an element before its first child."""
    name = local_name(element)
    if name == "s":
        count = element.get(_TEXT + "c", "1")
        return " " * (min(int(count), MAX_SPACES) if count.isdecimal() and len(count) < 9 else 1)
    if name == "note":
        return f"[{element.findtext(f'{_TEXT}note-citation') or ''}]"
    if name in _APART:
        return ""
    return {"tab": "\t", "line-break": "\n"}.get(name, element.text or "")
