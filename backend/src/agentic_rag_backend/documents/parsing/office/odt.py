"""ODT: headings, paragraphs, lists, tables and notes of OpenDocument texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lxml import etree

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.opendocument import (
    LEFT_OUT,
    STYLES,
    OpenDocumentParser,
    cell_text,
    normalise_body,
    open_body,
    open_container,
    read_properties,
    text_of,
)
from agentic_rag_backend.documents.parsing.office.opendocument_numbering import BULLET, ListNumbering
from agentic_rag_backend.documents.parsing.office.opendocument_tables import is_repeated, read_grid
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.errors import UnreadableDocument

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


class OdtParser(OpenDocumentParser):
    """Parser of OpenDocument texts. Tracked deletions and comments are left out."""

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the body of the document."""
        container = open_container(content)
        title, metadata = read_properties(container)
        root, body = open_body(container, "text")
        builder = TextBuilder(container.unzipped_bytes)
        with package.report_damage("OpenDocument text"):
            normalise_body(root, body, builder.omissions)
            objects = sum(local_name(element) == "object" for element in body.iter())
            builder.omissions.add("embedded objects", count=objects)
            _Blocks(builder, ListNumbering(root, _read_styles(container))).add_blocks(body)
        return builder.build(title=title, metadata=metadata)


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


def _is_cell(element: etree._Element) -> bool:
    return local_name(element) == "table-cell"
