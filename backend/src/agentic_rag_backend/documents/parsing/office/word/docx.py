"""DOCX: headings, paragraphs, lists, tables and notes in the order of the text."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterable, Iterator, Mapping

import docx
from docx.document import Document
from lxml import etree

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.drawings.drawing_parts import (
    RELATIONSHIP_ID,
    drawing_id,
    read_root,
    write_drawing,
)
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.documents.parsing.office.word.docx_numbering import Numbering
from agentic_rag_backend.documents.parsing.office.word.docx_tables import read_table
from agentic_rag_backend.documents.parsing.office.word.docx_text import (
    BOXES,
    LEFT_OUT,
    W,
    is_hidden,
    note_mark,
    outline_level,
    read_value,
    styles_of,
    text_of,
)
from agentic_rag_backend.documents.parsing.office.word.inserted_files import MAX_INSERTED, InsertedFiles
from agentic_rag_backend.errors import UnreadableDocument

_MAIN = "word/document.xml"
_NOTES = ("footnote", "endnote")
_UNREAD: Mapping[str, str] = {"comments": "comments", "hdr": "headers and footers", "ftr": "headers and footers"}
_DRAWINGS: Mapping[str, str] = {"chartSpace": "charts", "dataModel": "diagrams"}
"""Root elements of parts that are not read."""


class DocxParser:
    """Parser of Word documents. Deletions, hidden text, comments, headers and footers are left out.

    ``inserts``: whether files that the document inserts are read.
    """

    def __init__(self, *, inserts: bool = True) -> None:
        self._inserts = inserts

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Open the package and read its title."""
        return package.check_package(head, _MAIN, is_whole=is_whole)

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the body of the document."""
        container = ZipContainer(content)
        package.require_main_part(container, _MAIN)
        title, metadata = package.core_properties(container)
        with package.report_damage("Word document"):
            copy = package.copy_package(container)
            inserted = InsertedFiles(container, _MAIN, limit=MAX_INSERTED if self._inserts else 0)
            reader = _Reader(docx.Document(io.BytesIO(copy)), len(copy), inserted)
            reader.read_body()
        return reader.builder.build(title=title or reader.title, metadata=metadata)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are headings is not known."""
        return ParsedDocument(text=text)


class _Reader:
    def __init__(self, document: Document, size_bytes: int, inserted: InsertedFiles) -> None:
        self._inserted = inserted
        self.builder = TextBuilder(size_bytes)
        self.title: str | None = None
        self._body = document.element.body
        roots = dict(_list_roots(document))
        parts = {kind: root for (kind, _), root in roots.items()}
        self._drawings = {relationship_id: root for (_, relationship_id), root in roots.items()}
        self._read_drawings: set[str] = set()
        self._styles = styles_of(parts.get("styles"))
        self._numbering = Numbering(parts.get("numbering"), self._styles)
        self._notes = dict(_read_notes(parts))
        self._items: list[str] = []
        self._count_omissions(roots.values())

    def read_body(self) -> None:
        """Add everything in the body."""
        if self._body is None:
            raise UnreadableDocument("the Word document is damaged: it has no body")
        self._read_blocks(self._body)
        self._end_list()
        for relationship_id, root in self._drawings.items():
            if relationship_id not in self._read_drawings and (kind := _DRAWINGS.get(local_name(root))):
                self.builder.omissions.add(kind)

    def _count_omissions(self, roots: Iterable[etree._Element]) -> None:
        """Count the parts of the document with text that are not read, and its hidden text."""
        for root in roots:
            if kind := _UNREAD.get(local_name(root)):
                comments = [comment for comment in root if local_name(comment) == "comment"] or [root]
                self.builder.omissions.add(kind, count=sum(map(_has_text, comments)))
        if self._body is not None:
            hidden = sum(is_hidden(text) and bool(text.text) for text in self._body.iter(W + "t"))
            self.builder.omissions.add("hidden text", count=hidden)
            self.builder.omissions.add("embedded objects", count=sum(1 for _ in self._body.iter(W + "object")))

    def _read_blocks(self, root: etree._Element) -> None:
        # Tables within cells follow the table, and text boxes their paragraph.
        waiting = [root]
        while waiting:
            for block in walk_elements(waiting.pop(), without=LEFT_OUT, leaf_names={"p", "tbl"}):
                name = local_name(block)
                if name == "p":
                    self._add_paragraph(block)
                elif name == "tbl":
                    self._add_table(block)
                elif name == "altChunk":
                    self._end_list()
                    self._inserted.add_file(self.builder, block.get(RELATIONSHIP_ID))

    def _add_paragraph(self, paragraph: etree._Element) -> None:
        text = text_of(paragraph).strip()
        style = self._styles.get(read_value(paragraph, "pPr/pStyle") or "")
        level = outline_level(paragraph) or (style.level if style else None)
        label = self._make_label(paragraph)
        if text and level is None and label:
            self._items.append(label + text)
        elif text:
            self._end_list()
            if level is None:
                self.builder.add_paragraph(text)
            else:
                self.title = self.title or (" ".join(text.split()) if level == 0 else None)
                self.builder.add_heading(max(level, 1), label.removeprefix("- ") + text)
        self._add_notes(paragraph)

    def _add_notes(self, paragraph: etree._Element) -> None:
        """Add the text boxes, charts and diagrams of a paragraph, and the notes that it refers to."""
        for element in walk_elements(paragraph, without=LEFT_OUT, leaf_names=BOXES):
            name = local_name(element)
            if name in BOXES:
                self._end_list()
                self.builder.add_paragraph("\n".join(text_of(paragraph) for paragraph in element.iter(W + "p")))
            elif relationship_id := drawing_id(element):
                self._end_list()
                self._add_drawing(relationship_id)
            elif name in {"footnoteReference", "endnoteReference"}:
                mark = note_mark(name, element.get(W + "id"))
                if note := self._notes.get(mark):
                    self._end_list()
                    self.builder.add_paragraph(f"[{mark}] {note}")

    def _add_drawing(self, relationship_id: str) -> None:
        """Add a chart or diagram, unless it was added before."""
        if relationship_id not in self._read_drawings:
            self._read_drawings.add(relationship_id)
            write_drawing(self.builder, self._drawings.get(relationship_id))

    def _make_label(self, paragraph: etree._Element) -> str:
        """Count a paragraph of a list, and return its number or sign. Empty: it is in no list."""
        style_id = read_value(paragraph, "pPr/pStyle")
        style = self._styles.get(style_id or "")
        number_id = read_value(paragraph, "pPr/numPr/numId") or (style.number_id if style else None)
        if not number_id:
            return ""
        level = read_value(paragraph, "pPr/numPr/ilvl") or (style.list_level if style else None)
        if level is None:
            return self._numbering.make_label(number_id, self._numbering.level_of(number_id, style_id) or 0)
        return self._numbering.make_label(number_id, int(level)) if level.isdecimal() and len(level) == 1 else ""

    def _end_list(self) -> None:
        if self._items:
            self.builder.add_lines([(item, {}) for item in self._items])
            self._items = []

    def _add_table(self, table: etree._Element) -> None:
        """Add a table and the tables within its cells, or the content of these if it only places them on the page."""
        self._end_list()
        content = read_table(table)
        if content.is_layout():
            for cell in content.cells:
                self._read_blocks(cell)
                self._end_list()
            return
        content.grid.write_table(self.builder, header_rows=content.header_rows)
        for element in walk_elements(table, without={*LEFT_OUT, "tbl"}):
            if relationship_id := drawing_id(element):
                self._add_drawing(relationship_id)
        for nested in content.nested:
            self._add_table(nested)


def _has_text(root: etree._Element) -> bool:
    """Return whether an element has words."""
    return any(local_name(element) == "t" and any(map(str.isalpha, element.text or "")) for element in walk_elements(root))


def _list_roots(document: Document) -> Iterator[tuple[tuple[str, str], etree._Element]]:
    """Yield the kind and the id of each relationship with a part, and the root element of this part."""
    for relationship in document.part.rels.values():
        root = None if relationship.is_external else read_root(relationship.target_part)
        if root is not None:
            yield (posixpath.basename(relationship.reltype), relationship.rId), root


def _read_notes(parts: dict[str, etree._Element]) -> Iterator[tuple[str, str]]:
    """Yield the mark and the text of each note. Notes with a type are separators."""
    for kind in _NOTES:
        for note in parts.get(f"{kind}s", ()):
            if note.get(W + "type") in {None, "normal"}:
                yield (
                    note_mark(kind, note.get(W + "id")),
                    " ".join(text_of(paragraph).strip() for paragraph in note.iter(W + "p")).strip(),
                )
