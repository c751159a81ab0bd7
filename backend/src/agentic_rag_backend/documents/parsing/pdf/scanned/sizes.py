"""Font sizes of recognised words. A recogniser gives the boxes of the ink, so the height of a word depends on its letters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median

from agentic_rag_backend.documents.parsing.pdf.text_words import PdfWord
from agentic_rag_backend.domain.location import Box

_NEIGHBOURS = 3
"""Words on each side whose heights a word's box takes over. On a page that is not straight, the whole line would be too high."""
_DESCENDERS = frozenset("gjpqyQç,;()[]{}|/@$§")
_LOW = frozenset("acemnorsuvwxz.:")
"""Letters without a part above the middle height."""
_LOWER_PART, _UPPER_PART, _MIDDLE = 0.22, 0.28, 0.5
"""Parts of the height from the lowest to the highest letter: below the base line, above the middle height, and between."""
_FONT_SIZE = 1.15
"""Font size as a multiple of that height."""
_FEW_LETTERS = 5
"""A line with fewer letters and digits, such as a number, says little about its font."""
UNKNOWN = 0.0
"""Font size of such a line. `settle_sizes` replaces it by the document's usual one."""
_STEP = 1.25
"""Sizes that differ by less than half of this factor are one."""


def raise_boxes(texts: Sequence[str], boxes: Sequence[Box]) -> tuple[list[Box], float]:
    """Return the boxes of a line's words, each as high as the words around it, and the line's font size or `UNKNOWN`.

    Boxes are in the frame of the text, so that the line runs to the right. The size is in their unit.
    """
    raised_boxes = []
    for index, box in enumerate(boxes):
        neighbours = boxes[max(index - _NEIGHBOURS, 0) : index + _NEIGHBOURS + 1]
        raised_boxes.append(
            (box[0], min(neighbour[1] for neighbour in neighbours), box[2], max(neighbour[3] for neighbour in neighbours))
        )
    if sum(map(str.isalnum, "".join(texts))) < _FEW_LETTERS:
        return raised_boxes, UNKNOWN
    heights = (_font_size_of(text, box) for text, box in zip(texts, boxes, strict=True) for _ in text)
    return raised_boxes, _FONT_SIZE * median(heights)


def _font_size_of(text: str, box: Box) -> float:
    """Return the height from the lowest to the highest letter of the word's font."""
    low, high = _DESCENDERS.isdisjoint(text), _LOW.union(_DESCENDERS).issuperset(text)
    share = _MIDDLE + (0 if low else _LOWER_PART) + (0 if high else _UPPER_PART)
    return (box[3] - box[1]) / share


def settle_sizes(words: Sequence[PdfWord]) -> None:
    """Replace the font sizes of a document by its usual size and steps above and below it."""
    characters: Counter[float] = Counter()
    for word in words:
        if word.size != UNKNOWN:
            characters[word.size] += len(word.text)
    usual_size = _weighted_median(characters)
    for word in words:
        word.size = usual_size if word.size == UNKNOWN else usual_size * _STEP ** round(math.log(word.size / usual_size, _STEP))


def _weighted_median(characters: Counter[float]) -> float:
    """Return the size that half of the characters have at most; 10 points if there are none."""
    remaining = characters.total() / 2
    for size in sorted(characters):
        remaining -= characters[size]
        if remaining <= 0:
            return size
    return 10.0
