"""Opens PDF files, and reports why one cannot be opened."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.errors import UnreadableDocument

MAX_PAGES = 10_000

_REASONS = {
    pdfium.FPDF_ERR_PASSWORD: "the PDF file is encrypted: it needs a password; upload a copy without one",
    pdfium.FPDF_ERR_SECURITY: "the PDF file is encrypted with a method that is not supported; upload a copy without encryption",
}
logging.getLogger("pypdfium2").setLevel(logging.ERROR)  # it would warn of every XFA form, whose data is read without PDFium
_DAMAGED = "the PDF file is damaged: its pages cannot be found"


@contextlib.contextmanager
def open_pdf(content: bytes) -> Iterator[pypdfium2.PdfDocument]:
    """Open a PDF file. A file that only its owner's password protects opens; a wrong cross-reference table is repaired.

    Raises:
        UnreadableDocument: it needs a password, is damaged, or has more than `MAX_PAGES` pages.
    """
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        raise UnreadableDocument(_REASONS.get(error.err_code or 0, _DAMAGED)) from None
    try:
        if len(document) > MAX_PAGES:
            raise UnreadableDocument(f"the PDF file has {len(document)} pages; the limit is {MAX_PAGES}")
        yield document
    finally:
        document.close()


def load_page(document: pypdfium2.PdfDocument, index: int) -> pypdfium2.PdfPage | None:
    """Return a page; None if this page is damaged."""
    try:
        return document[index]
    except pypdfium2.PdfiumError:
        return None
