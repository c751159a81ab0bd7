"""From recognised words of a picture to words of a page: turned like their text, with boxes in the page's unrotated space."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from unicodedata import bidirectional

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.documents.parsing.pdf.scanned.sizes import raise_boxes
from agentic_rag_backend.documents.parsing.pdf.text_words import PdfWord, turn_box
from agentic_rag_backend.documents.recognition.base import Picture, RecognisedWord
from agentic_rag_backend.domain.location import Box

_RIGHT_TO_LEFT = frozenset({"R", "AL"})
_HYPHENS = "-\u2010"


def words_on(page: pypdfium2.PdfPage, picture: Picture, recognised_words: Sequence[RecognisedWord]) -> list[PdfWord]:
    """Return the words of a picture of ``page`` in their order. Their font sizes are those of their lines."""
    lines = list(_split_lines(recognised_words))
    commonest_turns = Counter(turn for line in lines for turn in _list_turns(line)).most_common(1)
    words = []
    for line in lines:
        # A line of one word does not show its direction.
        turn = next(iter(Counter(_list_turns(line)).most_common(1) or commonest_turns), (0, 1))[0]
        boxes, size = raise_boxes([word.text for word in line], [turn_box(_flip_box(word), turn) for word in line])
        on_page = (turn + page.get_rotation() // 90) % 4
        for word, box in zip(line, boxes, strict=True):
            page_box = _on_page(page, picture, turn_box(box, (4 - turn) % 4))
            words.append(PdfWord(_text_of(word), turn_box(page_box, on_page), 72 * size / picture.dpi, on_page))
    return words


def _split_lines(words: Sequence[RecognisedWord]) -> Iterator[Sequence[RecognisedWord]]:
    start = 0
    for index, word in enumerate(words, start=1):
        if word.ends_line or index == len(words):
            yield words[start:index]
            start = index


def _list_turns(line: Sequence[RecognisedWord]) -> Iterator[int]:
    """Yield the turn of the text from each word to the next one, in quarter turns counterclockwise."""
    back = 2 if any(bidirectional(character) in _RIGHT_TO_LEFT for word in line for character in word.text) else 0
    for previous_word, next_word in pairwise(line):
        right = next_word.box[0] + next_word.box[2] - previous_word.box[0] - previous_word.box[2]
        down = next_word.box[1] + next_word.box[3] - previous_word.box[1] - previous_word.box[3]
        if abs(right) >= abs(down):
            yield back if right >= 0 else 2 - back
        else:
            yield (3 if down > 0 else 1) ^ back


def _text_of(word: RecognisedWord) -> str:
    """Return the text of a word, with the mark of PDFium for a hyphen that only the end of its line may have caused."""
    text = word.text
    divided = word.ends_line and len(text) > 1 and text[-1] in _HYPHENS and text[-2].isalpha()
    return text[:-1] + "\u00ad" if divided else text


def _flip_box(word: RecognisedWord) -> Box:
    """Return the box of a word in pixels, counted upwards like the points of a page: left, bottom, right, top."""
    x_min, top, right, bottom = word.box
    return x_min, -bottom, right, -top


def _on_page(page: pypdfium2.PdfPage, picture: Picture, box: Box) -> Box:
    """Return the box of `_flip_box` in points of the page."""
    corners = []
    for column, row in ((box[0], -box[3]), (box[2], -box[1])):
        x, y = ctypes.c_double(), ctypes.c_double()
        pdfium.FPDF_DeviceToPage(page, 0, 0, picture.width, picture.height, 0, round(column), round(row), x, y)
        corners.append((x.value, y.value))
    (x0, y0), (x1, y1) = corners
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
