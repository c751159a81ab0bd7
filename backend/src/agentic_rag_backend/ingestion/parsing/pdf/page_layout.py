"""The layout of a page: its lines and tables in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pypdfium2

from agentic_rag_backend.ingestion.parsing.pdf.east_asian_text import turn_vertical_lines
from agentic_rag_backend.ingestion.parsing.pdf.tables.aligned_tables import align_tables
from agentic_rag_backend.ingestion.parsing.pdf.tables.ruled_tables import Table, tables_of
from agentic_rag_backend.ingestion.parsing.pdf.text_columns import columns_of
from agentic_rag_backend.ingestion.parsing.pdf.text_lines import Segment, TextLine, line_of, rows_of, segments_of
from agentic_rag_backend.ingestion.parsing.pdf.text_words import DIAGONAL, PdfWord

Column = list[TextLine] | Table
"""Lines that are read one after the other, or a table between such lines."""


@dataclass(slots=True)
class PageLayout:
    """The columns of page ``number`` in reading order. ``label`` is the page's name in the file."""

    number: int
    label: str | None = None
    columns: list[Column] = field(default_factory=list)

    @property
    def lines(self) -> list[TextLine]:
        """The lines of all columns."""
        return [line for column in self.columns if not isinstance(column, Table) for line in column]


def layout_of(words: Iterable[PdfWord], number: int, label: str | None, page: pypdfium2.PdfPage | None = None) -> PageLayout:
    """Return the layout of page ``number`` with these words. Text in its main direction comes first, text across it last.

    ``page`` has the ruled lines of tables. None: there are none.
    """
    words = list(words)
    if not "".join(word.text for word in words).isascii():
        turn_vertical_lines(words)
    by_turn: dict[int, list[PdfWord]] = {}
    for word in words:
        by_turn.setdefault(word.turn, []).append(word)
    layout = PageLayout(number, label)
    for turn in sorted(by_turn, key=lambda turn: (turn == DIAGONAL, -len(by_turn[turn]))):
        upright = by_turn[turn]
        tables: list[Table] = []
        if turn == 0 and page is not None:
            tables, upright = tables_of(page, upright, number)
        segments = segments_of(upright)
        if turn == 0 and page is not None:
            aligned, segments = align_tables(segments, number)
            tables += aligned
        layout.columns += _make_columns([*segments, *tables], turn, number)
    return layout


def _make_columns(items: Sequence[Segment | Table], turn: int, page: int) -> list[Column]:
    columns: list[Column] = []
    for part in columns_of(items):
        below = [item for item in part if isinstance(item, Segment)]
        for table in sorted((item for item in part if isinstance(item, Table)), key=lambda table: -table.box[3]):
            above = [segment for segment in below if segment.box[1] + segment.box[3] > 2 * table.box[1]]
            below = [segment for segment in below if segment.box[1] + segment.box[3] <= 2 * table.box[1]]
            columns += [*_make_lines(above, turn, page), table]
        columns += _make_lines(below, turn, page)
    return columns


def _make_lines(segments: Sequence[Segment], turn: int, page: int) -> list[Column]:
    lines = [line for line in (line_of(row, turn, page) for row in rows_of(segments)) if line is not None]
    return [lines] if lines else []
