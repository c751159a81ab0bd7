"""Reads the pages of a PDF document: their own words, values of forms, comments, and words recognised in pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.documents.parsing.omissions import Omissions
from agentic_rag_backend.documents.parsing.pdf.details import label_of
from agentic_rag_backend.documents.parsing.pdf.forms.annotations import annotations_of
from agentic_rag_backend.documents.parsing.pdf.opening import load_page
from agentic_rag_backend.documents.parsing.pdf.page_layout import PageLayout, layout_of
from agentic_rag_backend.documents.parsing.pdf.quality.readability import NAMELESS, count_readable, find_problem
from agentic_rag_backend.documents.parsing.pdf.quality.visibility import HiddenWords
from agentic_rag_backend.documents.parsing.pdf.scanned.scans import FEW_CHARACTERS, Scans
from agentic_rag_backend.documents.parsing.pdf.tables.ruled_tables import Table
from agentic_rag_backend.documents.parsing.pdf.text_lines import TextLine
from agentic_rag_backend.documents.parsing.pdf.text_words import PdfWord, words_of
from agentic_rag_backend.errors import UnreadableDocument

FEWEST_CHARACTERS = 10
"""A document with fewer characters and with pictures of pages is image only."""
_XFA_UNREADABLE = "the PDF file is an XFA form, whose text cannot be read: print it as PDF"


@dataclass(slots=True)
class PageReading:
    """Reads the pages of one document. What nobody sees is counted in ``omissions``."""

    document: pypdfium2.PdfDocument
    scans: Scans
    omissions: Omissions
    comments: list[TextLine] = field(default_factory=list)
    """Comments on the pages, which stand outside of their text."""
    _hidden: int = 0
    _readable: int = 0
    """Characters that their fonts name."""

    def read_layouts(self) -> list[PageLayout]:
        """Return the layout of every page that is not damaged.

        Raises:
            UnreadableDocument: every page is damaged, or has no text that can be read.
        """
        count = len(self.document)
        labels = [label_of(self.document, index) for index in range(count)]
        labelled = any(label not in {None, str(number)} for number, label in enumerate(labels, start=1))
        if self.document.get_formtype() != pdfium.FORMTYPE_NONE:
            self.document.init_forms()
        hidden_words = HiddenWords()
        layouts: list[PageLayout] = []
        for number, label in enumerate(labels, start=1):
            page = load_page(self.document, number - 1)
            if page is None:
                continue
            try:
                words = list(self._read_words(page, number, hidden_words))
                layouts.append(layout_of(words, number, label if labelled else None, page))
            except pypdfium2.PdfiumError:
                continue
            page.close()
        if not layouts:
            raise UnreadableDocument("the PDF file is damaged: none of its pages can be read")
        layouts = self.scans.laid_out(layouts)
        self._refuse_unreadable(layouts)
        return layouts

    def _read_words(self, page: pypdfium2.PdfPage, number: int, hidden_words: HiddenWords) -> Iterator[PdfWord]:
        hidden_words.open_page(page)
        words = words_of(page, hidden_words)
        self.omissions.add("words that cannot be seen", f"page {number}", count=hidden_words.hidden)
        self._hidden += hidden_words.hidden
        text = " ".join(word.text for word in words)
        fault = find_problem(text)
        self._readable += count_readable(text) if fault else len(text)
        if fault is not None or sum(len(word.text) for word in words) < FEW_CHARACTERS:
            self.scans.read_page(page, number, words, fault)
        annotations = annotations_of(page, number, words)
        self.omissions.add("hidden annotations", f"page {number}", count=annotations.hidden)
        self.omissions.add("annotations beyond a limit of characters", f"page {number}", count=annotations.omitted)
        self.omissions.add("files attached to places of pages", f"page {number}", count=annotations.files)
        self.comments += annotations.comments
        yield from words
        yield from annotations.words

    def _refuse_unreadable(self, layouts: Sequence[PageLayout]) -> None:
        has_tables = any(isinstance(column, Table) for layout in layouts for column in layout.columns)
        characters = FEWEST_CHARACTERS if has_tables else sum(len(line.text) for layout in layouts for line in layout.lines)
        if self.scans.pages and characters < FEWEST_CHARACTERS:
            raise self.scans.make_problem(len(self.document))
        if self._hidden and not characters and not self.comments:
            raise UnreadableDocument(
                f"the text of the PDF file cannot be seen: {self._hidden} words are invisible or off the page"
            )
        if NAMELESS in self.scans.faults and not self.scans.recognised and self._readable < FEWEST_CHARACTERS:
            raise UnreadableDocument(f"the text of the PDF file cannot be read: {NAMELESS}; {self.scans.reason}")


def read_placeholder_form(document: pypdfium2.PdfDocument) -> list[str] | None:
    """Return the paragraphs of a form whose only page is a placeholder; None if the pages are the text.

    Raises:
        UnreadableDocument: the form cannot be read.
    """
    if document.get_formtype() != pdfium.FORMTYPE_XFA_FULL or len(document) > 1:
        return None
    from agentic_rag_backend.documents.parsing.pdf.forms.xfa_forms import read_xfa  # few documents need its library

    paragraphs = read_xfa(document)
    if not paragraphs:
        raise UnreadableDocument(_XFA_UNREADABLE)
    return paragraphs
