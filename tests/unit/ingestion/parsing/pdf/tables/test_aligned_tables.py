from __future__ import annotations

from collections.abc import Sequence

from office_files import tables_of
from pdf_files import Page, pdf_of

from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.parsing.pdf.pdf_parser import PdfParser

XS = (72, 160, 230, 300, 370)
PORTS = [("Port", "Depth", "Keeper"), ("Wexcombe", "4.5 m", "Ottoline"), ("Sable", "12.1 m", "Milo"), ("Tarn", "6 m", "Ann")]


def parse_rows(rows: Sequence[Sequence[str]], xs: Sequence[float] = XS) -> ParsedDocument:
    """Parse a page with these cells and without lines."""
    page = Page().shows(72, 730, "A paragraph stands above.")
    for number, row in enumerate(rows):
        for x, cell in zip(xs, row, strict=False):
            page.shows(x, 700 - 14 * number, cell)
    return PdfParser().parse(pdf_of(page.shows(72, 500, "Another one stands below.")))


def test_rows_of_numbers_below_names_are_a_table_with_places() -> None:
    parsed = parse_rows(PORTS)
    assert tables_of(parsed) == [[list(row) for row in PORTS]]
    assert parsed.text.startswith("A paragraph stands above.\n\n| Port | Depth | Keeper |\n| --- | --- | --- |\n| Wexcombe |")
    assert parsed.text.endswith("| Tarn | 6 m | Ann |\n\nAnother one stands below.")
    row = next(region for region in parsed.regions if parsed.text[region.start_char : region.end_char].startswith("| Sable"))
    assert row.box is not None
    left, bottom, _, top = row.box
    assert (round(left), bottom < 675 < top) == (72, True)

    for rows in (
        [("", "2019", "2020"), ("Sable", "1,200", "-"), ("Tarn", "14%", "7"), ("Brno", "3", "€9.50")],
        [("Region", "Port", "Berths"), ("North", "Sable", "7"), ("", "Tarn", "9"), ("South", "Brno", "4")],
        [("Part", "Cost"), ("mast", "12"), ("keel", "14"), ("sail", "17")],
    ):
        assert tables_of(parse_rows(rows)) == [[list(row) for row in rows]]
    narrow = parse_rows([("Port", "Depth", "Cost"), ("Rostock", "9337", "71"), ("Turku", "12", "9")], (72, 122, 160))
    assert tables_of(narrow)[0][1] == ["Rostock", "9337", "71"]


def test_two_rows_of_names_are_one_header() -> None:
    page = Page()
    for x, text in ((72, "Port"), (180, "Summer"), (320, "Winter")):
        page.shows(x, 714, text)
    for number, row in enumerate((("", "Crew", "Cost", "Crew", "Cost"), ("Sable", *"1234"), ("Tarn", *"5678"))):
        for x, cell in zip(XS, row, strict=True):
            page.shows(x, 700 - 14 * number, cell)
    names = ["Port", "Summer – Crew", "Summer – Cost", "Winter – Crew", "Winter – Cost"]
    assert tables_of(PdfParser().parse(pdf_of(page))) == [[names, ["Sable", *"1234"], ["Tarn", *"5678"]]]


def test_columns_without_numbers_below_names_are_text() -> None:
    for rows in (
        [("Chapter", "Page"), ("Wind", "7")],
        [("Wind", "7"), ("Rain", "9"), ("Snow", "12"), ("Ice", "31")],
        [("1", "0", "0"), ("0", "1", "0"), ("0", "0", "1"), ("4", "4", "4")],
        [("move", "left", "right"), ("add", "one", "two"), ("jump", "back", "end"), ("stop", "here", "now")],
        [("Port", "Depth", "Depth"), ("Sable", "1", "2"), ("Tarn", "3", "4"), ("Brno", "5", "6")],
        [("Port", "Depth", "Crew"), ("Sable", "1", "2"), ("Tarn", "3", ""), ("Brno", "5", ""), ("Turku", "6", "")],
        [("Name", "Remark"), ("Sable", "7"), ("Tarn", "a sentence of more than forty characters."), ("Brno", "9")],
    ):
        assert tables_of(parse_rows(rows)) == [], rows
