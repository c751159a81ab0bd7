"""Reads the words that Tesseract writes as tab-separated values (TSV), one row a page, block, paragraph, line and word."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from agentic_rag_backend.documents.recognition.base import NotRecognised, PixelBox, RecognisedWord

MAX_WORDS = 20_000
"""Words of a picture. A page of a newspaper has about 5,000."""
LEAST_CONFIDENCE = 0.3
"""Words below without a letter or digit are noise: specks, pieces of rules. Other words below are more often right than wrong."""
_HEADER = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
_LINE, _WORD = "4", "5"


def words_of(output: bytes) -> list[RecognisedWord]:
    """Return the words of a picture in Tesseract's reading order, from what it wrote. Signs that may be specks are left out.

    Raises:
        NotRecognised: the output is not Tesseract's TSV, or has more than `MAX_WORDS` words.
    """
    head, _, body = output.decode("utf-8", "replace").partition("\n")
    if head.rstrip("\r") != _HEADER:
        raise NotRecognised("Tesseract wrote something else than its table of words")
    words: list[RecognisedWord] = []
    for level, box, confidence, text in _read_rows(body.splitlines()):
        if level == _LINE:
            _end_line(words)
        elif level == _WORD and text and (confidence >= LEAST_CONFIDENCE or any(map(str.isalnum, text))):
            words.append(RecognisedWord(text, box, confidence))
        if len(words) > MAX_WORDS:
            raise NotRecognised(f"the picture has more than {MAX_WORDS} words, which is the limit")
    _end_line(words)
    return words


def _read_rows(lines: Iterable[str]) -> Iterable[tuple[str, PixelBox, float, str]]:
    """Yield the level, box, confidence and text of each row."""
    for line in lines:
        cells = line.split("\t", 11)
        try:
            x_min, top, width, height = map(int, cells[6:10])
            confidence = float(cells[10]) / 100
        except (ValueError, IndexError):
            raise NotRecognised("Tesseract wrote a row that is not one of its table of words") from None
        if min(x_min, top, width, height) < 0 or not math.isfinite(confidence):
            raise NotRecognised("Tesseract wrote a row with a box outside of the picture")
        text = cells[11].strip() if len(cells) > 11 else ""
        yield cells[0], (x_min, top, x_min + width, top + height), min(confidence, 1.0), text


def _end_line(words: list[RecognisedWord]) -> None:
    if words:
        words[-1] = replace(words[-1], ends_line=True)
