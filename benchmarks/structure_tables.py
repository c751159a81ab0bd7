"""Makes tables of known cells, of the kinds that people write, from a seed.

``make_tables`` returns the same 64 tables each time: 16 kinds, four sizes each. `structure_files` writes them in each format.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

SEEDS = 4
"""Tables of each kind."""
_PLACES = [
    "Brno",
    "Turku",
    "Lyon",
    "Porto",
    "Gdansk",
    "Bergen",
    "Malaga",
    "Tampere",
    "Rostock",
    "Split",
    "Varna",
    "Bari",
    "Cork",
    "Nantes",
    "Aarhus",
    "Tartu",
]
_NAMES = [
    "Depth",
    "Length",
    "Crew",
    "Cargo",
    "Cost",
    "Speed",
    "Weight",
    "Height",
    "Berths",
    "Volume",
    "Draught",
    "Range",
    "Power",
    "Charge",
]
_THINGS = ["turbine", "anchor", "rudder", "boiler", "ladder", "winch", "mast", "keel", "hatch", "crane", "valve", "sail"]


@dataclass(frozen=True)
class Cell:
    """A cell at its first row and column. ``text`` is what a reader of the page sees.

    ``value`` and ``number_format`` are those of a workbook. ``table`` is a table within the cell.
    """

    text: str = ""
    row_span: int = 1
    column_span: int = 1
    value: float | None = None
    number_format: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class Fact:
    """A value and the texts that name its row and its column."""

    value: str
    row: tuple[str, ...] = ()
    column: tuple[str, ...] = ()


@dataclass
class Table:
    """A table: cells by row and column, and the facts that a reader must find in it.

    ``absent`` are values of hidden rows and columns. ``beside`` is a second table on the same sheet or page. ``break_before`` is
    the row with which a new page begins.
    """

    kind: str
    seed: int
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    header_rows: int = 1
    facts: list[Fact] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    beside: Table | None = None
    break_before: int | None = None

    @property
    def height(self) -> int:
        """The number of rows."""
        return max(row + cell.row_span for (row, _), cell in self.cells.items())

    @property
    def width(self) -> int:
        """The number of columns."""
        return max(column + cell.column_span for (_, column), cell in self.cells.items())

    def put(self, row: int, column: int, text: str, **values: object) -> None:
        """Add a cell."""
        self.cells[row, column] = Cell(text, **values)  # type: ignore[arg-type]

    def covered(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the cell that covers each place of the grid."""
        return {
            (row + down, column + right): (row, column)
            for (row, column), cell in self.cells.items()
            for down in range(cell.row_span)
            for right in range(cell.column_span)
        }


class TableMaker:
    """Makes words and numbers that a file contains once."""

    def __init__(self, kind: str, seed: int) -> None:
        self.chance = random.Random(f"{kind} {seed}")
        self.table = Table(kind, seed)
        self.rows = 3 + self.chance.randrange(4)
        self.columns = 2 + self.chance.randrange(3)
        self.names = self.chance.sample(_NAMES, 12)
        self.places = self.chance.sample(_PLACES, 16)
        self._numbers = iter(self.chance.sample(range(1000, 9999), 400))

    def number(self) -> str:
        """Return a number that no other cell has."""
        return str(next(self._numbers))

    def thing(self) -> str:
        """Return a short phrase that no other cell has."""
        return f"{self.chance.choice(_THINGS)} {self.number()}"

    def header(self, corner: str = "Port", *, row: int = 0) -> None:
        """Write the row of names."""
        for column, name in enumerate([corner, *self.names[: self.columns]]):
            self.table.put(row, column, name)

    def body(self, first: int, count: int, *, skip: float = 0.0) -> None:
        """Write rows of numbers below the header. ``skip`` is the share of empty cells."""
        for row in range(first, first + count):
            place = self.places[row]
            self.table.put(row, 0, place)
            for column in range(1, self.columns + 1):
                if self.chance.random() >= skip:
                    value = self.number()
                    self.table.put(row, column, value)
                    self.table.facts.append(Fact(value, (place,), (self.names[column - 1],)))
                else:
                    self.table.put(row, column, "")


def _plain(make: TableMaker) -> None:
    make.header()
    make.body(1, make.rows)


def _blank_corner(make: TableMaker) -> None:
    make.header("")
    make.body(1, make.rows)


def _empty_cells(make: TableMaker) -> None:
    make.header()
    make.body(1, make.rows + 2, skip=0.4)


def _row_spans(make: TableMaker) -> None:
    for column, name in enumerate(["Region", "Port", *make.names[: make.columns]]):
        make.table.put(0, column, name)
    row = 1
    for region in ("North", "South", "West")[: 2 + make.chance.randrange(2)]:
        span = 2 + make.chance.randrange(2)
        make.table.put(row, 0, region, row_span=span)
        for below in range(row, row + span):
            make.table.put(below, 1, make.places[below])
            for column in range(make.columns):
                value = make.number()
                make.table.put(below, column + 2, value)
                make.table.facts.append(Fact(value, (region, make.places[below]), (make.names[column],)))
        row += span


def _column_spans(make: TableMaker) -> None:
    make.columns = 4
    make.header()
    for row in range(1, make.rows + 1):
        place, start = make.places[row], 1 + make.chance.randrange(3)
        make.table.put(row, 0, place)
        for column in range(1, 5):
            if column == start + 1:
                continue
            value = make.thing()
            names = make.names[column - 1 : column + 1] if column == start else make.names[column - 1 : column]
            make.table.put(row, column, value, column_span=len(names))
            make.table.facts += [Fact(value, (place,), (name,)) for name in names]


def _two_header_rows(make: TableMaker) -> None:
    make.table.header_rows = 2
    make.table.put(0, 0, "Port", row_span=2)
    groups = ("Summer", "Winter", "Spring")[: 2 + make.chance.randrange(2)]
    for group, season in enumerate(groups):
        make.table.put(0, 1 + 2 * group, season, column_span=2)
        for side in range(2):
            make.table.put(1, 1 + 2 * group + side, make.names[side])
    for row in range(2, 2 + make.rows):
        make.table.put(row, 0, make.places[row])
        for column in range(2 * len(groups)):
            value = make.number()
            make.table.put(row, 1 + column, value)
            make.table.facts.append(Fact(value, (make.places[row],), (groups[column // 2], make.names[column % 2])))


def _side_by_side(make: TableMaker) -> None:
    make.columns = 2
    make.header()
    make.body(1, make.rows)
    other = TableMaker("beside", make.table.seed)
    other.columns, other.places = 2, [f"{thing} {number}" for number, thing in enumerate(_THINGS)]
    other.header("Part")
    other.body(1, other.rows)
    make.table.beside = other.table


def _next_page(make: TableMaker) -> None:
    make.header()
    make.body(1, make.rows + 3)
    make.table.break_before = 3


def _hidden(make: TableMaker) -> None:
    make.columns = 3
    make.header()
    make.body(1, make.rows + 1)
    make.table.hidden_rows, make.table.hidden_columns = {2}, {1 + make.chance.randrange(3)}
    hidden = {cell.text for at, cell in make.table.cells.items() if at[0] == 2 or at[1] in make.table.hidden_columns}
    make.table.absent = sorted(hidden)
    make.table.facts = [fact for fact in make.table.facts if fact.value not in hidden]


def _shown_numbers(make: TableMaker) -> None:
    names = ("Code", "Share", "Price", "Date")
    for column, name in enumerate(["Port", *names]):
        make.table.put(0, column, name)
    for row in range(1, make.rows + 1):
        place = make.places[row]
        make.table.put(row, 0, place)
        code, share, price, day = (make.chance.randrange(1, limit) for limit in (900, 999, 99999, 900))
        shown = (
            (f"{code:06}", code, "000000"),
            (f"{share / 10:.1f}%", share / 1000, "0.0%"),
            (f"{price / 10:,.2f}", price / 10, "#,##0.00"),
            (_date(day), 45000.0 + day, "yyyy-mm-dd"),
        )
        for column, (text, value, number_format) in enumerate(shown, 1):
            make.table.put(row, column, text, value=value, number_format=number_format)
            make.table.facts.append(Fact(text, (place,), (names[column - 1],)))


def _date(day: int) -> str:
    from datetime import date, timedelta

    return (date(2023, 3, 15) + timedelta(day)).isoformat()


def _nested(make: TableMaker) -> None:
    make.columns = 2
    make.header()
    make.body(1, make.rows)
    inner = TableMaker("inner", make.table.seed)
    inner.columns, inner.rows, inner.places = 2, 2, [f"{thing} {number}" for number, thing in enumerate(_THINGS)]
    inner.header("Part")
    inner.body(1, 2)
    row = make.rows + 1
    make.table.put(row, 0, make.places[row])
    make.table.put(row, 1, "", table=inner.table)
    make.table.put(row, 2, "")


def _layout(make: TableMaker) -> None:
    make.table.header_rows = 0
    for row in range(2):
        for column in range(2):
            sentence = " ".join(make.thing() for _ in range(12)) + "."
            make.table.put(row, column, sentence)
            make.table.facts.append(Fact(sentence))


def _years(make: TableMaker) -> None:
    make.columns = 4
    make.names = [str(2019 + column) for column in range(12)]
    make.header("Port" if make.table.seed % 2 else "")
    make.body(1, make.rows)


def _caption_row(make: TableMaker) -> None:
    make.columns = max(make.columns, 2)
    make.header(row=1)
    make.body(2, make.rows)
    make.table.header_rows = 2
    make.table.put(0, 0, f"Ports of the {make.thing()}", column_span=make.columns + 1)
    make.table.put(make.rows + 2, 0, f"Source: office of the {make.thing()}", column_span=make.columns + 1)
    make.table.facts += [Fact(make.table.cells[row, 0].text) for row in (0, make.rows + 2)]


def _long_cells(make: TableMaker) -> None:
    make.columns = 2
    make.header()
    for row in range(1, make.rows + 1):
        make.table.put(row, 0, make.places[row])
        for column in (1, 2):
            value = " ".join(make.thing() for _ in range(4)) + (" a|b" if make.chance.random() < 0.3 else "")
            make.table.put(row, column, value)
            make.table.facts.append(Fact(value, (make.places[row],), (make.names[column - 1],)))


def _keys(make: TableMaker) -> None:
    make.table.header_rows = 0
    for row, name in enumerate(make.names[: make.rows + 2]):
        value = make.thing()
        make.table.put(row, 0, name)
        make.table.put(row, 1, value)
        make.table.facts.append(Fact(value, (name,)))


KINDS: Mapping[str, Callable[[TableMaker], None]] = {
    "plain": _plain,
    "blank corner": _blank_corner,
    "empty cells": _empty_cells,
    "row spans": _row_spans,
    "column spans": _column_spans,
    "two header rows": _two_header_rows,
    "side by side": _side_by_side,
    "next page": _next_page,
    "hidden rows and columns": _hidden,
    "numbers as shown": _shown_numbers,
    "nested": _nested,
    "layout": _layout,
    "years": _years,
    "title and note": _caption_row,
    "long cells": _long_cells,
    "keys and values": _keys,
}


def make_tables() -> list[Table]:
    """Return the tables of every kind."""
    tables = []
    for kind, fill in KINDS.items():
        for seed in range(SEEDS):
            maker = TableMaker(kind, seed)
            fill(maker)
            tables.append(maker.table)
    return tables
