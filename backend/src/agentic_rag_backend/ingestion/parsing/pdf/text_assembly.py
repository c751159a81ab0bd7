"""Builds the text of a PDF document from its paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.pdf.headings import Outline, larger_type_level, levels_by_size, match_outline
from agentic_rag_backend.ingestion.parsing.pdf.page_layout import PageLayout
from agentic_rag_backend.ingestion.parsing.pdf.paragraphs import HYPHENATED, paragraphs_of
from agentic_rag_backend.ingestion.parsing.pdf.tables.ruled_tables import Table
from agentic_rag_backend.ingestion.parsing.pdf.text_lines import TextLine, enclose_boxes
from agentic_rag_backend.ingestion.parsing.pdf.text_words import on_page

_COMPOUND = re.compile(r"(?<!\w)\w+-\w+")
_LAST_PART = re.compile(r"(?<!\w)\w+$")
_FIRST_PART = re.compile(r"\w+")


def assemble_text(builder: TextBuilder, pages: Sequence[PageLayout], outline: Outline, last_lines: Sequence[TextLine]) -> None:
    """Add the text of ``pages`` to a builder. ``last_lines`` follow it."""
    lines = [line for page in pages for line in page.lines]
    places = _Places({page.number: page.label for page in pages})
    compounds = _list_compounds(lines)
    blocks = paragraphs_of(column for page in pages for column in page.columns)
    outlined_blocks = [(block, None if isinstance(block, Table) else match_outline(block, outline)) for block in blocks]
    levels = levels_by_size(lines) if not any(heading for _, heading in outlined_blocks) else {}
    for paragraph, heading in outlined_blocks:
        if isinstance(paragraph, Table):
            row_places = zip(paragraph.pages, paragraph.boxes, strict=True)
            row_locations = [places.of_row(page, box) for page, box in row_places]
            paragraph.lay_out().write_table(builder, row_locations, header_rows=paragraph.header_rows)
            continue
        level, count = heading or (larger_type_level(paragraph, levels), len(paragraph.lines))
        if level is None:
            count = 0
        elif count:
            title = _join_lines(paragraph.lines[:count], paragraph.joins, compounds)
            builder.add_heading(level, title, **places.locate_lines(paragraph.lines[:count]))
        text_lines, joins = paragraph.lines[count:], paragraph.joins[count:]
        texts = _join_hyphens(text_lines, joins, compounds)
        builder.add_lines([(text, places.locate_line(line)) for text, line in zip(texts, text_lines, strict=True)], joins=joins)
    builder.add_lines([(line.whole, places.locate_line(line)) for line in last_lines])


class _Places:
    def __init__(self, labels: Mapping[int, str | None]) -> None:
        self._labels = labels

    def locate_line(self, line: TextLine) -> dict[str, Any]:
        return {"page": line.page, "label": self._labels[line.page], "box": on_page(line.box, line.turn)}

    def of_row(self, page: int, box: Box) -> dict[str, Any]:
        """Return the place of a table's row."""
        return {"page": page, "label": self._labels[page], "box": on_page(box, 0)}

    def locate_lines(self, lines: Sequence[TextLine]) -> dict[str, Any]:
        """Return the place of a heading, on its first page."""
        first_line = lines[0]
        box = enclose_boxes(line.box for line in lines if (line.page, line.turn) == (first_line.page, first_line.turn))
        return {**self.locate_line(first_line), "box": on_page(box, first_line.turn)}


def _list_compounds(lines: Iterable[TextLine]) -> frozenset[str]:
    """Return the words that the document writes with a hyphen within a line."""
    return frozenset(word.casefold() for line in lines if "-" in line.text for word in _COMPOUND.findall(line.text))


def _join_hyphens(lines: Sequence[TextLine], joins: Sequence[str], compounds: frozenset[str]) -> list[str]:
    """Return the text of each line. A hyphen at its end is left out if only the end of the line caused it."""
    texts = []
    for index, line in enumerate(lines):
        inside = index < len(joins) and joins[index] == HYPHENATED
        texts.append(line.text if inside and _is_divided_word(line.text, lines[index + 1].text, compounds) else line.whole)
    return texts


def _is_divided_word(before: str, after: str, compounds: frozenset[str]) -> bool:
    """Whether a hyphen between two lines only divides a word: it is not that of a compound, a name or a number."""
    head, tail = _LAST_PART.search(before), _FIRST_PART.match(after)
    if head is None or tail is None or not tail[0][0].islower() or not head[0][-1].isalpha():
        return False
    return f"{head[0]}-{tail[0]}".casefold() not in compounds


def _join_lines(lines: Sequence[TextLine], joins: Sequence[str], compounds: frozenset[str]) -> str:
    inner = joins[: len(lines) - 1]
    texts = _join_hyphens(lines, inner, compounds)
    return "".join(text + join for text, join in zip(texts, [*inner, ""], strict=True))
