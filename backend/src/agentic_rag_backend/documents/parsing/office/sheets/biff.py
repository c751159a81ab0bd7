"""Records of binary workbooks (MS-XLS) that their reader does not return: hidden parts and number formats."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from agentic_rag_backend.documents.parsing.office.sheets.extent import MAX_AREA_CELLS
from agentic_rag_backend.documents.parsing.office.sheets.number_formats import BUILT_IN_FORMATS, NumberFormat
from agentic_rag_backend.documents.parsing.office.sheets.sheet_properties import SheetProperties, StyledCell, make_formats
from agentic_rag_backend.errors import ResourceLimit

MAX_COLUMNS = 256

_BEGIN, _END, _SHEET, _FORMAT, _STYLE, _ROW, _COLUMNS, _MANY_NUMBERS = 0x809, 0x0A, 0x85, 0x41E, 0xE0, 0x208, 0x7D, 0xBD
_NUMBERS = frozenset({0x06, 0x203, 0x27E})
"""Records of one number: a formula, a double and a short number."""
_CELLS = _NUMBERS | {0xFD, 0x204, 0x205, 0x201, 0xBE, _MANY_NUMBERS}
"""Records that begin with the row and the column of a cell."""
_MERGED, _MERGED_BYTES = 0xE5, 8
_BIFF8 = 0x600
_ROW_HIDDEN, _COLUMN_HIDDEN = 0x20, 0x01


def read_sheets(stream: bytes) -> list[SheetProperties]:
    """Return the properties of the sheets in the order of the workbook.

    Raises:
        ResourceLimit: a sheet spans more than `MAX_AREA_CELLS` cells.
        struct.error: a record is too short.
    """
    codes, numbers, starts = dict(BUILT_IN_FORMATS), list[int](), list[int]()
    is_unicode = True
    for kind, data in _iterate_records(stream, 0):
        if kind == _BEGIN:
            is_unicode = struct.unpack_from("<H", data)[0] >= _BIFF8
        elif kind == _FORMAT:
            codes[struct.unpack_from("<H", data)[0]] = _read_text(data[2:], is_unicode=is_unicode)
        elif kind == _STYLE:
            numbers.append(struct.unpack_from("<H", data, 2)[0])
        elif kind == _SHEET:
            starts.append(struct.unpack_from("<I", data)[0])
    formats = make_formats(codes, numbers)
    return [_read_sheet(stream, start, formats) for start in starts]


def _iterate_records(stream: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and the data of the records of a part of the stream, without the parts within it, such as charts."""
    depth = 0
    while start + 4 <= len(stream):
        kind, length = struct.unpack_from("<HH", stream, start)
        depth += (kind == _BEGIN) - (kind == _END)
        if depth <= 0:
            return
        if depth == 1:
            yield kind, stream[start + 4 : start + 4 + length]
        start += 4 + length


def _read_sheet(stream: bytes, start: int, formats: Sequence[NumberFormat | None]) -> SheetProperties:
    properties = SheetProperties(styled=_iterate_styled_cells(stream, start, formats) if any(formats) else ())
    rows = columns = 0
    for kind, data in _iterate_records(stream, start):
        if kind in _CELLS:
            row, column = struct.unpack_from("<HH", data)
            rows, columns = max(rows, row + 1), max(columns, column + 1)
        elif kind == _ROW and struct.unpack_from("<H", data, 12)[0] & _ROW_HIDDEN:
            properties.hidden_rows.add(struct.unpack_from("<H", data)[0])
        elif kind == _COLUMNS:
            column, last_column, _, _, options = struct.unpack_from("<5H", data)
            if options & _COLUMN_HIDDEN:
                properties.hidden_columns.update(range(column, min(last_column + 1, MAX_COLUMNS)))
        elif kind == _MERGED:
            for offset in range(2, len(data) - _MERGED_BYTES + 1, _MERGED_BYTES):
                first_row, last_row, column, last_column = struct.unpack_from("<4H", data, offset)
                properties.merged.append((first_row, column, last_row + 1, last_column + 1))
    if rows * columns > MAX_AREA_CELLS:
        raise ResourceLimit(f"a sheet spans {rows * columns} cells; the limit is {MAX_AREA_CELLS}")
    return properties


def _iterate_styled_cells(stream: bytes, start: int, formats: Sequence[NumberFormat | None]) -> Iterator[StyledCell]:
    for kind, data in _iterate_records(stream, start):
        if kind in _NUMBERS:
            row, column, style = struct.unpack_from("<3H", data)
            styles = (style,)
        elif kind == _MANY_NUMBERS:
            row, column = struct.unpack_from("<HH", data)
            styles = tuple(struct.unpack_from("<H", data, offset)[0] for offset in range(4, len(data) - 7, 6))
        else:
            continue
        for index, style in enumerate(styles, column):
            number_format = formats[style] if style < len(formats) else None
            if number_format is not None:
                yield row, index, number_format


def _read_text(data: bytes, *, is_unicode: bool) -> str:
    if not is_unicode:
        return data[1 : 1 + data[0]].decode("cp1252", "replace") if data else ""
    count, flags = struct.unpack_from("<HB", data)
    return data[3 : 3 + 2 * count].decode("utf-16-le", "replace") if flags & 1 else data[3 : 3 + count].decode("latin-1")
