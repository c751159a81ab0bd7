"""Pages that are pictures: finds them, draws them for a recogniser, and says what became of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from statistics import fmean
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.documents.parsing.pdf.page_layout import PageLayout, layout_of
from agentic_rag_backend.documents.parsing.pdf.scanned.recognised import words_on
from agentic_rag_backend.documents.parsing.pdf.scanned.sizes import settle_sizes
from agentic_rag_backend.documents.parsing.pdf.text_words import PdfWord
from agentic_rag_backend.documents.recognition.base import NotRecognised, Picture, Recogniser, confidence_of
from agentic_rag_backend.domain.document import Failure
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

DPI = 300
"""Resolution at which pages are recognised: the one with the fewest mistakes; see docs/reference/benchmarks/formats.md."""
MAX_PICTURE_PIXELS = 25_000_000
"""A page of A4 has 8.7 million at 300 dpi. A larger page is drawn at a lower resolution."""
MAX_IMAGE_PIXELS = 100_000_000
"""Pixels of an image of the file. A larger one would take most of the memory of the process."""
FEW_CHARACTERS = 40
"""A page with fewer characters of its own may be a picture with a stamp, such as "Scanned with …" or a number."""
LEAST_PAGE_CONFIDENCE = 0.5
"""Mean confidence of a page's words. Below it, they are not text: the page is a photograph or a drawing."""
_PICTURE_SHARE = 0.5
_MAX_RANGES = 12
_MAX_REASONS = 5


@dataclass(slots=True)
class Scans:
    """Results of recognition for the pages of one document that are pictures. Pages count from 1."""

    recogniser: Recogniser
    pages: list[int] = field(default_factory=list)
    """Pages without text of their own."""
    recognised: dict[int, list[PdfWord]] = field(default_factory=dict)
    unread: dict[str, list[int]] = field(default_factory=dict)
    """For each reason, the pages that were not recognised."""
    faults: dict[str, list[int]] = field(default_factory=dict)
    """For each fault of the text, its pages that were not recognised."""
    _own: dict[int, Sequence[PdfWord]] = field(default_factory=dict)
    _confidences: list[float] = field(default_factory=list)
    _code: str = "ocr_failed"

    def read_page(self, page: pypdfium2.PdfPage, number: int, words: Sequence[PdfWord], fault: str | None = None) -> None:
        """Recognise a page if it is a picture. ``words`` are those of its text, few or none.

        With a ``fault`` of its text, any page is recognised, and the result replaces the text.
        """
        if fault is None and not is_picture(page):
            return
        if not words:
            self.pages.append(number)
        try:
            if (stopped := self.recogniser.stopped) is not None:
                raise stopped
            picture = picture_of(page)
            recognised = self.recogniser.words(picture)
        except NotRecognised as error:
            if fault is not None:
                self.faults.setdefault(fault, []).append(number)
            if (fault is None and not words) or self.recogniser.name is not None:
                self._code = error.code
                self.unread.setdefault(str(error), []).append(number)
            return
        if recognised and confidence_of(recognised) >= LEAST_PAGE_CONFIDENCE:
            self._confidences += [word.confidence for word in recognised]
            own_words = words if fault is None else ()
            self._own[number], self.recognised[number] = own_words, _words_outside(own_words, words_on(page, picture, recognised))
        elif fault is not None:
            self.faults.setdefault(fault, []).append(number)

    def laid_out(self, layouts: Iterable[PageLayout]) -> list[PageLayout]:
        """Return the layouts, of recognised pages with their words. ``layouts`` are those of the pages' own text."""
        settle_sizes([word for words in self.recognised.values() for word in words])
        return [
            layout_of([*self._own[layout.number], *self.recognised[layout.number]], layout.number, layout.label)
            if layout.number in self.recognised
            else layout
            for layout in layouts
        ]

    @property
    def metadata(self) -> dict[str, Any]:
        """Return ``ocr_pages``, the number of recognised pages, and ``ocr_confidence`` in [0, 1], if there are any."""
        if not self.recognised:
            return {}
        return {"ocr_pages": len(self.recognised), "ocr_confidence": round(fmean(self._confidences), 3)}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the owner should know: pages that were recognised, and pages that cannot be."""
        messages = []
        if self.recognised:
            by = f"{self.recogniser.name}; mean confidence {fmean(self._confidences):.0%}"
            messages.append(f"text was recognised in pictures ({by}) on {list_pages(self.recognised)}")
        messages += [f"{list_pages(pages)}: the text is wrong or unreadable: {fault}" for fault, pages in self.faults.items()]
        if self.recogniser.name is None:
            messages += [f"{list_pages(pages)}: pictures without text; {reason}" for reason, pages in self.unread.items()]
        return tuple(messages)

    @property
    def reason(self) -> str:
        """Return why pictures have no recognised text."""
        stopped = self.recogniser.stopped
        return next(iter(self.unread), str(stopped) if stopped else f"no text was recognised in them ({self.recogniser.name})")

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return the failure of the document if a recogniser did not read all of its pictures."""
        if self.recogniser.name is None or not self.unread:
            return ()
        reasons = [f"{list_pages(pages)} ({reason})" for reason, pages in islice(self.unread.items(), _MAX_REASONS)]
        if remaining := sum(map(len, islice(self.unread.values(), _MAX_REASONS, None))):
            reasons.append(f"{remaining} more pages")
        return (Failure("parse", self._code, f"text in pictures was not recognised: {'; '.join(reasons)}"),)

    def make_problem(self, pages: int) -> UnreadableDocument:
        """Return the error of a document with ``pages`` pages whose pictures have no recognised text."""
        kind = ResourceLimit if self.unread and self._code == ResourceLimit.code else UnreadableDocument
        return kind(
            f"the PDF file contains only images: {len(self.pages)} of {pages} pages are pictures without text; {self.reason}"
        )


def is_picture(page: pypdfium2.PdfPage) -> bool:
    """Return whether images cover more than half of the page. Scanners often write a page in several strips."""
    x_min, bottom, right, top = page.get_bbox()
    area = max((right - x_min) * (top - bottom), 1.0)
    covered = 0.0
    for image in page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        x0, y0, x1, y1 = image.get_bounds()
        width, height = min(x1, right) - max(x0, x_min), min(y1, top) - max(y0, bottom)
        if width > 0 and height > 0:
            covered += width * height
            if covered >= _PICTURE_SHARE * area:
                return True
    return False


def picture_of(page: pypdfium2.PdfPage) -> Picture:
    """Return the page as it is shown.

    Raises:
        NotRecognised: an image of the page is too large, or the page is damaged.
    """
    width, height = page.get_size()
    try:
        for image in page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
            columns, rows = image.get_px_size()
            if columns * rows > MAX_IMAGE_PIXELS:
                limit = f"{MAX_IMAGE_PIXELS // 1_000_000} million"
                raise NotRecognised(f"an image has {columns} × {rows} pixels; the limit is {limit}")
        scale = min(DPI / 72, math.sqrt(MAX_PICTURE_PIXELS / max(width * height, 1.0)))
        drawn = page.render(scale=scale, grayscale=True, may_draw_forms=False).to_pil()
    except pypdfium2.PdfiumError:
        raise NotRecognised("the page cannot be drawn") from None
    return Picture(drawn.width, drawn.height, max(round(72 * scale), 1), drawn.tobytes())


def _words_outside(page_words: Sequence[PdfWord], recognised: Sequence[PdfWord]) -> list[PdfWord]:
    """Return the recognised words that the page's own text does not have already."""
    return [word for word in recognised if not any(_is_within(word, page_word) for page_word in page_words)]


def _is_within(word: PdfWord, other_word: PdfWord) -> bool:
    """Return whether the middle of a word is within the box of another one."""
    x, y = (word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2
    x_min, bottom, right, top = other_word.box
    return word.turn == other_word.turn and x_min <= x <= right and bottom <= y <= top


def list_pages(pages: Iterable[int]) -> str:
    """Return pages as a person lists them: "page 3", "pages 1–4, 7"."""
    numbers = sorted(pages)
    breaks = [index for index, (number, next_number) in enumerate(pairwise(numbers), start=1) if next_number != number + 1]
    runs = [numbers[start:end] for start, end in pairwise([0, *breaks, len(numbers)])]
    ranges = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs[:_MAX_RANGES]]
    remaining = sum(map(len, runs[_MAX_RANGES:]))
    return f"page{'s' if len(numbers) > 1 else ''} {', '.join(ranges)}{f' and {remaining} more' if remaining else ''}"
