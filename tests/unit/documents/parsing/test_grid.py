"""Tables with spans: a value stands wherever its cell does, and several header rows are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentic_rag_backend.documents.parsing import grid as grid_module
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.grid import TableGrid
from agentic_rag_backend.errors import ResourceLimit

Cell = str | tuple[str, int, int]
"""The text of a cell, with the rows and columns that it covers if these are more than one."""


def grid_of(rows: Sequence[Sequence[Cell]]) -> TableGrid:
    """Return a grid of cells that follow each other, as in HTML."""
    grid = TableGrid()
    for number, cells in enumerate(rows):
        column = 0
        for cell in cells:
            text, row_span, column_span = (cell, 1, 1) if isinstance(cell, str) else cell
            column = grid.find_free_column(number, column)
            grid.add_cell(number, column, text, row_span=row_span, column_span=column_span)
            column += column_span
    return grid


def table_of(rows: Sequence[Sequence[Cell]], header_rows: int | None = None) -> list[str]:
    """Return the lines of the text without the rule below the header."""
    builder = TextBuilder()
    grid_of(rows).write_table(builder, header_rows=header_rows)
    return [line for line in builder.build().text.split("\n") if set(line) - set("| -")]


def test_a_value_stands_in_every_row_and_column_that_its_cell_covers() -> None:
    quays: list[list[Cell]] = [["Quay", "Berth", "Tenant"], [("North", 2, 1), "N1", "Ann"], ["N2", "Bo"], [("Shut", 1, 2), "Cy"]]
    builder = TextBuilder()
    grid_of(quays).write_table(builder, [{"cells": f"A{number}:C{number}"} for number in range(1, 5)])
    parsed = builder.build()
    assert parsed.text.split("\n") == [
        "| Quay | Berth | Tenant |", "| --- | --- | --- |", "| North | N1 | Ann |", "| North | N2 | Bo |", "| Shut | Shut | Cy |",
    ]  # fmt: skip
    assert [region.cells for region in parsed.regions] == ["A1:C1", "A2:C2", "A3:C3", "A4:C4"]


PORTS = [("Port", 2, 1), ("Depth", 1, 2)], ["summer", "winter"]
HEADERS: dict[str, tuple[list[Sequence[Cell]], int | None, list[str]]] = {
    "groups": ([*PORTS, ["Brno", "2 m", "3 m"]], None, ["| Port | Depth – summer | Depth – winter |", "| Brno | 2 m | 3 m |"]),
    "corner": (
        [["", ("2024", 1, 2)], ["Lock", "Low", "High"], ["Merrow", "2.0", "5.5"]],
        None,
        ["| Lock | 2024 – Low | 2024 – High |", "| Merrow | 2.0 | 5.5 |"],
    ),
    "only groups": (
        [[("North", 1, 2), ("South", 1, 2)], ["Ship", "Load", "Ship", "Load"], ["Ann", "3", "Bo", "4"]],
        None,
        ["| North – Ship | North – Load | South – Ship | South – Load |", "| Ann | 3 | Bo | 4 |"],
    ),
    "three rows": (
        [[("Port", 3, 1), ("Depth", 1, 4)], [("in", 1, 2), ("out", 1, 2)], ["a", "b", "a", "b"], ["Brno", "1", "2", "3", "4"]],
        None,
        ["| Port | Depth – in – a | Depth – in – b | Depth – out – a | Depth – out – b |", "| Brno | 1 | 2 | 3 | 4 |"],
    ),
    "a group without names": (
        [["Name", ("Contact", 1, 2)], ["Ann", "555 0100", "ann@x"], ["Bo", "555 0101", "bo@x"]],
        None,
        ["| Name | Contact | Contact |", "| Ann | 555 0100 | ann@x |", "| Bo | 555 0101 | bo@x |"],
    ),
    "no header": (
        [[("North", 2, 1), "N1", "Ann"], ["N2", "Bo"]],
        None,
        ["| North | N1 | Ann |", "| North | N2 | Bo |"],
    ),
    "a stated header": ([["1", "2"], ["a", "b"], ["x", "y"]], 2, ["| 1 – a | 2 – b |", "| x | y |"]),
    "captions and notes": (
        [[("Fleet", 1, 3)], ["Ship", "Load", "Port"], ["Ann", "3", "Brno"], [("In tons.", 1, 3)]],
        None,
        ["Fleet", "| Ship | Load | Port |", "| Ann | 3 | Brno |", "In tons."],
    ),
    "a section": (
        [["Ship", "Load"], [("North", 1, 2)], ["Ann", "3"]],
        None,
        ["| Ship | Load |", "| North |  |", "| Ann | 3 |"],
    ),
    "spans beyond the table": (
        [["Ship", "Load"], [("Ann", 65_534, 1), ("3", 65_534, 1_000)]],
        None,
        ["| Ship | Load |", "| Ann | 3 |"],
    ),
    "columns without a value": ([["Ship", ("Load", 1, 3)], ["Ann", "3", "", ""]], None, ["| Ship | Load |", "| Ann | 3 |"]),
    "one column": ([[("One", 1, 9)], [""], [("Two", 2, 9)]], None, ["One", "Two"]),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADERS)
def test_header_rows_are_joined_and_rows_of_one_value_are_paragraphs(case: str) -> None:
    rows, header_rows, expected = HEADERS[case]
    assert table_of(rows, header_rows) == expected


def test_a_joined_header_has_the_place_of_its_rows() -> None:
    builder = TextBuilder()
    places: list[dict[str, Any]] = [
        {"sheet": "S", "cells": f"A{row}:C{row}", "box": (0.0, 10.0 - row, 5.0, 11.0 - row)} for row in range(1, 4)
    ]
    grid_of([*PORTS, ["Brno", "2 m", "3 m"]]).write_table(builder, places)
    header, row = builder.build().regions
    assert (header.cells, header.box, row.cells) == ("A1:C2", (0.0, 8.0, 5.0, 10.0), "A3:C3")


def test_values_below_a_span_are_not_shown() -> None:
    grid = TableGrid([["Quay", "Berth"], ["North", "N1"], ["hidden", "N2"]])
    grid.add_span(1, 0, row_span=2, column_span=1)
    assert grid.lay_out().cells == [["Quay", "Berth"], ["North", "N1"], ["North", "N2"]]


def test_spans_that_cover_too_much_are_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_module, "MAX_COVERED_CELLS", 40_000)
    bombs: list[list[Sequence[Cell]]] = [
        [[("x", 65_534, 1)] * 999, *([["x"]] * 200)],
        [*([[("x", 65_534, 1_000)]] * 200)],
        [[("x", 65_534, 1), *["x"] * 500], *([[("x", 1, 1_000)]] * 600)],
    ]
    for bomb in bombs:
        with pytest.raises(ResourceLimit, match="cover more than 40000 cells"):
            table_of(bomb)
    grid = TableGrid([["x"]] * 1_000)
    for _ in range(1_000):
        grid.add_span(0, 0, row_span=1_000_000, column_span=16_384)
    with pytest.raises(ResourceLimit, match="cover more than 40000 cells"):
        grid.lay_out()
