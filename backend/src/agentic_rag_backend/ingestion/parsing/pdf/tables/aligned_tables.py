"""Tables without ruled lines: rows of short values that stand below each other, under a row of names.

Only a table whose header and numbers leave no doubt is taken. Text in columns, contents lists, forms, code and matrices have no
row of names above a column of numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from agentic_rag_backend.ingestion.parsing.header_rows import CellSpan
from agentic_rag_backend.ingestion.parsing.pdf.tables.ruled_tables import MAX_CELLS, Table
from agentic_rag_backend.ingestion.parsing.pdf.text_lines import Segment, clean_text, enclose_boxes, rows_of
from agentic_rag_backend.ingestion.parsing.pdf.text_words import PdfWord

_LEAST_ROWS = 3
"""Rows of a table, with its header. One of two columns has one more."""
_MOST_DISTANCE = 3.0
"""Distance between the middles of two rows, in font sizes."""
_LEAST_GAP = 0.75
"""The gap between two values of a row, in font sizes. It may be narrower than that between segments."""
_MOST_CHARACTERS = 40
_MOST_STARTS = 4
"""Rows of a block that are tried as header."""
_LEAST_FILLED = 0.5
"""Share of the rows that have a value in a column. The first column may name groups of rows."""
_LEAST_GROUPS = 0.25
_LEAST_NUMBERS = 0.8
"""Share of the values of a column of numbers that are numbers."""
_NUMBER = re.compile(r"[^\w\s]{0,2}\d[\d.,:/%'’ -]{0,20}[^\W\d]{0,4}[^\w\s]?")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d")


def align_tables(segments: Sequence[Segment], number: int) -> tuple[list[Table], list[Segment]]:
    """Return the tables without lines among the upright segments of page ``number``, and the segments outside of them."""
    numbers = sum(bool(_DIGIT.search(segment.words[0].text + segment.words[-1].text)) for segment in segments)
    if numbers < _LEAST_ROWS - 1:  # most pages of prose: rows need not be found
        return [], list(segments)
    tables: list[Table] = []
    inside: set[int] = set()
    for block in _list_blocks(rows_of(segments)):
        for start in range(min(len(block) - _LEAST_ROWS + 1, _MOST_STARTS)):
            if not _may_name_columns(block[start]):
                continue
            table = _make_table([_split_row(row) for row in block[start:]], number)
            if table is not None:
                tables.append(table)
                inside.update(id(segment) for row in block[start:] for segment in row)
                break
    return tables, [segment for segment in segments if id(segment) not in inside] if inside else list(segments)


def _list_blocks(rows: Sequence[list[Segment]]) -> Iterator[list[list[Segment]]]:
    """Yield rows of several segments that follow each other closely."""
    block: list[list[Segment]] = []
    for row in rows:
        close = bool(block) and _find_middle(block[-1]) - _find_middle(row) <= _MOST_DISTANCE * row[0].size
        if len(row) > 1 and (close or not block):
            block.append(row)
            continue
        if len(block) >= _LEAST_ROWS:
            yield block
        block = [row] if len(row) > 1 else []
    if len(block) >= _LEAST_ROWS:
        yield block


def _find_middle(row: Sequence[Segment]) -> float:
    return (row[0].box[1] + row[0].box[3]) / 2


def _split_row(row: Sequence[Segment]) -> list[Segment]:
    """Return the segments of a row, divided where the gap between two words is wider than a space."""
    pieces: list[Segment] = []
    for segment in row:
        start = 0
        for index, (word, next_word) in enumerate(pairwise(segment.words), start=1):
            if next_word.box[0] - word.box[2] >= _LEAST_GAP * segment.size:
                pieces.append(_make_segment(segment.words[start:index], segment.size))
                start = index
        pieces.append(_make_segment(segment.words[start:], segment.size) if start else segment)
    return pieces


def _make_segment(words: list[PdfWord], size: float) -> Segment:
    return Segment(words, enclose_boxes(word.box for word in words), size)


def _make_table(block: Sequence[Sequence[Segment]], number: int) -> Table | None:
    groups = _make_groups(block)
    edges = _find_edges(block[1:] if groups else block)
    if len(edges) < 3 or len(block) + len(edges) < 7 or (len(edges) - 1) * len(block) > MAX_CELLS:
        return None
    rows = [_fill_row(row, edges) for row in block]
    if groups:
        rows[0] = groups
    if not all(rows) or (groups and len(groups) != len(edges) - 1):
        return None
    names = [f"{group} {name}" for group, name in zip(_repeat_groups(groups), rows[1], strict=True)] if groups else rows[0]
    if not _names_columns(names) or not _has_values(rows[2 if groups else 1 :]):
        return None
    boxes = [enclose_boxes(segment.box for segment in row) for row in block]
    return Table(
        rows=rows,
        spans=_list_spans(groups),
        boxes=boxes,
        pages=[number] * len(rows),
        xs=edges,
        box=enclose_boxes(boxes),
        size=block[0][0].size,
        header_rows=2 if groups else 1,
    )


def _make_groups(block: Sequence[Sequence[Segment]]) -> list[str]:
    """Return the first of two rows of names, whose names stand above groups of columns with the same names; empty if it is none.

    A column without a name in the second row has one in the first, above all groups to its right.
    """
    groups, names = block[0], [clean_text(segment.text) for segment in block[1]]
    single = [segment for segment in groups if segment.box[2] < block[1][0].box[0]]
    above = groups[len(single) :]
    width = len(names) // max(len(above), 1)
    if len(above) < 2 or width < 2 or names != names[:width] * len(above) or any(map(_DIGIT.search, names)):
        return []
    for index, segment in enumerate(above):
        below = block[1][index * width : (index + 1) * width]
        if segment.box[0] < below[0].box[0] - segment.size or segment.box[2] > below[-1].box[2] + segment.size:
            return []
    cells = [clean_text(segment.text) for segment in single]
    return cells + [text for segment in above for text in (clean_text(segment.text), *[""] * (width - 1))]


def _repeat_groups(groups: Sequence[str]) -> list[str]:
    """Return the name of the group of each column."""
    names: list[str] = []
    for name in groups:
        names.append(name or names[-1])
    return names


def _list_spans(groups: Sequence[str]) -> list[CellSpan]:
    """Return the cells of the first of two rows of names that cover a group of columns, or both rows."""
    starts = [column for column, name in enumerate(groups) if name]
    ends = [*starts[1:], len(groups)]
    return [CellSpan(0, start, 1 if end - start > 1 else 2, end - start) for start, end in zip(starts, ends, strict=bool(groups))]


def _find_edges(block: Sequence[Sequence[Segment]]) -> list[float]:
    """Return the edges of the columns: the outer ones, and the middle of each gap that no segment crosses."""
    spans = sorted((segment.box[0], segment.box[2]) for row in block for segment in row)
    columns = [list(spans[0])]
    for start, end in spans[1:]:
        if start > columns[-1][1]:
            columns.append([start, end])
        else:
            columns[-1][1] = max(columns[-1][1], end)
    return [columns[0][0], *((left[1] + right[0]) / 2 for left, right in pairwise(columns)), columns[-1][1]]


def _fill_row(row: Sequence[Segment], edges: Sequence[float]) -> list[str]:
    """Return the cells of a row; empty if two segments are in one column."""
    cells = [""] * (len(edges) - 1)
    for segment in row:
        column = min(max(bisect_right(edges, segment.box[0]) - 1, 0), len(cells) - 1)
        if cells[column]:
            return []
        cells[column] = clean_text(segment.text)
    return cells


def _may_name_columns(row: Sequence[Segment]) -> bool:
    """Return whether a row has no numbers but years, which is cheap to tell."""
    words = [word.text for segment in row for word in segment.words]
    return all(text.isalpha() or _YEAR.fullmatch(text) or not _DIGIT.search(text) for text in words)


def _names_columns(names: Sequence[str]) -> bool:
    """Return whether a row has a short name for each column but the first, which may have none; years are names."""
    given = [name for name in names if name]
    if len(set(given)) < len(given) or not all(names[1:]) or any(len(name) > _MOST_CHARACTERS for name in given):
        return False
    return all(_YEAR.fullmatch(name) or not _DIGIT.search(name) for name in given)


def _has_values(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows have short values in each column, and numbers in one of them."""
    numbers = False
    for column in range(len(rows[0])):
        values = [row[column] for row in rows if row[column]]
        if len(values) < (_LEAST_FILLED if column else _LEAST_GROUPS) * len(rows):
            return False
        if any(len(value) > _MOST_CHARACTERS for value in values):
            return False
        numbers |= column > 0 and sum(bool(_NUMBER.fullmatch(value)) for value in values) >= _LEAST_NUMBERS * len(values)
    return numbers
