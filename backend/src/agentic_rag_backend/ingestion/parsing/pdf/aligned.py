"""Tables without ruled lines: rows whose cells begin, end or are centred at the same places.

Lists, contents, matrices, source code and text in columns have aligned parts, too. A table is recognised only if several signs
agree; everything else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from agentic_rag_backend.domain.text.entries.base import names_columns
from agentic_rag_backend.ingestion.parsing.pdf.lines import Line, around
from agentic_rag_backend.ingestion.parsing.pdf.pages import Column
from agentic_rag_backend.ingestion.parsing.pdf.tables import Table

MAX_COLUMNS = 12
LEAST_ROWS = 3
LEAST_ROWS_OF_TWO = 4
"""Rows of a table with two columns, which looks like a list."""
MAX_LINES = 2_000
"""Lines of one table."""
_WIDEST_GAP = 2.0
"""White space between two rows, in font sizes."""
_CLOSE = 0.35
"""Places that are this many font sizes apart are aligned."""
_SIZE_CHANGE = 0.2
_LEAST_ALIGNED = 0.75
"""Share of a column's cells at its usual place."""
_LEAST_FILLED = 0.5
"""Share of cells with text."""
_LEAST_SEVERAL = 0.6
"""Share of rows with several cells."""
_LONGEST = 45
"""Characters of the usual cell of a column. Columns of text and bibliographies have more."""
_SHORTEST = 2.0
"""Mean characters of a cell. A matrix has fewer."""
_MOST_LETTERS = 0.35
"""Share of words with a single character. A formula has more."""
_MOST_CODE = 0.3
_NUMBERED = 0.6
"""Share of first cells that begin with a number, from which a column of numbers in ascending order is that of the pages."""
_TYPED = 0.6
"""Share of cells with digits below a header without."""
_SET_OFF = 1.25
"""Distance of the header and the next row, as a multiple of the usual distance of rows."""
_HEADERS = 2
"""Lines at the top that may span columns, so that the table begins below them."""
_ENUMERATOR = re.compile(r"[•‣◦▪■●○–—*·-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.):]|\[\d{1,3}\]|(?:\d{1,3}\.){1,4}\d{0,3}")
_PAGE = re.compile(r"\d{1,4}|[ivxlcdm]{1,8}")
_YEAR = re.compile(r"(?:1[5-9]|2[01])\d\d")
_LEADERS = " ..."
_CODE = re.compile(r"^= |[{};]\s*$|[=!<>]=|->|=>|\(\)|^\s*(?:#|//|/\*|\$ )|\\$")

Cell = tuple[float, float, str]
"""Left end, right end and text."""


def with_aligned_tables(columns: Sequence[Column]) -> list[Column]:
    """Return the columns of a page, in which aligned rows are tables."""
    found: list[Column] = []
    for column in columns:
        if isinstance(column, Table) or any(line.turn for line in column):
            found.append(column)
        else:
            found += _divided(column)
    return found


def _divided(lines: list[Line]) -> Iterator[Column]:
    """Yield the tables among ``lines``, and the lines between them."""
    kept: list[Line] = []
    start = 0
    while start < len(lines):
        run = _run(lines, start)
        table, used = _table_in(run)
        if table is None:
            kept += run or [lines[start]]
            start += max(len(run), 1)
            continue
        skipped, end = used
        kept += run[:skipped]
        if kept:
            yield kept
        yield table
        kept = []
        start += end
    if kept:
        yield kept


def _run(lines: Sequence[Line], start: int) -> list[Line]:
    """Return the lines from ``start`` on that may be one table: with several cells, or with one that is part of a column."""
    run: list[Line] = []
    several = 0
    for line in lines[start : start + MAX_LINES]:
        if not run:
            if not line.cells:
                return []
        elif not _follows(run[-1], line) or (not line.cells and not _in_a_column(run, line)):
            break
        run.append(line)
        several = len(run) if line.cells else several
    return run[:several]


def _follows(before: Line, line: Line) -> bool:
    size = max(before.size, line.size)
    return before.box[1] - line.box[3] <= _WIDEST_GAP * size and abs(before.size - line.size) <= _SIZE_CHANGE * size


def _in_a_column(run: Sequence[Line], line: Line) -> bool:
    """Whether the only cell of a line is beside the other columns of the line before it that has several."""
    cells = next(each.cells for each in reversed(run) if each.cells)
    touched = sum(line.box[0] < right and left < line.box[2] for left, right, _ in cells)
    return touched <= 1


def _table_in(run: Sequence[Line]) -> tuple[Table | None, tuple[int, int]]:
    """Return the table in ``run`` with the numbers of its first line and of the line after its last one."""
    for skipped in range(min(_HEADERS, max(len(run) - LEAST_ROWS, 0)) + 1):
        lines = run[skipped:]
        if len(lines) >= LEAST_ROWS and lines[0].cells:
            table = _table(lines)
            if table is not None:
                return table, (skipped, len(run))
    return None, (0, 0)


@dataclass(slots=True)
class _Row:
    cells: list[Cell | None]
    lines: list[Line]

    @property
    def texts(self) -> list[str]:
        return [cell[2] if cell else "" for cell in self.cells]


def _table(lines: Sequence[Line]) -> Table | None:
    columns = _columns(lines)
    if not 2 <= len(columns) <= MAX_COLUMNS:
        return None
    rows = _rows(lines, columns)
    size = median(line.size for line in lines)
    if not (_is_filled(rows) and _is_written(rows) and all(_is_aligned(rows, place, size) for place in range(len(columns)))):
        return None
    boxes = [around(line.box for line in row.lines) for row in rows]
    left, right = min(box[0] for box in boxes), max(box[2] for box in boxes)
    return Table(
        rows=[row.texts for row in rows],
        boxes=[(left, box[1], right, box[3]) for box in boxes],
        box=around(boxes),
        size=size,
        pages=[lines[0].page] * len(rows),
        edges=tuple(column[0] for column in columns),
        header=_has_header(rows),
    )


def _cells(line: Line) -> Sequence[Cell]:
    return line.cells or ((line.box[0], line.box[2], line.text),)


def _columns(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """Return the spans of the columns: parts of the width that cells cover, apart by parts that none does."""
    merged: list[tuple[float, float]] = []
    for left, right, _ in sorted(cell for line in lines for cell in _cells(line)):
        if merged and left <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(right, merged[-1][1])
        else:
            merged.append((left, right))
    return merged


def _rows(lines: Sequence[Line], columns: Sequence[tuple[float, float]]) -> list[_Row]:
    """Return the rows. A line without a first cell and with fewer cells than the row before it continues this row."""
    rows: list[_Row] = []
    for line in lines:
        cells: list[Cell | None] = [None] * len(columns)
        for cell in _cells(line):
            place = next(number for number, (left, right) in enumerate(columns) if left <= cell[0] <= right)
            cells[place] = _joined(cells[place], cell)
        before = rows[-1] if rows else None
        if before is not None and cells[0] is None and _continues(before.cells, cells):
            before.cells = [_joined(one, other) if other else one for one, other in zip(before.cells, cells, strict=True)]
            before.lines.append(line)
        else:
            rows.append(_Row(cells, [line]))
    return rows


def _continues(before: Sequence[Cell | None], cells: Sequence[Cell | None]) -> bool:
    if sum(cell is not None for cell in cells) >= sum(cell is not None for cell in before):
        return False
    return all(one is not None and any(map(str.isalpha, other[2])) for one, other in zip(before, cells, strict=True) if other)


def _joined(one: Cell | None, other: Cell) -> Cell:
    return other if one is None else (min(one[0], other[0]), max(one[1], other[1]), f"{one[2]} {other[2]}")


def _is_filled(rows: Sequence[_Row]) -> bool:
    """Whether there are enough rows, of which enough have several cells."""
    width = len(rows[0].cells)
    counts = [sum(cell is not None for cell in row.cells) for row in rows]
    several = sum(count > 1 for count in counts)
    if several < (LEAST_ROWS_OF_TWO if width == 2 else LEAST_ROWS) or several < _LEAST_SEVERAL * len(rows):
        return False
    return sum(counts) >= _LEAST_FILLED * width * len(rows)


def _is_written(rows: Sequence[_Row]) -> bool:
    """Whether the texts are those of a table, and not of a list, of contents, of formulas, of code or of columns of text."""
    columns = [[text for row in rows if (text := row.texts[place])] for place in range(len(rows[0].cells))]
    texts = [text for column in columns for text in column]
    words = [word for text in texts for word in text.split()]
    return not (
        sum(map(len, texts)) < _SHORTEST * len(texts)
        or sum(len(word) == 1 and not word.isdigit() for word in words) > _MOST_LETTERS * len(words)
        or sum(any(map(str.isalpha, text)) for text in texts) < len(rows)
        or any(median(map(len, column)) > _LONGEST or not _says_something(column) for column in columns)
        or _is_list(columns)
        or sum(any(map(_CODE.search, row.texts)) for row in rows) > _MOST_CODE * len(rows)
    )


def _says_something(texts: Sequence[str]) -> bool:
    return 2 * sum(any(map(str.isalnum, text)) for text in texts) > len(texts)


def _is_list(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the columns are a list with its marks or numbers, or contents with the pages."""
    first, *others = columns
    if all(map(_ENUMERATOR.fullmatch, first)) or any(_LEADERS in text for column in columns for text in column):
        return True
    numbered = sum(_ENUMERATOR.match(text) is not None for text in first) >= _NUMBERED * len(first)
    return any(_are_pages(column[1:]) for column in others) if numbered or len(columns) == 2 else False


def _are_pages(texts: Sequence[str]) -> bool:
    """Whether texts are numbers of pages in ascending order."""
    if not texts or not all(map(_PAGE.fullmatch, texts)):
        return False
    numbers = [int(text) for text in texts if text.isdigit()]
    return all(one <= other for one, other in pairwise(numbers))


def _has_header(rows: Sequence[_Row]) -> bool:
    """Whether the first row names the columns: in short, different texts without numbers except years.

    Of two columns, it does only if it is set off from the rows below, or has no digits where these have.
    """
    first, *others = rows
    if not names_columns(first.texts) or any(any(map(str.isdigit, text)) and not _YEAR.fullmatch(text) for text in first.texts):
        return False
    if len(first.cells) > 2 or any(_is_typed(first.texts[place], [row.texts[place] for row in others]) for place in (0, 1)):
        return True
    pitches = [one.lines[-1].box[1] - other.lines[0].box[1] for one, other in pairwise(rows)]
    return pitches[0] >= _SET_OFF * median(pitches[1:])


def _is_typed(header: str, texts: Sequence[str]) -> bool:
    digits = sum(any(map(str.isdigit, text)) for text in texts)
    return not any(map(str.isdigit, header)) and digits >= _TYPED * len(texts)


def _is_aligned(rows: Sequence[_Row], place: int, size: float) -> bool:
    """Whether most cells of a column begin, end or are centred at one place. The header may be elsewhere."""
    cells = [cell for row in rows[1:] if (cell := row.cells[place]) is not None]
    ways = ([cell[0] for cell in cells], [cell[1] for cell in cells], [(cell[0] + cell[1]) / 2 for cell in cells])
    return bool(cells) and any(_share_at_one_place(ends, _CLOSE * size) >= _LEAST_ALIGNED for ends in ways)


def _share_at_one_place(places: Sequence[float], close: float) -> float:
    usual = median(places)
    return sum(abs(place - usual) <= close for place in places) / len(places)
