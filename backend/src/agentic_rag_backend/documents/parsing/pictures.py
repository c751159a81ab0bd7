"""Pictures of text (PNG, JPEG, TIFF, WebP): each one becomes a page that is recognised as a scanned page of a PDF file is."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

from PIL import Image, ImageOps, ImageSequence

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.documents.recognition.base import Recogniser
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_PIXELS = 50_000_000
"""Pixels of a picture. A page of A4 has 8.7 million at 300 dpi. Its colours take 150 MB while it is read."""
MAX_PICTURES = 500
"""Pictures of a file; a TIFF file may have many."""
_DPI = 300
_LEAST_DPI = 72
_KINDS = ("PNG", "JPEG", "TIFF", "WEBP", "MPO")
_DAMAGE = (OSError, ValueError, SyntaxError, EOFError, ArithmeticError, LookupError, TypeError, struct.error)
_FACTS = ("pages", "ocr_pages", "ocr_confidence")


@dataclass(frozen=True, slots=True)
class ImageParser:
    """Parser of pictures. Without a recogniser, they are refused."""

    recogniser: Recogniser | None = None

    def with_recogniser(self, recogniser: Recogniser) -> ImageParser:
        """Return a parser that reads pictures with ``recogniser``."""
        return replace(self, recogniser=recogniser)

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Read the size of the first picture."""
        with _open_image(head):
            return Preview(title=None, text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the recognised text, a page for each picture of the file."""
        if self.recogniser is None:
            raise UnreadableDocument("the file is a picture, and no text is recognised in pictures")
        with _open_image(content) as image:
            pages = _to_pdf(image)
        try:
            parsed = PdfParser().with_recogniser(self.recogniser).parse(pages)
        except UnreadableDocument as error:
            raise type(error)(f"no text was recognised in the picture: {error.message.rpartition('; ')[2]}") from None
        return replace(parsed, title=None, metadata={name: parsed.metadata[name] for name in _FACTS if name in parsed.metadata})

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; its places are not known."""
        return ParsedDocument(text=text)


def _open_image(content: bytes) -> Image.Image:
    """Return a picture whose pixels are not read yet.

    Raises:
        UnreadableDocument: it is damaged.
        ResourceLimit: it has more than `MAX_PIXELS`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the limit below is lower than the library's
            image = Image.open(io.BytesIO(content), formats=_KINDS)
    except Image.DecompressionBombError:
        raise ResourceLimit(f"the picture has more than {MAX_PIXELS} pixels, which is the limit") from None
    except _DAMAGE:
        raise UnreadableDocument("the picture is damaged") from None
    _check_size(image)
    return image


def _check_size(image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise ResourceLimit(f"a picture has {image.width} × {image.height} pixels; the limit is {MAX_PIXELS}")


def _to_pdf(image: Image.Image) -> bytes:
    """Return a PDF file with a page for each picture."""
    target = io.BytesIO()
    dpi = image.info.get("dpi", (_DPI, _DPI))[0]
    resolution = float(dpi) if isinstance(dpi, int | float) and dpi >= _LEAST_DPI else _DPI
    try:
        frames = _list_frames(image)
        next(frames).save(target, "PDF", resolution=resolution, quality=95, save_all=True, append_images=frames)
    except _DAMAGE:
        raise UnreadableDocument("the picture is damaged") from None
    return target.getvalue()


def _list_frames(image: Image.Image) -> Iterator[Image.Image]:
    """Yield the pictures of a file in grey, upright, on white."""
    for number, frame in enumerate(ImageSequence.Iterator(image), start=1):
        if number > MAX_PICTURES:
            raise ResourceLimit(f"the file has more than {MAX_PICTURES} pictures, which is the limit")
        _check_size(frame)
        upright = ImageOps.exif_transpose(frame)
        if upright.has_transparency_data:
            colours = upright.convert("RGBA")
            upright = Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours)
        yield upright.convert("L")
