"""Tables without ruled lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pdf_files import Page, pdf_of

from agentic_rag_backend.ingestion.parsing.pdf.parser import PdfParser

STAFF = [
    ["Name", "Role", "Telephone"],
    ["Mara Venn", "Harbour master", "0123 456"],
    ["Jorin Asch", "Diver", "0123 789"],
    ["Petra Sauvage", "Archivist", "0123 417"],
]
MARKDOWN = (
    "| Name | Role | Telephone |\n| --- | --- | --- |\n| Mara Venn | Harbour master | 0123 456 |\n"
    "| Jorin Asch | Diver | 0123 789 |\n| Petra Sauvage | Archivist | 0123 417 |"
)


def shown(
    page: Page, rows: Sequence[Sequence[str]], *, xs: Sequence[float] = (72, 200, 330), top: float = 660, pitch: float = 18
) -> Page:
    for number, row in enumerate(rows):
        for x, cell in zip(xs, row, strict=True):
            if cell:
                page.shows(x, top - pitch * number, cell)
    return page


def text_of(*pages: Page) -> str:
    return PdfParser().parse(pdf_of(*pages)).text


def test_rows_with_aligned_cells_are_a_table_with_places() -> None:
    page = shown(Page().shows(72, 700, "These people work in the harbour and can be called at night."), STAFF)
    document = PdfParser().parse(pdf_of(page.shows(72, 580, "Other people who work there cannot be called at night.")))
    assert document.text.split("\n\n") == [
        "These people work in the harbour and can be called at night.",
        MARKDOWN,
        "Other people who work there cannot be called at night.",
    ]
    row = next(each for each in document.regions if "Petra" in document.text[each.start_char : each.end_char])
    assert row.page == 1
    assert row.box is not None
    left, bottom, right, top = row.box
    assert 71 <= left < 73
    assert right > 330
    assert 600 <= bottom < 606 < top < 620


def test_a_cell_of_two_lines_is_one_cell() -> None:
    rows = [*STAFF[:2], ["", "and pilot", ""], *STAFF[2:]]
    assert "| Mara Venn | Harbour master and pilot | 0123 456 |\n| Jorin Asch |" in text_of(shown(Page(), rows))


def test_an_empty_cell_and_a_row_for_a_group_stay() -> None:
    rows = [STAFF[0], ["By day", "", ""], *STAFF[1:3], ["Olin Marsh", "", "0123 402"]]
    assert text_of(shown(Page(), rows)).endswith(
        "| By day |  |  |\n| Mara Venn | Harbour master | 0123 456 |\n| Jorin Asch | Diver | 0123 789 |\n"
        "| Olin Marsh |  | 0123 402 |"
    )


def test_numbers_may_end_at_one_place() -> None:
    page = Page()
    for number, (name, count) in enumerate([("Harbour", "Ships"), ("Aldry", "7"), ("Scarrow", "118"), ("Lowmere", "1,204")]):
        page.shows(72, 660 - 18 * number, name).shows(300 - 6 * len(count), 660 - 18 * number, count)
    assert text_of(page) == "| Harbour | Ships |\n| --- | --- |\n| Aldry | 7 |\n| Scarrow | 118 |\n| Lowmere | 1,204 |"


def test_two_columns_of_words_have_no_header() -> None:
    rows = [["mode", "string"], ["colour", "list of numbers"], ["name", "string"], ["window", "table of pairs"]]
    assert text_of(shown(Page(), rows, xs=(72, 200))).startswith("|  |  |\n| --- | --- |\n| mode | string |\n")


def test_a_table_continues_on_the_next_page() -> None:
    more = [
        STAFF[0],
        ["Olin Marsh", "Caretaker", "0123 402"],
        ["Ada Finch", "Pilot", "0123 403"],
        ["Bo Crane", "Cook", "0123 404"],
    ]
    pages = shown(Page(), STAFF, top=120), shown(Page(), more, top=760)
    document = PdfParser().parse(pdf_of(*pages))
    assert (
        document.text
        == f"{MARKDOWN}\n| Olin Marsh | Caretaker | 0123 402 |\n| Ada Finch | Pilot | 0123 403 |\n| Bo Crane | Cook | 0123 404 |"
    )
    assert [each.page for each in document.regions if "0123" in document.text[each.start_char : each.end_char]] == [
        1,
        1,
        1,
        2,
        2,
        2,
    ]
    apart = shown(Page(), STAFF, top=120), shown(Page(), more, top=760, xs=(90, 230, 380))
    assert text_of(*apart).count("| --- | --- | --- |") == 2


def test_a_ruled_table_continues_on_the_next_page() -> None:
    xs, ys = (70, 200, 330, 460), (640, 615, 590)
    pages = []
    for rows in (STAFF[:2], STAFF[2:]):
        page = Page().grid(xs, ys)
        for row, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                page.shows(xs[column] + 4, ys[row] - 16, cell)
        pages.append(page)
    assert text_of(*pages) == MARKDOWN


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([["1.", "Casting off"], ["2.", "Going about"], ["3.", "Mooring"], ["4.", "Reefing"]], id="a numbered list"),
        pytest.param([["•", "Casting off"], ["•", "Going about"], ["•", "Mooring"], ["•", "Reefing"]], id="a list with marks"),
        pytest.param([["Casting off", "3"], ["Going about", "7"], ["Mooring", "12"], ["Reefing", "19"]], id="contents"),
        pytest.param([["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]], id="a matrix of letters"),
        pytest.param([["1.5", "2.5"], ["3.5", "4.5"], ["5.5", "6.5"], ["7.5", "8.5"]], id="a matrix of numbers"),
        pytest.param(
            [["int speed;", "// knots"], ["int depth;", "// feet"], ["x = 3;", "// ropes"], ["y = 4;", "// men"]], id="code"
        ),
        pytest.param([["x + y", "= 3 a + b"], ["a", "= 4 x y"], ["b", "= c d"], ["c", "= e f g"]], id="equations"),
        pytest.param([["K a + b", "X n k"], ["D r - t", "S k c"], ["n r + X", "G k e"], ["P v - T", "U x z"]], id="formulas"),
        pytest.param([["Mara Venn", "Diver"], ["Jorin Asch", "Pilot"]], id="two rows"),
        pytest.param([["Mara " * number, "Diver " * (5 - number)] for number in range(1, 5)], id="cells at no common place"),
    ],
)
def test_other_aligned_texts_are_no_tables(rows: Sequence[Sequence[str]]) -> None:
    page = Page()
    for number, row in enumerate(rows):
        moved = 22 * number if len(row[0]) > 20 or row[0].startswith("Mara Mara") else 0
        page.shows(72 + moved, 660 - 18 * number, row[0]).shows(260 + 2 * moved, 660 - 18 * number, row[1])
    assert "|" not in text_of(page)


def test_columns_of_text_are_no_table() -> None:
    page = Page()
    for number in range(12):
        page.shows(60, 700 - 12 * number, "Words of the left column stand in a row", size=9)
        page.shows(320, 700 - 12 * number, "Words of the right column stand in a row", size=9)
    text = text_of(page)
    assert "|" not in text
    assert text.index("right") > text.rindex("left")
