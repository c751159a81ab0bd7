"""Headings: those of the outline, where the text has them; otherwise lines in larger type."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice

import pypdfium2

from agentic_rag_backend.documents.parsing.pdf.paragraphs import Paragraph
from agentic_rag_backend.documents.parsing.pdf.text_lines import TextLine

MAX_OUTLINE = 10_000
"""Entries of an outline that are read."""
MAX_LEVEL = 6
MAX_HEADING_CHARACTERS = 200
MAX_HEADING_LINES = 3
_LARGER = 1.12
"""Headings are larger than the text by this factor."""
_NOT_A_LETTER = re.compile(r"[\W_]+")
_NUMBERED = re.compile(r"(?:(?:chapter|section|part|appendix|kapitel|teil)?(?:\d+|[a-z]|[ivx]+))?")

Outline = Mapping[int, Mapping[str, int]]
"""By page, the level of each title. Titles are written as `_key_of` returns them."""


def outline_of(document: pypdfium2.PdfDocument) -> Outline:
    """Return the titles of the outline by page."""
    outline: dict[int, dict[str, int]] = defaultdict(dict)
    try:
        for entry in islice(document.get_toc(max_depth=MAX_LEVEL), MAX_OUTLINE):
            target = entry.get_dest()
            page = target.get_index() if target is not None else None
            title = _key_of(entry.get_title())
            if page is not None and title:
                outline[page + 1].setdefault(title, entry.level + 1)
    except pypdfium2.PdfiumError:  # the rest of the outline is damaged
        pass
    return outline


def _key_of(title: str) -> str:
    return _NOT_A_LETTER.sub("", title.casefold())


def match_outline(paragraph: Paragraph, outline: Outline) -> tuple[int, int] | None:
    """Return the level of the heading with which ``paragraph`` begins, and the number of its lines."""
    titles = outline.get(paragraph.lines[0].page)
    if not titles:
        return None
    text = ""
    for count, line in enumerate(paragraph.lines[:MAX_HEADING_LINES], start=1):
        text += _key_of(line.text)
        for title, level in titles.items():
            if text == title or (text.endswith(title) and _NUMBERED.fullmatch(text[: -len(title)])):
                return level, count
            if title.endswith(text) and _NUMBERED.fullmatch(title[: -len(text)]):
                return level, count
    return None


def levels_by_size(lines: Iterable[TextLine]) -> Mapping[float, int]:
    """Return the level of each font size that is larger than that of the text."""
    characters: Counter[float] = Counter()
    for line in lines:
        characters[round_size(line)] += len(line.text)
    if not characters:
        return {}
    body = characters.most_common(1)[0][0]
    larger = sorted((size for size in characters if size >= _LARGER * body), reverse=True)
    return {size: min(level, MAX_LEVEL) for level, size in enumerate(larger, start=1)}


def round_size(line: TextLine) -> float:
    """Return the font size of a line to half a point."""
    return round(line.size * 2) / 2


def larger_type_level(paragraph: Paragraph, levels: Mapping[float, int]) -> int | None:
    """Return the level of the heading that a whole paragraph in larger type is; None if it is none."""
    level = levels.get(round_size(paragraph.lines[0]))
    length = sum(len(line.text) for line in paragraph.lines)
    if level is None or len(paragraph.lines) > MAX_HEADING_LINES or length > MAX_HEADING_CHARACTERS:
        return None
    return level if any(map(_has_word, paragraph.lines)) else None


def _has_word(line: TextLine) -> bool:
    return sum(character.isalpha() for character in line.text) >= 2
