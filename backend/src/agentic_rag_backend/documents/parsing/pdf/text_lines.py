"""From words to lines: words that follow each other form segments, and the segments of one row of a column form a line."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentic_rag_backend.documents.parsing.pdf.east_asian_text import choose_space, is_single_letter
from agentic_rag_backend.documents.parsing.pdf.text_words import SOFT_HYPHENS, PdfWord
from agentic_rag_backend.domain.location import Box

SEGMENT_GAP = 1.0
"""A gap of this many font sizes ends a segment. It may be the gap between two columns."""
_SAME_ROW = 0.5
"""Two boxes are on one row if this share of the lower one's height is common."""
_GLUED = 0.15
"""A hyphen inside a line is followed by the rest of its word within this many font sizes."""

_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)])
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_CLEAN = {**_CONTROLS, **_LIGATURES}
_LEADERS = re.compile(r"(?:\s?[.…·_]){5,}")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


@dataclass(slots=True)
class Segment:
    """Words that follow each other on a row, without a wide gap."""

    words: list[PdfWord]
    box: Box
    size: float

    @property
    def text(self) -> str:
        """The words, a space between them. A soft hyphen at the end is kept as it is."""
        parts = [self.words[0].text]
        for before, word in pairwise(self.words):
            if before.text[-1] in SOFT_HYPHENS:
                glued = word.box[0] - before.box[2] <= _GLUED * self.size
                parts[-1] = before.text[:-1] + "-"
                parts.append(word.text if glued else " " + word.text)
            else:
                parts.append(choose_space(before.text, word.text) + word.text)
        return "".join(parts)


@dataclass(slots=True)
class TextLine:
    """A line of a column.

    Args:
        text: its words; ``hyphen`` says whether a hyphen that the end of the line may have caused was cut from its end.
        box: in the frame of the text, which `words.on_page` turns back.
        first_width: width of its first word.
        cells: its segments with their left and right ends, if it has several.
    """

    text: str
    box: Box
    size: float
    turn: int
    page: int
    first_width: float
    hyphen: bool = False
    cells: tuple[tuple[float, float, str], ...] = ()

    @property
    def whole(self) -> str:
        """The text with its hyphen."""
        return self.text + "-" if self.hyphen else self.text


def enclose_boxes(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around all ``boxes``, at least one."""
    lefts, bottom, right, top = zip(*boxes, strict=True)
    return min(lefts), min(bottom), max(right), max(top)


def on_one_row(box: Box, other_box: Box) -> bool:
    """Whether two boxes are at one height."""
    common = min(box[3], other_box[3]) - max(box[1], other_box[1])
    return common >= _SAME_ROW * min(box[3] - box[1], other_box[3] - other_box[1])


def segments_of(words: Iterable[PdfWord]) -> list[Segment]:
    """Return the segments of ``words``, which are in the order of the page's content."""
    segments: list[Segment] = []
    for word in words:
        last_segment = segments[-1] if segments else None
        if last_segment is not None and _continues_segment(last_segment, word):
            if len(word.text) > max(len(last_word.text) for last_word in last_segment.words[-2:]):
                last_segment.size = word.size
            last_segment.words.append(word)
            last_segment.box = enclose_boxes((last_segment.box, word.box))
        else:
            segments.append(Segment([word], word.box, word.size))
    return segments


def _continues_segment(segment: Segment, word: PdfWord) -> bool:
    last_word = segment.words[-1]
    gap = word.box[0] - last_word.box[2]
    size = max(last_word.size, word.size)
    return -0.5 * size < gap < SEGMENT_GAP * size and word.box[0] >= last_word.box[0] and on_one_row(last_word.box, word.box)


def rows_of(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Return the segments of a column by rows, from the top; within a row from the left."""
    rows: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda segment: (-(segment.box[1] + segment.box[3]), segment.box[0])):
        if rows and (on_one_row(rows[-1][0].box, segment.box) or on_one_row(rows[-1][-1].box, segment.box)):
            rows[-1].append(segment)
        else:
            rows.append([segment])
    for row in rows:
        row.sort(key=lambda segment: segment.box[0])
    return rows


def line_of(row: Sequence[Segment], turn: int, page: int) -> TextLine | None:
    """Return the line of a row; None if nothing of it can be read."""
    letters = [segment.text for segment in row]
    if _RIGHT_TO_LEFT.search("".join(letters)):
        row, letters = row[::-1], letters[::-1]
    hyphen = letters[-1][-1] in SOFT_HYPHENS
    spaced_out = len(row) > 1 and all(map(is_single_letter, letters))
    text = clean_text(("" if spaced_out else " ").join(letters))
    if not text:
        return None
    return TextLine(
        text=text,
        box=enclose_boxes(segment.box for segment in row),
        size=_usual_size(row),
        turn=turn,
        page=page,
        first_width=row[0].words[0].box[2] - row[0].words[0].box[0],
        hyphen=hyphen,
        cells=tuple((segment.box[0], segment.box[2], clean_text(segment.text)) for segment in row) if len(row) > 1 else (),
    )


def _usual_size(row: Iterable[Segment]) -> float:
    """Return the font size of most characters."""
    characters: Counter[float] = Counter()
    for segment in row:
        for word in segment.words:
            characters[word.size] += len(word.text)
    return characters.most_common(1)[0][0]


def clean_text(text: str) -> str:
    """Return a text without control characters, with ligatures as letters, and with short leaders."""
    text = text.translate(_CLEAN).rstrip(SOFT_HYPHENS).replace("\u00ad", "-").replace("\ufffe", "-")
    return " ".join(_LEADERS.sub(" ...", text).split())
