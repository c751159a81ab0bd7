"""Words of a page that nobody sees: invisible, white on white, in a layer that is off, or off the page."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.documents.parsing.pdf.scanned.scans import is_picture
from agentic_rag_backend.domain.location import Box

if TYPE_CHECKING:
    from PIL import Image  # few documents need its memory

MAX_OBJECTS = 50_000
"""Objects of a page whose text is looked at."""
MAX_PICTURES = 200
"""Pages of a document that are drawn to look at their words. The words of further pages count as seen."""
_FORM_DEPTH = 3
_PICTURE_PIXELS = 2_000_000
_LEAST_CONTRAST = 8
"""Grey levels of 256 between the darkest and the lightest pixel of a word that is seen."""
_LIGHT = 230
"""Least red, green and blue of text that may be white on white."""
_TRANSPARENT = 16
_LAYER = "OC\0".encode("utf-16-le")
"""Name of the mark of a layer's content."""
_UNSEEN_MODES = frozenset({pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP})


class HiddenWords:
    """Finds the words of the pages of one document that nobody sees. A page is drawn only if one of its texts may be hidden."""

    def __init__(self) -> None:
        self._pictures_left = MAX_PICTURES
        self._page: pypdfium2.PdfPage
        self._picture: Image.Image | None = None
        self.bounds: Box = (0.0, 0.0, 0.0, 0.0)
        self.doubtful: frozenset[int] = frozenset()
        """Addresses of texts of the page that may be hidden."""
        self.hidden = 0
        """Words of the page that are hidden."""

    def open_page(self, page: pypdfium2.PdfPage) -> None:
        """Look at the objects of a page, whose words `is_hidden` is asked about next."""
        self._page, self._picture, self.bounds, self.hidden = page, None, page.get_bbox(), 0
        doubtful = frozenset(_list_doubtful(page))
        # The text of a scan lies below its picture.
        self.doubtful = doubtful if doubtful and self._pictures_left > 0 and not is_picture(page) else frozenset()

    def is_hidden(self, textpage: pypdfium2.PdfTextPage, index: int, box: Box) -> bool:
        """Return whether a word is hidden, by the index of its first character and its box on the page."""
        bounds = self.bounds
        hidden = box[2] <= bounds[0] or box[0] >= bounds[2] or box[3] <= bounds[1] or box[1] >= bounds[3]
        if not hidden and self.doubtful:
            text_object = pdfium.FPDFText_GetTextObject(textpage, index)
            if text_object and ctypes.addressof(text_object.contents) in self.doubtful:
                hidden = _is_blank(self._page, self._picture_of_page(), box)
        self.hidden += hidden
        return hidden

    def _picture_of_page(self) -> Image.Image:
        if self._picture is None:
            self._pictures_left -= 1
            self._picture = _draw_page(self._page)
        return self._picture


def _list_doubtful(page: pypdfium2.PdfPage) -> Iterator[int]:
    """Yield the addresses of texts that may be hidden, which only a picture of the page shows."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    for text_object in _list_texts(page):
        if (
            pdfium.FPDFTextObj_GetTextRenderMode(text_object) in _UNSEEN_MODES
            or (
                pdfium.FPDFPageObj_GetFillColor(text_object, red, green, blue, alpha)
                and (min(red.value, green.value, blue.value) >= _LIGHT or alpha.value <= _TRANSPARENT)
            )
            or _is_in_layer(text_object)
        ):
            yield ctypes.addressof(text_object.contents)


def _list_texts(page: pypdfium2.PdfPage) -> Iterator[pdfium.FPDF_PAGEOBJECT]:
    remaining = MAX_OBJECTS
    containers = [(page.raw, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, 0)]
    while containers:
        container, count_objects, get_object, level = containers.pop()
        for index in range(count_objects(container)):
            remaining -= 1
            if remaining < 0:
                return
            page_object = get_object(container, index)
            kind = pdfium.FPDFPageObj_GetType(page_object)
            if kind == pdfium.FPDF_PAGEOBJ_TEXT:
                yield page_object
            elif kind == pdfium.FPDF_PAGEOBJ_FORM and level < _FORM_DEPTH:
                containers.append((page_object, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, level + 1))


def _is_in_layer(text_object: pdfium.FPDF_PAGEOBJECT) -> bool:
    """Whether a text is marked as content of a layer."""
    count = pdfium.FPDFPageObj_CountMarks(text_object)
    if count < 1:
        return False
    buffer, size = (ctypes.c_ushort * 8)(), ctypes.c_ulong()
    for number in range(min(count, _FORM_DEPTH)):
        mark = pdfium.FPDFPageObj_GetMark(text_object, number)
        if pdfium.FPDFPageObjMark_GetName(mark, buffer, ctypes.sizeof(buffer), size) and bytes(buffer)[: size.value] == _LAYER:
            return True
    return False


def _draw_page(page: pypdfium2.PdfPage) -> Image.Image:
    width, height = page.get_size()
    scale = min(1.0, math.sqrt(_PICTURE_PIXELS / max(width * height, 1.0)))
    picture: Image.Image = page.render(scale=scale, grayscale=True, may_draw_forms=False, draw_annots=False).to_pil()
    return picture


def _is_blank(page: pypdfium2.PdfPage, picture: Image.Image, box: Box) -> bool:
    """Whether the picture of a page shows nothing in a box, whose upper and lower edge may touch lines of a table."""
    inset = 0.2 * (box[3] - box[1])
    corners = []
    for x, y in ((box[0], box[1] + inset), (box[2], box[3] - inset)):
        column, row = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page, 0, 0, picture.width, picture.height, 0, x, y, column, row)
        corners.append((min(max(column.value, 0), picture.width), min(max(row.value, 0), picture.height)))
    (x0, y0), (x1, y1) = corners
    x_min, upper = min(x0, x1), min(y0, y1)
    part = picture.crop((x_min, upper, max(x0, x1, x_min + 1), max(y0, y1, upper + 1)))
    darkest, lightest = cast(tuple[int, int], part.getextrema())
    return lightest - darkest < _LEAST_CONTRAST
