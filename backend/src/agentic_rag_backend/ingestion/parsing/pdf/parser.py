"""Parser of PDF files."""

from __future__ import annotations

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.domain.media_types import PDF_BEGINNING
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.pdf.assembly import assembled
from agentic_rag_backend.ingestion.parsing.pdf.details import label_of, metadata_of, title_of
from agentic_rag_backend.ingestion.parsing.pdf.furniture import without_furniture
from agentic_rag_backend.ingestion.parsing.pdf.headings import outline_of
from agentic_rag_backend.ingestion.parsing.pdf.opening import loaded, opened
from agentic_rag_backend.ingestion.parsing.pdf.pages import PageLayout, layout_of
from agentic_rag_backend.ingestion.parsing.pdf.tables import Table

FEWEST_CHARACTERS = 10
"""A document with fewer characters and with pictures of pages is image only."""
_PICTURE_SHARE = 0.5


class PdfParser:
    """Parser of PDF. The title is that of the metadata."""

    def check(self, head: bytes, *, whole: bool) -> Preview:
        """Check the signature; open the file if all of it is there."""
        if b"%PDF-" not in head[:PDF_BEGINNING]:
            raise UnreadableDocument("the file is not a PDF file: it does not begin with %PDF-")
        if not whole:
            return Preview(title=None, text="")
        with opened(head) as document:
            return Preview(title=title_of(document), text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the text of the pages, a region for each line."""
        with opened(content) as document:
            pages = _layouts(document)
            without_furniture(pages)
            builder = assembled(pages, outline_of(document))
            return builder.build(title=title_of(document), metadata=metadata_of(document))

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; its structure was in the file."""
        return ParsedDocument(text=text)


def _layouts(document: pypdfium2.PdfDocument) -> list[PageLayout]:
    """Return the layout of every page that is not damaged.

    Raises:
        UnreadableDocument: every page is damaged, or the pages are pictures.
    """
    layouts, pictures, damaged = [], 0, 0
    labelled = any(label_of(document, index) not in {None, str(index + 1)} for index in range(len(document)))
    for index in range(len(document)):
        page = loaded(document, index)
        if page is None:
            damaged += 1
            continue
        try:
            layout = layout_of(page, index + 1, label_of(document, index) if labelled else None)
            pictures += not layout.columns and _is_picture(page)
        except pypdfium2.PdfiumError:
            damaged += 1
            continue
        layouts.append(layout)
        page.close()
    if damaged == len(document):
        raise UnreadableDocument("the PDF file is damaged: none of its pages can be read")
    tables = any(isinstance(column, Table) for layout in layouts for column in layout.columns)
    characters = FEWEST_CHARACTERS if tables else sum(len(line.text) for layout in layouts for line in layout.lines)
    if pictures and characters < FEWEST_CHARACTERS:
        raise UnreadableDocument(
            f"the PDF file contains only images: {pictures} of {len(document)} pages are pictures without text; "
            "text in pictures is not recognised (no OCR)"
        )
    return layouts


def _is_picture(page: pypdfium2.PdfPage) -> bool:
    """Whether an image covers more than half of the page."""
    left, bottom, right, top = page.get_bbox()
    area = max((right - left) * (top - bottom), 1.0)
    for image in page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        x0, y0, x1, y1 = image.get_bounds()
        width, height = min(x1, right) - max(x0, left), min(y1, top) - max(y0, bottom)
        if width > 0 and height > 0 and width * height >= _PICTURE_SHARE * area:
            return True
    return False
