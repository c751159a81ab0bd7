"""Parser of PDF files."""

from __future__ import annotations

from dataclasses import replace

import pypdfium2

from agentic_rag_backend.domain.media_types import PDF_BEGINNING
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.pdf.details import label_of, metadata_of, title_of
from agentic_rag_backend.ingestion.parsing.pdf.furniture import without_furniture
from agentic_rag_backend.ingestion.parsing.pdf.headings import outline_of
from agentic_rag_backend.ingestion.parsing.pdf.opening import load_page, open_pdf
from agentic_rag_backend.ingestion.parsing.pdf.page_layout import PageLayout, layout_of
from agentic_rag_backend.ingestion.parsing.pdf.scanned.scans import FEW_CHARACTERS, Scans
from agentic_rag_backend.ingestion.parsing.pdf.tables.ruled_tables import Table
from agentic_rag_backend.ingestion.parsing.pdf.text_assembly import assemble_text
from agentic_rag_backend.ingestion.parsing.pdf.text_words import words_of
from agentic_rag_backend.ingestion.recognition.base import NoRecogniser, Recogniser

FEWEST_CHARACTERS = 10
"""A document with fewer characters and with pictures of pages is image only."""


class PdfParser:
    """Parser of PDF. The title is that of the metadata. ``recogniser`` reads pages that are pictures."""

    def __init__(self, recogniser: Recogniser | None = None) -> None:
        self._recogniser = recogniser or NoRecogniser()

    def with_recogniser(self, recogniser: Recogniser) -> PdfParser:
        """Return a parser that reads pictures with ``recogniser``."""
        return PdfParser(recogniser)

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Check the signature; open the file if all of it is there."""
        if b"%PDF-" not in head[:PDF_BEGINNING]:
            raise UnreadableDocument("the file is not a PDF file: it does not begin with %PDF-")
        if not is_whole:
            return Preview(title=None, text="")
        with open_pdf(head) as document:
            return Preview(title=title_of(document), text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the text of the pages, a region for each line."""
        scans = Scans(self._recogniser)
        with open_pdf(content) as document:
            pages = _read_layouts(document, scans)
            builder = TextBuilder()
            heads = without_furniture(pages, builder.omissions)
            assemble_text(builder, pages, outline_of(document), heads)
            parsed = builder.build(title=title_of(document), metadata=metadata_of(document) | scans.metadata)
        return replace(parsed, warnings=(*parsed.warnings, *scans.warnings), failures=scans.failures)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; its structure was in the file."""
        return ParsedDocument(text=text)


def _read_layouts(document: pypdfium2.PdfDocument, scans: Scans) -> list[PageLayout]:
    """Return the layout of every page that is not damaged.

    Raises:
        UnreadableDocument: every page is damaged, or the pages are pictures whose text is not recognised.
    """
    layouts, damaged = [], 0
    labelled = any(label_of(document, index) not in {None, str(index + 1)} for index in range(len(document)))
    for index in range(len(document)):
        page = load_page(document, index)
        if page is None:
            damaged += 1
            continue
        try:
            words = words_of(page)
            if sum(len(word.text) for word in words) < FEW_CHARACTERS:
                scans.read_page(page, index + 1, words)
            layouts.append(layout_of(words, index + 1, label_of(document, index) if labelled else None, page))
        except pypdfium2.PdfiumError:
            damaged += 1
            continue
        page.close()
    if damaged == len(document):
        raise UnreadableDocument("the PDF file is damaged: none of its pages can be read")
    layouts = scans.laid_out(layouts)
    tables = any(isinstance(column, Table) for layout in layouts for column in layout.columns)
    characters = FEWEST_CHARACTERS if tables else sum(len(line.text) for layout in layouts for line in layout.lines)
    if scans.pages and characters < FEWEST_CHARACTERS:
        raise scans.make_problem(len(document))
    return layouts
