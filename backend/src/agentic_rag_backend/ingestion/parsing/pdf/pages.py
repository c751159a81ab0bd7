"""The layout of a page: its lines and tables in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pypdfium2

from agentic_rag_backend.ingestion.parsing.pdf.columns import columns_of
from agentic_rag_backend.ingestion.parsing.pdf.lines import Line, Segment, line_of, rows_of, segments_of
from agentic_rag_backend.ingestion.parsing.pdf.tables import Table, tables_of
from agentic_rag_backend.ingestion.parsing.pdf.words import DIAGONAL, Word, words_of

Column = list[Line] | Table
"""Lines that are read one after the other, or a table between such lines."""


@dataclass(slots=True)
class PageLayout:
    """The columns of page ``number`` in reading order. ``label`` is the page's name in the file."""

    number: int
    label: str | None = None
    columns: list[Column] = field(default_factory=list)

    @property
    def lines(self) -> list[Line]:
        """The lines of all columns."""
        return [line for column in self.columns if not isinstance(column, Table) for line in column]


def layout_of(page: pypdfium2.PdfPage, number: int, label: str | None) -> PageLayout:
    """Return the layout of ``page``. Text in its main direction comes first, text across the page last."""
    by_turn: dict[int, list[Word]] = {}
    for word in words_of(page):
        by_turn.setdefault(word.turn, []).append(word)
    layout = PageLayout(number, label)
    for turn in sorted(by_turn, key=lambda each: (each == DIAGONAL, -len(by_turn[each]))):
        words = by_turn[turn]
        tables: list[Table] = []
        if turn == 0:
            tables, words = tables_of(page, words, number)
        layout.columns += _columns([*segments_of(words), *tables], turn, number)
    return layout


def _columns(items: Sequence[Segment | Table], turn: int, page: int) -> list[Column]:
    columns: list[Column] = []
    for part in columns_of(items):
        below = [item for item in part if isinstance(item, Segment)]
        for table in sorted((item for item in part if isinstance(item, Table)), key=lambda each: -each.box[3]):
            above = [segment for segment in below if segment.box[1] + segment.box[3] > 2 * table.box[1]]
            below = [segment for segment in below if segment.box[1] + segment.box[3] <= 2 * table.box[1]]
            columns += [*_lines(above, turn, page), table]
        columns += _lines(below, turn, page)
    return columns


def _lines(segments: Sequence[Segment], turn: int, page: int) -> list[Column]:
    lines = [line for line in (line_of(row, turn, page) for row in rows_of(segments)) if line is not None]
    return [lines] if lines else []
