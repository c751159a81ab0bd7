"""ODT: headings, paragraphs, lists, tables and notes of OpenDocument texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from agentic_rag_backend.documents.metadata_checks import keep_valid_fields
from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.documents.parsing.inline_scripts import SUBSCRIPT, SUPERSCRIPT, replace_script
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.drawings.opendocument_objects import EmbeddedObjects
from agentic_rag_backend.documents.parsing.office.opendocument_numbering import BULLET, ListNumbering
from agentic_rag_backend.documents.parsing.office.opendocument_tables import is_repeated, read_grid
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


class OdtParser:
    """Parser of OpenDocument texts. Tracked deletions and comments are left out."""

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Open the container and read the title. A part of a ZIP file cannot be opened."""
        return Preview(title=read_properties(open_container(head))[0] if is_whole else None, text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the body of the document."""
        container = open_container(content)
        title, metadata = read_properties(container)
        root = container.read_tree(MAIN)
        body = root.find(".//{*}body/{*}text")
        if body is None:
            raise UnreadableDocument("the OpenDocument text is damaged: it has no body")
        EmbeddedObjects(container).replace_objects(body)
        builder = TextBuilder(container.unzipped_bytes)
        with package.report_damage("OpenDocument text"):
            normalise_body(root, body, builder.omissions)
            objects = sum(local_name(element) == "object" for element in body.iter())
            builder.omissions.add("embedded objects", count=objects)
            _Blocks(builder, ListNumbering(root, _read_styles(container))).add_blocks(body)
        return builder.build(title=title, metadata=metadata)

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


def _read_styles(container: ZipContainer) -> etree._Element | None:
    """Return the root element of the styles; None if they are missing or damaged."""
    try:
        return container.read_tree(STYLES)
    except UnreadableDocument:
        return None


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Adds headings, paragraphs, lists and tables to a text."""

    builder: TextBuilder
    numbering: ListNumbering

    def add_blocks(self, root: etree._Element) -> None:
        """Add the blocks below ``root``."""
        for block in walk_elements(root, without=LEFT_OUT, leaf_names={"p", "h", "table", "list"}):
            name = local_name(block)
            if name == "h":
                self._add_heading(self.numbering.number_heading(block, _read_level(block)), block)
            elif name == "p":
                self.builder.add_paragraph(text_of(block))
            elif name == "list":
                self._add_list(block)
            elif name == "table":
                self._add_table(block)
            if name in {"p", "h", "list"}:
                self._add_notes(block)

    def _add_heading(self, label: str, heading: etree._Element) -> None:
        if text := text_of(heading).strip():
            self.builder.add_heading(min(_read_level(heading), 9), (label or _read_label(heading)) + text)

    def _add_list(self, block: etree._Element) -> None:
        """Add the items of a list. Headings with automatic numbers may be items, too."""
        lines: list[tuple[str, dict[str, Any]]] = []
        for label, element in self.numbering.number_items(block):
            if local_name(element) == "h":
                self.builder.add_lines(lines)
                lines = []
                self._add_heading(label.removeprefix(BULLET), element)
            elif text := text_of(element).strip():
                lines.append((label + text, {}))
        self.builder.add_lines(lines)

    def _add_notes(self, block: etree._Element) -> None:
        """Add the text boxes, notes and charts within a block, after it."""
        for element in walk_elements(block, without=LEFT_OUT, leaf_names={"text-box", "note", "table"}):
            if local_name(element) == "table":
                self._add_table(element)
            elif local_name(element) in {"text-box", "note"}:
                mark = element.findtext(f"{_TEXT}note-citation")
                text = "\n".join(text_of(paragraph) for paragraph in element.iter(_TEXT + "p", _TEXT + "h"))
                self.builder.add_paragraph(f"[{mark}] {text}" if mark else text)

    def _add_table(self, table: etree._Element) -> None:
        """Add a table and the tables within its cells. A table of one cell is a frame around its content."""
        cells = [cell for cell in walk_elements(table, without=LEFT_OUT, leaf_names={"table-cell"}) if _is_cell(cell)]
        if len(cells) == 1 and not is_repeated(cells[0]):
            self.add_blocks(cells[0])
            return
        grid, header_rows = read_grid(table, lambda cell, _: cell_text(cell), without=LEFT_OUT)
        grid.write_table(self.builder, header_rows=header_rows)
        for cell in cells:
            for element in walk_elements(cell, without=LEFT_OUT, leaf_names={"table"}):
                if local_name(element) == "table":
                    self._add_table(element)


def _read_level(heading: etree._Element) -> int:
    level = heading.get(_TEXT + "outline-level", "1")
    return max(int(level), 1) if level.isdecimal() and len(level) < 4 else 1


def _read_label(heading: etree._Element) -> str:
    """Return the number of a heading that the program saved with it, with a space. Empty: it has none."""
    number = " ".join((heading.findtext(_TEXT + "number") or "").split())
    return f"{number} " if number else ""


def list_items(block: etree._Element) -> Iterator[str]:
    """Yield the texts of the items of a list, those within each other included."""
    for element in walk_elements(block, without=_APART):
        if local_name(element) in {"p", "h"} and (text := text_of(element).strip()):
            yield text


def _is_cell(element: etree._Element) -> bool:
    return local_name(element) == "table-cell"


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
