from __future__ import annotations

import datetime
import io
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from office_files import lines_at, mutations, reads_or_refuses, tables_of, unzipped, zipped

from agentic_rag_backend.documents.parsing.office.sheets import workbooks, xlsx
from agentic_rag_backend.documents.parsing.office.sheets.extent import column_name
from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import XLSX
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

PARSER = xlsx.XlsxParser()


def saved(workbook: Any) -> bytes:
    target = io.BytesIO()
    workbook.save(target)
    return target.getvalue()


def workbook_of(**sheets: dict[str, Any]) -> bytes:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, cells in sheets.items():
        sheet = workbook.create_sheet(name)
        for reference, value in cells.items():
            sheet[reference] = value
    return saved(workbook)


def test_rows_have_their_header_sheet_and_cells() -> None:
    content = workbook_of(
        Staff={"A1": "Name", "B1": "Phone", "A2": "Ada", "B2": "555 0100", "A3": "Bob | Co", "B3": "555 0101"},
        Cities={"C4": "City", "D4": "Population", "C5": "Lyon", "D5": 522250},
    )
    parsed = parser_of(XLSX).parse(content)
    assert [heading.title for heading in parsed.headings] == ["Staff", "Cities"]
    assert tables_of(parsed) == [
        [["Name", "Phone"], ["Ada", "555 0100"], ["Bob | Co", "555 0101"]],
        [["City", "Population"], ["Lyon", "522250"]],
    ]
    assert lines_at(parsed) == [
        ("Staff", None),
        ("| Name | Phone |", "A1:B1"),
        ("| Ada | 555 0100 |", "A2:B2"),
        ("| Bob \\| Co | 555 0101 |", "A3:B3"),
        ("Cities", None),
        ("| City | Population |", "C4:D4"),
        ("| Lyon | 522250 |", "C5:D5"),
    ]
    assert {region.sheet for region in parsed.regions[:4]} == {"Staff"}


def test_values_are_shown_without_noise() -> None:
    values = {
        0.1 + 0.2: "0.3", 3.0: "3", -7: "-7", 1e21: "1e+21", True: "TRUE", 12.50: "12.5",
        datetime.date(2024, 2, 3): "2024-02-03", datetime.datetime(2024, 2, 3, 4, 5): "2024-02-03 4:05:00",  # noqa: DTZ001 - a workbook has no time zones

        datetime.time(4, 5, 6): "04:05:06", datetime.timedelta(hours=30): "30:00:00", "two\nlines": "two lines",
    }  # fmt: skip
    content = workbook_of(S={f"{'AB'[column]}{row + 1}": value for row, pair in enumerate(values.items())
                             for column, value in enumerate((f"v{row}", pair[0]))})  # fmt: skip
    assert [row[1] for row in tables_of(PARSER.parse(content))[0] if row[0]] == list(values.values())


def test_empty_rows_end_a_table_and_single_values_above_it_are_captions() -> None:
    content = workbook_of(
        Report={"A1": "Sales by region", "A2": "in millions", "A3": "Region", "B3": 2023, "C3": 2024, "A4": "North", "B4": 1.5,
                "C4": 2, "A6": "Product", "C6": "Price", "A7": "Pen", "C7": 2.2, "A9": "A note", "A10": "Another"}
    )  # fmt: skip
    parsed = PARSER.parse(content)
    assert tables_of(parsed) == [[["Region", "2023", "2024"], ["North", "1.5", "2"]], [["Product", "Price"], ["Pen", "2.2"]]]
    assert lines_at(parsed)[1:] == [
        ("Sales by region", "A1:C1"),
        ("in millions", "A2:C2"),
        ("| Region | 2023 | 2024 |", "A3:C3"),
        ("| North | 1.5 | 2 |", "A4:C4"),
        ("| Product | Price |", "A6:C6"),
        ("| Pen | 2.2 |", "A7:C7"),
        ("A note", "A9"),
        ("Another", "A10"),
    ]


def test_numbers_are_no_header() -> None:
    parsed = PARSER.parse(workbook_of(S={"A1": 1, "B1": 2, "A2": 3, "B2": 4}))
    assert tables_of(parsed) == [[["", ""], ["1", "2"], ["3", "4"]]]


def test_merged_headers_are_joined_and_rows_that_a_merged_cell_covers_end_no_table() -> None:
    target = io.BytesIO()
    with xlsxwriter.Workbook(target) as workbook:
        sheet = workbook.add_worksheet("Ports")
        sheet.merge_range("A1:D1", "Depths of ports")
        sheet.merge_range("A2:A3", "Port")
        sheet.merge_range("B2:C2", "Depth")
        sheet.write_row("B3", ["summer", "winter"])
        sheet.merge_range("D2:D3", "Keeper")
        for row, cells in enumerate([["Brno", "2 m", "3 m"], ["Lyon", "4 m", "5 m"]], 3):
            sheet.write_row(row, 0, cells)
        sheet.merge_range("D4:D5", "Ann")
        for column, name in enumerate(["Ship", "Load"]):
            sheet.merge_range(6, column, 7, column, name)
        sheet.write_row(8, 0, ["Heron", 7])
    parsed = PARSER.parse(target.getvalue())
    assert tables_of(parsed) == [
        [["Port", "Depth – summer", "Depth – winter", "Keeper"], ["Brno", "2 m", "3 m", "Ann"], ["Lyon", "4 m", "5 m", "Ann"]],
        [["Ship", "Load"], ["Heron", "7"]],
    ]
    assert [cells for _, cells in lines_at(parsed)] == [None, "A1:D1", "A2:D3", "A4:D4", "A5:D5", "A7:B7", "A9:B9"]


def test_tables_side_by_side_are_separate_and_other_empty_columns_divide_nothing() -> None:
    crew = {"A1": "Crew", "B1": "Cabin", "A2": "Ann", "B2": "1A", "A3": "Bob", "B3": "1B", "A4": "Cyd", "B4": "1C"}
    cargo = {"D1": "Cargo", "E1": "Hold", "D2": "Tea", "E2": "H2", "D4": "Port", "E4": "Day", "D5": "Brno", "E5": "Monday"}
    parsed = PARSER.parse(workbook_of(S={**crew, **cargo}))
    assert tables_of(parsed) == [
        [["Crew", "Cabin"], ["Ann", "1A"], ["Bob", "1B"], ["Cyd", "1C"]],
        [["Cargo", "Hold"], ["Tea", "H2"]],
        [["Port", "Day"], ["Brno", "Monday"]],
    ]
    assert [cells for _, cells in lines_at(parsed)][5:] == ["D1:E1", "D2:E2", "D4:E4", "D5:E5"]
    for cells in ({"D1": "Note", "D2": "late"}, {"D1": "Age", "E1": "Pay", "D2": 3, "E2": 4, "D3": 5, "E3": 6}):
        assert len(tables_of(PARSER.parse(workbook_of(S={**crew, **cells})))) == 1, cells
    workbook = openpyxl.load_workbook(io.BytesIO(workbook_of(S={**crew, "D1": "Town", "E1": "Zip", "D2": "Brno", "E2": "60200"})))
    workbook["S"].column_dimensions["C"].width = 2
    assert len(tables_of(PARSER.parse(saved(workbook)))) == 1


def test_hidden_rows_and_columns_are_left_out_and_named() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Pay"
    for row in (
        ["Name", "Team", "Salary", "Room"],
        ["Ada", "Deck", 3100, 1],
        ["Eve", "Board", 9, 2],
        ["Flo", "Board", 8, 3],
        ["Ben", "Deck", 7, 4],
    ):
        sheet.append(row)
    sheet.column_dimensions["C"].hidden = True
    for number in (3, 4, 9):
        sheet.row_dimensions[number].hidden = True
    sheet["A6"], sheet["B6"] = "Cyd", "=1+1"
    parsed = PARSER.parse(saved(workbook))
    assert tables_of(parsed) == [[["Name", "Team", "Room"], ["Ada", "Deck", "1"], ["Ben", "Deck", "4"], ["Cyd", "", ""]]]
    assert parsed.warnings == (
        "not in the text: hidden rows (2: Pay!3:4)",
        "not in the text: hidden columns (1: Pay!C)",
        "not in the text: formulas without a saved value (1: Pay!B6)",
    )


def test_values_are_read_as_the_sheet_shows_them() -> None:
    day = datetime.date(2023, 2, 1)
    shown: dict[str, tuple[Any, str]] = {
        "000417": (417, "000000"), "12.5%": (0.125, "0.0%"), "13% (0.125)": (0.125, "0%"), "1,234.50 €": (1234.5, '#,##0.00 "€"'),
        "01/02/2023 (2023-02-01)": (day, "DD/MM/YYYY"), "2023-02-01": (day, "mm-dd-yy"), "0.5": (0.5, "General"),
    }  # fmt: skip
    workbook = openpyxl.Workbook()
    for row, (value, code) in enumerate(shown.values(), 1):
        workbook.active.cell(row, 1).value = f"v{row}"
        workbook.active.cell(row, 2).value, workbook.active.cell(row, 2).number_format = value, code
    hidden: Any = 5
    workbook.active.cell(9, 2).value, workbook.active.cell(9, 2).number_format = hidden, ";;;"
    parsed = PARSER.parse(saved(workbook))
    assert [row[1] for row in tables_of(parsed)[0] if row[0]] == list(shown)
    assert parsed.warnings == ("not in the text: values that a number format hides (1: Sheet!B9)",)


def test_hidden_sheets_are_left_out_and_named() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["Seen"])
    for name, state in (("Prices", "hidden"), ("Codes", "veryHidden")):
        hidden = workbook.create_sheet(name)
        hidden.sheet_state = state
        hidden.append(["secret"])
    workbook.properties.title, workbook.properties.creator = " Price\nlist ", "Ann"
    parsed = PARSER.parse(saved(workbook))
    assert "Seen" in parsed.text
    assert "secret" not in parsed.text
    assert parsed.title == PARSER.check(saved(workbook), is_whole=True).title == "Price list"
    assert parsed.metadata["author"] == "Ann"
    assert parsed.metadata["hidden_sheets"] == ["Prices", "Codes"]
    assert parsed.warnings == ("not in the text: hidden sheets (2: Prices, Codes)",)


def test_merged_cells_stand_in_all_their_rows_and_formulas_have_saved_values() -> None:
    target = io.BytesIO()
    with xlsxwriter.Workbook(target) as workbook:
        sheet = workbook.add_worksheet("Sums")
        sheet.write_row(0, 0, ["Region", "City", "Sum"])
        sheet.merge_range(1, 0, 2, 0, "North")
        sheet.write_row(1, 1, ["Lille", 1])
        sheet.write(2, 1, "Reims")
        sheet.write_formula(2, 2, "=C2+4", value=5)
    assert tables_of(PARSER.parse(target.getvalue())) == [
        [["Region", "City", "Sum"], ["North", "Lille", "1"], ["North", "Reims", "5"]]
    ]


def test_a_workbook_with_macros_is_read_as_a_document() -> None:
    members = unzipped(workbook_of(S={"A1": "text"}))
    types = members["[Content_Types].xml"].replace(
        b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
        b"application/vnd.ms-excel.sheet.macroEnabled.main+xml",
    )
    content = zipped({**members, "[Content_Types].xml": types, "xl/vbaProject.bin": b"macro"})
    assert PARSER.parse(content).text == "S\n\ntext"


def test_far_cells_cost_no_memory() -> None:
    content = workbook_of(S={"A1": "near", "B1": "by", "ZZ900000": "middle", "XFD1048576": "far"})
    assert lines_at(PARSER.parse(content))[1:] == [
        ("| near | by |", "A1:B1"),
        ("middle", "ZZ900000"),
        ("far", "XFD1048576"),
    ]
    only = workbook_of(S={"XFD1048576": "far"})
    assert lines_at(PARSER.parse(only)) == [("S", None), ("far", "XFD1048576")]


def sheet_of(rows: str, *, workbook: bytes | None = None) -> bytes:
    members = unzipped(workbook or workbook_of(S={"A1": "text"}))
    xml = (
        f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>'
    )
    return zipped({**members, "xl/worksheets/sheet1.xml": xml})


def test_too_many_cells_are_refused_with_the_limit() -> None:
    diagonal = "".join(f'<row r="{n * 60}"><c r="{column_name(n)}{n * 60}"><v>1</v></c></row>' for n in range(1, 4000))
    with pytest.raises(ResourceLimit, match="spans 15992001 cells; the limit is 8000000"):
        PARSER.parse(sheet_of(diagonal))
    without_references = '<row r="1048576"><c><v>1</v></c></row><row r="1">' + "<c><v>1</v></c>" * 16_000 + "</row>"
    with pytest.raises(ResourceLimit, match="spans 16777216000 cells"):
        PARSER.parse(sheet_of(without_references))


def test_rows_and_cells_without_references_count_one_by_one() -> None:
    many = "<row><c><v>7</v></c><c><v>8</v></c></row>" * 3_000
    assert lines_at(PARSER.parse(sheet_of(many)))[-1] == ("| 7 | 8 |", "A3000:B3000")


def test_a_million_rows_are_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbooks, "MAX_CELLS", 20_000)
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c><c r="B{n}"><v>2</v></c></row>' for n in range(1, 12_000))
    with pytest.raises(ResourceLimit, match="more than 20000 cells"):
        PARSER.parse(sheet_of(rows))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"xl/workbook.bin": b"binary"}, "binary workbook"),
        ({"xl/other.xml": "<a/>"}, "no member"),
        ({"xl/workbook.xml": "<workbook/>"}, "damaged"),
    ],
)
def test_packages_without_a_workbook_are_refused(members: dict[str, str], message: str) -> None:
    with pytest.raises(UnreadableDocument, match=message):
        PARSER.parse(zipped(members))


def test_empty_workbooks_are_refused() -> None:
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(saved(openpyxl.Workbook()))


def test_damaged_workbooks_are_read_or_refused() -> None:
    content = workbook_of(S={"A1": "Name", "B1": "Year", "A2": "Ada", "B2": datetime.date(2020, 1, 1)}, T={"A1": 5})
    found = [reads_or_refuses(PARSER, damaged) for damaged in mutations(content, 150)]
    assert any(found)
    assert not all(found)
