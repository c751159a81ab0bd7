from __future__ import annotations

import pytest
from office_files import lines_at, mutations, open_document, reads_or_refuses, tables_of

from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import ODS
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

PARSER = parser_of(ODS)
HIDDEN = '<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>'


def cell(text: str = "", **attributes: str) -> str:
    """Return a cell; ``rows_spanned`` is the attribute ``table:number-rows-spanned``, ``value`` is ``office:value``."""
    names = {"rows_spanned": "table:number-rows-spanned", "columns_spanned": "table:number-columns-spanned",
             "repeated": "table:number-columns-repeated", "value": "office:value", "date": "office:date-value",
             "formula": "table:formula"}  # fmt: skip
    written = "".join(f' {names[name]}="{value}"' for name, value in attributes.items())
    return f"<table:table-cell{written}>{f'<text:p>{text}</text:p>' if text else ''}</table:table-cell>"


def row(*cells: str, attributes: str = "") -> str:
    content = "".join(text if text.startswith("<") else cell(text) for text in cells)
    return f"<table:table-row {attributes}>{content}</table:table-row>"


def sheets(*rows: str, columns: str = "", more: str = "") -> bytes:
    table = f'<table:table table:name="Pay">{columns}{"".join(rows)}</table:table>'
    return open_document(ODS, f"<office:spreadsheet>{table}{more}</office:spreadsheet>", HIDDEN)


COVERED = "<table:covered-table-cell/>"
STAFF = [
    row("Quay", "Berth", "Fee", "Rate", "Since"),
    row(
        *(cell("North", rows_spanned="2"), "N1", cell("310,00 €", value="310")),
        *(cell("13%", value="0.125"), cell("1.2.23", date="2023-02-01")),
    ),
    row(
        *(COVERED, "N2", cell("0.33", value="0.333333333333")),
        *(cell("12.5%", value="0.125"), cell("2023-02-02", date="2023-02-02T00:00:00")),
    ),
]


def test_sheets_are_tables_with_their_spans_and_values_as_shown() -> None:
    empty = row(cell(repeated="16384"), attributes='table:number-rows-repeated="1048000"')
    parsed = PARSER.parse(sheets(*STAFF, row("", cell(repeated="16000")), row("Note", cell("late", repeated="2")), empty))
    assert tables_of(parsed) == [
        [
            ["Quay", "Berth", "Fee", "Rate", "Since"],
            ["North", "N1", "310,00 €", "13% (0.125)", "1.2.23 (2023-02-01)"],
            ["North", "N2", "0.33", "12.5%", "2023-02-02"],
        ],
        [["", "", ""], ["Note", "late", "late"]],
    ]
    assert [cells for _, cells in lines_at(parsed)] == [None, "A1:E1", "A2:E2", "A3:E3", "A5:C5"]
    assert [heading.title for heading in parsed.headings] == ["Pay"]


def test_what_is_hidden_is_left_out_and_named() -> None:
    columns = '<table:table-column/><table:table-column table:visibility="collapse" table:number-columns-repeated="2"/>'
    secret = row("Eve", "9", "x", "7", attributes='table:visibility="filter" table:number-rows-repeated="2"')
    grouped = f'<table:table-row-group table:display="false">{row("Gus", "1", "y", "2")}</table:table-row-group>'
    hidden = f'<table:table table:name="Plans" table:style-name="h">{row("secret")}</table:table>'
    shown = [row("Name", "Pay", "Grade", "Room"), secret, grouped, row("Ada", "3", "z", cell(formula="of:=1+1"), "4")]
    parsed = PARSER.parse(sheets(*shown, columns=columns, more=hidden))
    assert tables_of(parsed) == [[["Name", "Room", ""], ["Ada", "", "4"]]]
    assert parsed.metadata["hidden_sheets"] == ["Plans"]
    assert parsed.warnings == (
        "not in the text: hidden rows (3: Pay!2:4)",
        "not in the text: hidden columns (2: Pay!B:C)",
        "not in the text: formulas without a saved value (1: Pay!D5)",
        "not in the text: hidden sheets (1: Plans)",
    )


def test_files_that_repeat_too_much_are_refused_with_the_limit() -> None:
    for content, limit in (
        (sheets(row(cell("x", repeated="2000000"))), "more than 1000000 cells"),
        (sheets(row(cell("x", repeated="5000"), attributes='table:number-rows-repeated="1000"')), "more than 2000000 cells"),
        (sheets(row(cell("x", repeated="99999999999"))), "more than 1000000 cells"),
    ):
        with pytest.raises(ResourceLimit, match=limit):
            PARSER.parse(content)
    with pytest.raises(UnreadableDocument, match="no body"):
        PARSER.parse(open_document(ODS, "<office:text/>"))
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(sheets())


def test_damaged_sheets_are_read_or_refused() -> None:
    results = [reads_or_refuses(PARSER, damaged) for damaged in mutations(sheets(*STAFF), 100)]
    assert any(results)
    assert not all(results)
