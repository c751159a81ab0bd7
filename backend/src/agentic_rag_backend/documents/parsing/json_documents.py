"""JSON and JSON Lines as one document: a table of a list of flat objects, otherwise a line for each value with its path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.errors import UnreadableDocument

MAX_DEPTH = 64
"""Levels of lists and objects within each other."""
MAX_COLUMNS = 100
"""Objects with more keys altogether are not shown as a table."""
LEAST_ROWS = 2
MAX_EMPTY_SHARE = 0.75
"""Objects are not shown as a table if each one has few of all their keys."""
MAX_PATH_CHARACTERS = 200
"""A longer path of a value loses its beginning. Every value below it would repeat it."""
CHECKED_LINES = 100
"""Lines of JSON Lines that are checked at upload."""
NAMED_LINES = 5
"""Wrong lines that a warning names."""
_TITLES = ("title", "name")
_CUT = "…"


class _Number(str):
    """A number as the file writes it."""

    __slots__ = ()


class JsonParser:
    """Parser of JSON (RFC 8259)."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Parse the beginning if it is the whole file."""
        return Preview(title=_read_title(load_json(head)) if is_whole else None, text=head)

    def parse(self, text: str) -> ParsedDocument:
        """Return the values of the file as text."""
        value = load_json(text)
        return _build_document(value, text, title=_read_title(value))

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; paths and tables are part of it."""
        return ParsedDocument(text=text)


class JsonLinesParser(JsonParser):
    """Parser of JSON Lines: each line is a JSON value. Other lines are left out with a warning, unless they are most lines."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Parse the first lines."""
        lines = [line for line in head.split("\n") if line.strip()]
        if is_whole or len(lines) > 1:
            _load_lines(lines[:CHECKED_LINES] if is_whole or len(lines) > CHECKED_LINES else lines[:-1])
        return Preview(title=None, text=head)

    def parse(self, text: str) -> ParsedDocument:
        """Return the values of all lines as text."""
        values, wrong_lines = _load_lines(text.split("\n"))
        parsed = _build_document(values, text)
        if not wrong_lines:
            return parsed
        numbers = ", ".join(map(str, wrong_lines[:NAMED_LINES])) + (", …" if len(wrong_lines) > NAMED_LINES else "")
        return replace(
            parsed, warnings=(*parsed.warnings, f"not in the text: lines that are not JSON ({len(wrong_lines)}: {numbers})")
        )


def _load_lines(lines: Sequence[str]) -> tuple[list[Any], list[int]]:
    """Return the values of lines, and the numbers of the lines that are not JSON.

    Raises:
        UnreadableDocument: most lines are not JSON.
    """
    values: list[Any] = []
    problems: dict[int, UnreadableDocument] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                values.append(load_json(line, line=number))
            except UnreadableDocument as problem:
                problems[number] = problem
    if len(problems) > len(values):
        raise next(iter(problems.values()))
    return values, list(problems)


def load_json(text: str, *, line: int | None = None) -> Any:
    """Return the value of JSON, with numbers as strings that keep how they are written.

    Args:
        line: number of the line that the text is, for messages. None: it is a whole file.

    Raises:
        UnreadableDocument: it is not valid, or nested too deep.
    """
    where = "" if line is None else f"line {line}: "
    try:
        value = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except RecursionError:
        raise UnreadableDocument(f"{where}lists and objects are nested more than {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}" if line is None else f"column {error.colno}"
        raise UnreadableDocument(f"{where}the file is not valid JSON: {error.msg} at {position}") from None
    if _is_deeper(value, MAX_DEPTH):
        raise UnreadableDocument(f"{where}lists and objects are nested more than {MAX_DEPTH} levels deep")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested in more than ``levels`` levels."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [item for container in layer for item in _list_containers(container)]
        if not layer:
            return False
    return True


def _list_containers(value: Any) -> list[Any]:
    """Return the lists and objects in a list or object."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in members if isinstance(item, dict | list)]


def _read_title(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in _TITLES if isinstance(value.get(name), str) and value[name].strip()), None)


def _build_document(value: Any, text: str, *, title: str | None = None) -> ParsedDocument:
    """Return the document of a value: blocks of lines, and a table with its path above it for each list of flat objects."""
    builder = TextBuilder(len(text))
    shortened = _write_value(builder, value)
    parsed = builder.build(title=title)
    notice = f"names that lead to a value are shortened to their last {MAX_PATH_CHARACTERS} characters"
    return replace(parsed, warnings=(*parsed.warnings, notice)) if shortened else parsed


def _write_value(builder: TextBuilder, value: Any) -> bool:
    """Add a value. Return whether a path was too long."""
    lines: list[str] = []
    shortened = False
    for path, part in _split_value("", value):
        shortened = shortened or path.startswith(_CUT)
        if isinstance(part, list):
            builder.add_lines([(line, {}) for line in lines])
            lines.clear()
            if path:
                builder.add_heading(2, path)
            columns = _list_columns(part)
            builder.add_table([columns, *([_format_scalar(row.get(name)) for name in columns] for row in part)])
        elif _format_scalar(part).strip():
            lines.append(f"{path}: {' '.join(_format_scalar(part).split())}" if path else _format_scalar(part))
    builder.add_lines([(line, {}) for line in lines])
    return shortened


def _join_path(path: str, name: str) -> str:
    """Return the path of a value, without its beginning if it is too long."""
    full_path = path + name
    return full_path if len(full_path) <= MAX_PATH_CHARACTERS else _CUT + full_path[1 - MAX_PATH_CHARACTERS :]


def _split_value(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values of ``value`` with their paths: scalars, lists of numbers in one line, and lists that are tables."""
    waiting: list[tuple[str, Any]] = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list) and _is_table(value):
            yield path, value
        elif isinstance(value, list) and len(value) > 1 and all(isinstance(item, _Number) for item in value):
            yield path, ", ".join(value)
        elif isinstance(value, list):
            waiting += [(_join_path(path, f"[{number}]"), item) for number, item in reversed(list(enumerate(value)))]
        elif isinstance(value, dict):
            waiting += [(_join_path(f"{path}." if path else "", name), item) for name, item in reversed(value.items())]
        else:
            yield path, value


def _is_table(value: Sequence[Any]) -> bool:
    if len(value) < LEAST_ROWS or not all(isinstance(row, dict) and row and not _list_containers(row) for row in value):
        return False
    columns = len(_list_columns(value))
    return columns <= MAX_COLUMNS and sum(map(len, value)) >= (1 - MAX_EMPTY_SHARE) * columns * len(value)


def _list_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys of all rows in the order of their first appearance; at most one more than a table may have."""
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(row))
        if len(columns) > MAX_COLUMNS:
            break
    return list(columns)


def _format_scalar(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
