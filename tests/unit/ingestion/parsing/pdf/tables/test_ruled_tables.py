from __future__ import annotations

from pdf_files import Page, pdf_of

from agentic_rag_backend.ingestion.parsing.pdf.pdf_parser import PdfParser

CELLS = [["Name", "Role", "Telephone"], ["Mara Venn", "Harbour master", "0123 456"], ["Jorin Asch", "Diver", "0123 789"]]
XS, YS = (70, 200, 330, 460), (640, 615, 590, 565)


def table_page(*, spanning: bool = False) -> Page:
    page = Page().shows(72, 700, "These people work in the harbour and can be called at night.")
    for row, cells in enumerate(CELLS):
        for column, cell in enumerate(cells):
            if not (spanning and row == 2):
                page.shows(XS[column] + 4, YS[row] - 16, cell)
    page.shows(72, 540, "Other people cannot be called.")
    if not spanning:
        return page.grid(XS, YS)
    page.shows(XS[0] + 4, YS[2] - 16, "Nobody else has a telephone in the harbour office")
    return page.grid((XS[0], XS[3]), YS).grid(XS, YS[:3])


def test_ruled_tables_are_rows_with_places() -> None:
    document = PdfParser().parse(pdf_of(table_page()))
    assert document.text.split("\n\n") == [
        "These people work in the harbour and can be called at night.",
        "| Name | Role | Telephone |\n| --- | --- | --- |\n"
        "| Mara Venn | Harbour master | 0123 456 |\n| Jorin Asch | Diver | 0123 789 |",
        "Other people cannot be called.",
    ]
    row = next(region for region in document.regions if "Mara" in document.text[region.start_char : region.end_char])
    assert (row.page, row.box) == (1, (70, 590, 460, 615))


def test_cells_that_span_columns_keep_their_text_together() -> None:
    document = PdfParser().parse(pdf_of(table_page(spanning=True)))
    assert "| Nobody else has a telephone in the harbour office |  |  |" in document.text


def test_frames_and_drawings_are_no_tables() -> None:
    framed = Page().grid((60, 500), (720, 600)).shows(72, 700, "A framed line of text").shows(72, 680, "and a second one.")
    assert "|" not in PdfParser().parse(pdf_of(framed)).text
    paper = Page().grid(range(50, 550, 10), range(50, 750, 10)).shows(72, 700, "Graph paper").shows(72, 300, "with two notes")
    assert "|" not in PdfParser().parse(pdf_of(paper)).text
    drawing = Page().shows(72, 700, "A map of many lines")
    for number in range(3_000):
        drawing.draws(f"{number % 600} 10 m {number % 600} {20 + number % 700} l S")
    assert PdfParser().parse(pdf_of(drawing)).text == "A map of many lines"


def test_a_heading_below_the_columns_stays_with_what_follows_them() -> None:
    page = Page()
    for number in range(5):
        page.shows(60, 700 - 12 * number, "Words of the left column in a row", size=9)
        page.shows(320, 700 - 12 * number, "Words of the right column in a row", size=9)
    page.shows(60, 600, "Staff on call").grid((60, 300, 540), (590, 570, 550))
    for row in range(2):
        page.shows(65, 575 - 20 * row, "left cell").shows(305, 575 - 20 * row, "right cell")
    text = PdfParser().parse(pdf_of(page)).text
    assert text.index("left column") < text.index("right column") < text.index("Staff on call") < text.index("left cell")
