"""Pictures of PDF pages, with boxes drawn on them."""

from __future__ import annotations

import ctypes
import io
import math
from collections.abc import Sequence

import pypdfium2
import pypdfium2.raw as pdfium
from PIL import Image, ImageChops, ImageDraw

from agentic_rag_backend.documents.parsing.base import PageFrame
from agentic_rag_backend.documents.parsing.pdf.opening import load_page, open_pdf
from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.errors import InvalidRequest, NotFound, UnreadableDocument

MAX_SIDE_PIXELS = 4_000
_MARKER = (255, 236, 120)
_EDGE = (224, 130, 0)
_MARGIN_POINTS = 1.5


class PdfRenderer:
    """Draws the pages of a PDF. Pure and blocking, as a `Parser`.

    Both methods raise `UnreadableDocument`, and `NotFound` if there is no page ``number``, which counts from 1.
    """

    def read_frame(self, content: bytes, number: int) -> PageFrame:
        """Return the visible part of a page and its rotation."""
        with open_pdf(content) as document:
            page = _load_page(document, number)
            return PageFrame(box=_visible_box(page), rotation=page.get_rotation())

    def draw_picture(self, content: bytes, number: int, scale: float, boxes: Sequence[Box]) -> bytes:
        """Return a PNG of a page with ``scale`` pixels a point, with ``boxes`` highlighted.

        Raises:
            InvalidRequest: the picture would be too large.
        """
        with open_pdf(content) as document:
            page = _load_page(document, number)
            width, height = (math.ceil(side * scale) for side in page.get_size())
            if max(width, height) > MAX_SIDE_PIXELS:
                largest = math.floor(100 * MAX_SIDE_PIXELS / max(page.get_size())) / 100
                raise InvalidRequest(
                    f"the picture would have {width} × {height} pixels; the limit is {MAX_SIDE_PIXELS} × {MAX_SIDE_PIXELS}; "
                    f"scale can be at most {largest:g} for this page"
                )
            try:
                image = page.render(scale=scale, may_draw_forms=False).to_pil().convert("RGB")
            except pypdfium2.PdfiumError:
                raise UnreadableDocument(f"page {number} of the PDF file is damaged: it cannot be drawn") from None
            if boxes:
                image = _mark_boxes(image, [_on_picture(page, image.size, box) for box in boxes])
            buffer = io.BytesIO()
            image.save(buffer, "PNG")
            return buffer.getvalue()


def _load_page(document: pypdfium2.PdfDocument, number: int) -> pypdfium2.PdfPage:
    if not 1 <= number <= len(document):
        raise NotFound(f"the document has no page {number}; it has {len(document)}")
    page = load_page(document, number - 1)
    if page is None:
        raise UnreadableDocument(f"page {number} of the PDF file is damaged")
    return page


def _visible_box(page: pypdfium2.PdfPage) -> Box:
    x_min, bottom, right, top = page.get_bbox()
    return round(x_min, 2), round(bottom, 2), round(right, 2), round(top, 2)


def _on_picture(page: pypdfium2.PdfPage, size: tuple[int, int], box: Box) -> tuple[int, int, int, int]:
    """Return a box of the page in pixels of its picture: left, top, right, bottom."""
    x_min, bottom, right, top = box
    corners = (
        (x_min - _MARGIN_POINTS, bottom - _MARGIN_POINTS),
        (right + _MARGIN_POINTS, top + _MARGIN_POINTS),
    )
    marked_corners = []
    for x, y in corners:
        column, row = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, column, row)
        marked_corners.append((min(max(column.value, -1), size[0]), min(max(row.value, -1), size[1])))
    (x0, y0), (x1, y1) = marked_corners
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _mark_boxes(image: Image.Image, boxes: Sequence[tuple[int, int, int, int]]) -> Image.Image:
    """Return the picture with boxes as with a marker pen: what is under them stays readable."""
    marker = Image.new("RGB", image.size, (255, 255, 255))
    drawing = ImageDraw.Draw(marker)
    for box in boxes:
        drawing.rectangle(box, fill=_MARKER, outline=_EDGE)
    return ImageChops.multiply(image, marker)
