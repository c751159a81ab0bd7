"""Rows of JSON Lines, CSV and TSV files as documents. One row is in memory at a time. An invalid row does not stop the others."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from agentic_rag_backend.domain.size_limits import MAX_DOCUMENT_KEY_CHARACTERS
from agentic_rag_backend.errors import InvalidRequest

MAX_ROW_CHARACTERS = 64 * 1024 * 1024
"""Maximum length of a line (in bytes for JSON Lines) and of a field."""
DELIMITERS = (",", ";", "\t", "|")
_MAX_EXAMINED = 100
_SNIFFED = 65_536
_LISTED = 50
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table and their roles.

    Args:
        key: column of the key. None derives it from the file's key and the row's number, ``orders.csv#17``.
        metadata: columns stored with the document. Empty cells and nulls are left out.
        delimiter: delimiter of CSV. None detects one of `DELIMITERS` from the beginning of the file.
    """

    text: str
    key: str | None = None
    title: str | None = None
    metadata: tuple[str, ...] = ()
    delimiter: str | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(name for name in (self.text, self.key, self.title, *self.metadata) if name is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A document. ``number`` counts from 1: lines of JSON Lines, records after the header of CSV. ``size`` is in bytes,
    approximate.
    """

    number: int
    key: str
    text: str
    size: int
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that is not a valid document, and the reason."""

    number: int
    reason: str


class _Bad(ValueError):
    """The error in a row."""


def check_table(path: Path, columns: Columns) -> None:
    """Read the beginning of a table and check that the columns exist.

    Raises:
        InvalidRequest: a column does not exist. The message lists the columns found.
        OSError: the file cannot be read.
    """
    if is_lines(path):
        columns_found = _line_columns(path)
        needed = columns.needed[:1]  # objects may lack the other columns
    else:
        columns_found = _read_header(path, columns.delimiter)
        needed = columns.needed
    column_list = ", ".join(repr(name[:80]) for name in columns_found[:_LISTED]) + (", …" if len(columns_found) > _LISTED else "")
    if not columns_found:
        raise InvalidRequest(f"{path} has no column: it needs UTF-8 and {'objects' if is_lines(path) else 'a header'}")
    for name in needed:
        if columns_found.count(name) != 1:
            problem = "there is no" if name not in columns_found else "more than one"
            raise InvalidRequest(f"{path}: {problem} column {name[:80]!r}; the columns are {column_list}")


def read_rows(path: Path, prefix: str, columns: Columns) -> Iterator[Row | BadRow]:
    """Yield every row of a table in the order of the file.

    Args:
        prefix: prefix of the keys of rows without a key.

    Raises:
        OSError: the file cannot be read.
        InvalidRequest: the header of a CSV file lacks the columns.
    """
    for number, values, size in _line_values(path) if is_lines(path) else _record_values(path, columns):
        if isinstance(values, str):
            yield BadRow(number=number, reason=values)
            continue
        try:
            yield _make_row(number, values, size, prefix, columns)
        except _Bad as bad:
            yield BadRow(number=number, reason=str(bad))


def is_lines(path: Path) -> bool:
    """Return whether a table is JSON Lines."""
    return path.suffix.lower() in (".jsonl", ".ndjson")


def _make_row(number: int, values: Mapping[str, Any], size: int, prefix: str, columns: Columns) -> Row:
    text = _read_text(values, columns.text)
    if not text or not text.strip():
        raise _Bad(f"column {columns.text!r} is empty")
    key = f"{prefix}#{number}" if columns.key is None else _read_key(values, columns.key)
    if len(key) > MAX_DOCUMENT_KEY_CHARACTERS:
        raise _Bad(f"the key has {len(key)} characters; the limit is {MAX_DOCUMENT_KEY_CHARACTERS}")
    metadata = {name: _to_plain_value(name, values[name]) for name in columns.metadata if values.get(name) not in (None, "")}
    title = _read_text(values, columns.title) if columns.title is not None else None
    return Row(number=number, key=key, text=text, size=size, title=title or None, metadata=metadata)


def _read_text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise _Bad(f"column {name!r} must be text; it is {_name_kind(value)}")
    return value


def _read_key(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise _Bad(f"column {name!r} must be a key, text or a whole number; it is {_name_kind(value)}")
    return str(value).strip()


def _to_plain_value(name: str, value: Any) -> Any:
    nested = [element for element in (value if isinstance(value, list) else (value,)) if isinstance(element, (dict, list))]
    if isinstance(value, dict) or nested:
        inner = " within a list" if isinstance(value, list) else ""
        raise _Bad(f"column {name!r} must be a scalar or a list of scalars; it is {_name_kind(nested[0])}{inner}")
    return value


def _name_kind(value: Any) -> str:
    if value is None or value == "":
        return "empty"
    names = {dict: "an object", list: "a list", bool: "a boolean", int: "a number", float: "a number", str: "blank"}
    return names[type(value)]


_Values = tuple[int, Mapping[str, Any] | str, int]
"""Number, values or error of the row, size."""


def _line_values(path: Path) -> Iterator[_Values]:
    with path.open("rb") as file:
        if file.read(len(_MARK)) != _MARK:
            file.seek(0)
        number = 0
        while line := file.readline(MAX_ROW_CHARACTERS + 1):
            number += 1
            if len(line) > MAX_ROW_CHARACTERS and not line.endswith(b"\n"):
                while (remainder := file.readline(_SNIFFED)) and not remainder.endswith(b"\n"):
                    pass
                yield number, f"the line has more than {MAX_ROW_CHARACTERS} bytes", 0
            elif not line.isspace():
                yield number, _parse_object(line), len(line)


def _parse_object(line: bytes) -> Mapping[str, Any] | str:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error}"
    return value if isinstance(value, dict) else f"a row must be a JSON object; it is {_name_kind(value)}"


def _line_columns(path: Path) -> list[str]:
    column_names: dict[str, None] = {}
    for _, values, _ in islice(_line_values(path), _MAX_EXAMINED):
        if not isinstance(values, str):
            column_names.update(dict.fromkeys(values))
    return list(column_names)


class _Lines(Iterator[str]):
    """Lines with their line ends. Invalid UTF-8 becomes surrogates, so that only the affected row is invalid."""

    def __init__(self, file: io.TextIOWrapper) -> None:
        self._file = file

    def __next__(self) -> str:
        line = self._file.readline(MAX_ROW_CHARACTERS + 1)
        if not line:
            raise StopIteration
        if len(line) > MAX_ROW_CHARACTERS and line[-1] not in "\r\n":
            while (remainder := self._file.readline(_SNIFFED)) and remainder[-1] not in "\r\n":
                pass
            raise csv.Error(f"the line has more than {MAX_ROW_CHARACTERS} characters")
        return line


def _open_table(path: Path) -> io.TextIOWrapper:
    # The library's default of 128 KiB applies to the whole process.
    csv.field_size_limit(MAX_ROW_CHARACTERS)
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _record_values(path: Path, columns: Columns) -> Iterator[_Values]:
    check_table(path, columns)
    delimiter, header = _choose_delimiter(path, columns.delimiter), _read_header(path, columns.delimiter)
    with _open_table(path) as file:
        records = csv.reader(_Lines(file), delimiter=delimiter, strict=True)
        next(records, None)
        number = 0
        while True:
            number += 1
            try:
                record = next(records, None)
            except csv.Error as error:
                yield number, f"not CSV, line {records.line_num}: {error}", 0
                continue
            if record is None:
                return
            if not record:
                number -= 1  # an empty line
                continue
            yield number, _name_fields(header, record), sum(map(len, record)) + len(record)


def _name_fields(header: Sequence[str], record: Sequence[str]) -> Mapping[str, Any] | str:
    if len(record) != len(header):
        return f"the row has {len(record)} fields; the header has {len(header)}"
    try:
        "".join(record).encode()
    except UnicodeEncodeError:
        return "the row is not UTF-8"
    return dict(zip(header, record, strict=True))


def _read_header(path: Path, delimiter_given: str | None) -> list[str]:
    delimiter = _choose_delimiter(path, delimiter_given)
    with _open_table(path) as file:
        try:
            names = [name.strip() for name in next(csv.reader(_Lines(file), delimiter=delimiter, strict=True), [])]
            "".join(names).encode()
        except (csv.Error, UnicodeEncodeError):
            return []
    return names


def _choose_delimiter(path: Path, delimiter_given: str | None) -> str:
    """Return the delimiter: the given one, a tab for TSV, or the one that gives the most regular columns."""
    if delimiter_given is not None:
        return delimiter_given
    if path.suffix.lower() == ".tsv":
        return "\t"
    with _open_table(path) as file:
        beginning = file.read(_SNIFFED)
    return max(DELIMITERS, key=lambda delimiter: _columns_by(delimiter, beginning))


def _columns_by(delimiter: str, beginning: str) -> tuple[float, int]:
    """Return how well a delimiter fits: the share of records with as many columns as the first, and that number.

    A delimiter that gives one column does not fit.
    """
    widths: list[int] = []
    with suppress(csv.Error):
        widths += (len(record) for record in csv.reader(io.StringIO(beginning, newline=""), delimiter=delimiter) if record)
    # The last record may be incomplete.
    compared = widths[:-1] or widths
    if not compared or compared[0] < 2:
        return 0.0, 0
    return compared.count(compared[0]) / len(compared), compared[0]
