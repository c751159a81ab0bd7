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
    assert "| 0123 456 |\n\nNobody else has a telephone in the harbour office\n\nOther people" in document.text


def test_a_value_stands_in_every_row_and_column_of_its_cell() -> None:
    page = Page()
    for left, y in ((70, 640), (200, 615), (70, 590), (200, 565), (70, 540), (70, 515)):
        page.draws(f"{left} {y} m 460 {y} l S")
    for x, top in ((70, 640), (200, 640), (330, 615), (460, 640)):
        page.draws(f"{x} {top} m {x} 515 l S")
    page.shows(74, 610, "Quay").shows(220, 624, "Berths of the harbour").shows(210, 599, "Inner").shows(340, 599, "Outer")
    page.shows(74, 562, "North").shows(210, 574, "Bram").shows(340, 574, "Ann").shows(210, 549, "Hedy").shows(340, 549, "Ida")
    page.shows(74, 524, "South").shows(210, 524, "Milo").shows(340, 524, "Ottoline")
    assert PdfParser().parse(pdf_of(page)).text.splitlines() == [
        "| Quay | Berths of the harbour – Inner | Berths of the harbour – Outer |",
        "| --- | --- | --- |",
        "| North | Bram | Ann |",
        "| North | Hedy | Ida |",
        "| South | Milo | Ottoline |",
    ]


def page_of_rows(*rows: tuple[str, str, str], x: float = 0.0) -> Page:
    ys = [750 - 20 * number for number in range(len(rows) + 1)]
    page = Page().grid([edge + x for edge in XS], ys)
    for number, row in enumerate(rows):
        for edge, cell in zip(XS, row, strict=False):
            page.shows(edge + x + 4, ys[number] - 14, cell)
    return page


def test_a_table_goes_on_on_the_next_page() -> None:
    names = ("Port", "Depth", "Keeper")
    ports = [(f"Port {number}", f"{number} m", f"Keeper {number}") for number in range(1, 5)]
    header, rule = "| Port | Depth | Keeper |\n", "| --- | --- | --- |\n"
    whole = header + rule + "\n".join(f"| {' | '.join(port)} |" for port in ports)
    for second, text in (
        (page_of_rows(*ports[2:]), whole),
        (page_of_rows(names, *ports[2:]), whole),
        (page_of_rows(("Ship", "Length", "Owner"), *ports[2:]), "Ship | Length | Owner |\n| --- |"),
        (page_of_rows(*ports[2:], x=20), "| Port 2 | 2 m | Keeper 2 |\n\n|"),
    ):
        document = PdfParser().parse(pdf_of(page_of_rows(names, *ports[:2]), second))
        assert text in document.text
    assert document.regions[-1].page == 2


def test_frames_and_drawings_are_no_tables() -> None:
    framed = Page().grid((60, 500), (720, 600)).shows(72, 700, "A framed line of text").shows(72, 680, "and a second one.")
    assert "|" not in PdfParser().parse(pdf_of(framed)).text
    paper = Page().grid(range(50, 550, 10), range(50, 750, 10)).shows(72, 700, "Graph paper").shows(72, 300, "with two notes")
    assert "|" not in PdfParser().parse(pdf_of(paper)).text
    # Frames around lists of labels and values, with a few ruled rows beside them.
    form = Page().grid((60, 180, 300), (720, 600)).grid((300, 360, 420, 500), (720, 690, 660, 630, 600))
    form.column(64, 704, ["Claim", "Policy", "Phone"]).column(184, 704, ["SF-1008", "POL-2022", "425 111"])
    form.shows(304, 704, "Make").shows(304, 674, "Model")
    assert "|" not in PdfParser().parse(pdf_of(form)).text
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


def test_values_without_lines_around_them_stay_in_their_rows_and_columns() -> None:
    page = Page()
    for number, (port, keeper) in enumerate((("Port", "Keeper"), ("Wexcombe", "Ottoline Crake"), ("Sable", "Milo"))):
        page.shows(72, 700 - 14 * number, port).shows(260, 700 - 14 * number, keeper)
    page.column(72, 640, ["A paragraph below the table goes on", "over two lines."])
    lines = PdfParser().parse(pdf_of(page)).text.splitlines()
    assert lines[:3] == ["Port Keeper", "Wexcombe Ottoline Crake", "Sable Milo"]
    assert lines[-1] == "A paragraph below the table goes on over two lines."

    bills = Page()
    for y in (640, 620, 600, 580):
        bills.draws(f"70 {y} m 460 {y} l S")
    for x in (70, 460):
        bills.draws(f"{x} 640 m {x} 580 l S")
    for x in (200, 330):
        bills.draws(f"{x} 640 m {x} 620 l S")
    for y, row in ((626, ("Goods", "Price", "Rebate")), (606, ("Oil", "19.80", "")), (586, ("Nougat", "4.55", "10%"))):
        for x, value in zip(XS, row, strict=False):
            bills.shows(x + 4, y, value)
    assert "| Oil | 19.80 |  |\n| Nougat | 4.55 | 10% |" in PdfParser().parse(pdf_of(bills)).text
