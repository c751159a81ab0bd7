"""Output of commands: JSON for programs, tables for people. Text of documents cannot control the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, which begin escape sequences, and marks of writing direction; tab and newline are allowed."""
_WIDTH_OF_A_FILE = 140
"""Width if stdout is not a terminal, so that tables in files and pipes are not narrow."""


_WHOLE = re.compile(r"[a-z]{0,3}_?[0-9a-f-]{32,36}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
"""Ids (of documents and jobs, of tenants and keys) and times."""
_READABLE = 12
_GAP = 2
"""Spaces between columns."""


def plain(value: object) -> str:
    """Return ``value`` as text without control characters for a terminal."""
    return _UNSAFE.sub("", str(value).replace("\r\n", "\n"))


def text(value: object, style: str = "") -> Text:
    """Return ``value`` as Rich text: cleaned, and not read as markup."""
    from rich.text import Text

    return Text(plain(value), style=style)


def console(stream: TextIO | None = None) -> Console:
    """Return a console on ``stream`` (default: stdout) that prints text without interpreting it."""
    from rich.console import Console

    target = stream or sys.stdout
    width = None if target.isatty() or os.environ.get("COLUMNS") else _WIDTH_OF_A_FILE
    return Console(file=target, markup=False, highlight=False, emoji=False, width=width)


class Output:
    """Results on stdout, everything else on stderr."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, value: Any) -> None:
        """Print ``value`` as the command's JSON, escaped to ASCII to be safe for a terminal."""
        sys.stdout.write(json.dumps(value, indent=2, default=str, allow_nan=False) + "\n")
        sys.stdout.flush()

    def present(self, value: Any, render: Callable[[Output, Any], None] | None = None) -> None:
        """Print a value: whole as JSON with ``--json``, otherwise by ``render``, or as a table of its fields."""
        if self.as_json:
            self.result(value)
        elif render is not None:
            render(self, value)
        else:
            self.show(fields(value))

    def show(self, *parts: Any, style: str = "") -> None:
        """Print parts for people, one below the other, without control characters."""
        target = console()
        with target.capture() as capture:
            for part in parts:
                target.print(text(part, style) if isinstance(part, str) else part)
        printed = capture.get()
        # Rich pads lines with spaces, which would be visible outside a terminal.
        sys.stdout.write(printed if target.is_terminal else "\n".join(line.rstrip(" ") for line in printed.split("\n")))
        sys.stdout.flush()

    def note(self, message: str) -> None:
        """Print a message that is not the result to stderr."""
        sys.stderr.write(plain(message) + "\n")
        sys.stderr.flush()

    def error(self, code: str, message: str) -> None:
        """Report an error: one line on stderr, or with ``--json`` an object on stdout that carries the code."""
        if self.as_json:
            self.result({"error": {"code": code, "message": message}})
        else:
            self.note(f"error: {' '.join(message.split())}")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None, droppable: Sequence[str] = ()
) -> Table:
    """Return a table; every cell is cleaned text. Columns that begin with ``#`` are numbers.

    Ids are not wrapped, so that they can be copied. If other columns become too narrow, ``droppable`` columns are left out in
    their order. ``--json`` has all columns.
    """
    from rich.table import Table

    cells = [[plain(format_value(cell)) for cell in row] for row in rows]
    names = [column.lstrip("#") for column in columns]
    widest = {name: max([len(name), *(len(row[column_number]) for row in cells)]) for column_number, name in enumerate(names)}
    least = {name: _least(name, [row[column_number] for row in cells]) for column_number, name in enumerate(names)}
    widths = _widths(least, widest, [name.lstrip("#") for name in droppable])
    result = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column, name in zip(columns, names, strict=True):
        if name in widths:
            justify: Literal["right", "left"] = "right" if column.startswith("#") else "left"
            result.add_column(name, justify=justify, overflow="fold", width=widths[name])
    for row in cells:
        result.add_row(*(text(cell) for name, cell in zip(names, row, strict=True) if name in widths))
    return result


def _least(name: str, cells: Sequence[str]) -> int:
    """Return the minimum width of a readable column: ids and times whole, other values in part."""
    widths = [len(cell) for cell in cells if _WHOLE.fullmatch(cell)]
    return max([len(name), min(max([0, *map(len, cells)]), _READABLE), *widths])


def _widths(least: Mapping[str, int], widest: Mapping[str, int], droppable: Sequence[str]) -> dict[str, int]:
    """Return the widths of the shown columns: the minimum of each, and an even share of the rest for wider columns."""
    widths, room = dict(least), console().width + _GAP
    for name in droppable:
        if sum(widths.values()) + _GAP * len(widths) <= room:
            break
        del widths[name]
    spare = room - sum(widths.values()) - _GAP * len(widths)
    while spare > 0 and (narrow := [name for name, width in widths.items() if width < widest[name]]):
        for name in narrow[:spare]:
            widths[name] += 1
        spare -= len(narrow[:spare])
    return widths


def format_value(value: object) -> str:
    """Return a value of the API in readable form."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={format_value(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(format_value(item) for item in value)
    return str(value)


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 document`` or ``2 documents``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_time(value: str | None) -> str:
    """Return a time of the API to the second."""
    return "-" if value is None else value[:19].replace("T", " ")


def fields(value: Mapping[str, object], *, title: str | None = None) -> Table:
    """Return a table of names and values."""
    return table(["name", "value"], value.items(), title=title)
