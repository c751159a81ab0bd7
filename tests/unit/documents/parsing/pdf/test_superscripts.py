"""Superscripts, subscripts and characters above U+FFFF."""

from __future__ import annotations

import pytest
from pdf_files import LETTER_WIDTH, Page, font_naming, pdf_of

from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.documents.parsing.pdf.superscripts import add_superscript, mark_scripts


def line_of(*parts: tuple[str, float], gap: float = 0.0) -> Page:
    """Return a page with the parts of a line side by side. Rises are in points; raised and lowered parts are small."""
    page, x = Page(), 72.0
    for text, rise in parts:
        size = 7 if rise else 10
        page.shows(x, 700 + rise, text, size=size)
        x += LETTER_WIDTH * size * len(text) + gap
    return page


def test_superscripts_and_subscripts_keep_their_meaning() -> None:
    cases: list[tuple[list[tuple[str, float]], str]] = [
        ([("It held 10", 0), ("6", 4), (" cells.", 0)], "It held 10^6 cells."),
        ([("It held 10", 0), ("-3", 4), (" litres.", 0)], "It held 10^-3 litres."),
        ([("An area of 12 m", 0), ("2", 4), (" or 3 km", 0), ("2", 4)], "An area of 12 m^2 or 3 km^2"),
        ([("Then x", 0), ("n+1", 4), (" grows.", 0)], "Then x^(n+1) grows."),
        ([("CO", 0), ("2", -2), (" and H", 0), ("2", -2), ("O rise.", 0)], "CO2 and H2O rise."),
        ([("The mean x", 0), ("i", -2), (" and y", 0), ("1", -2), (" fall.", 0)], "The mean x_i and y_1 fall."),
        ([("the harbour", 0), ("12", 4), (" of Brno", 0)], "the harbour[12] of Brno"),
        ([("the harbour.", 0), ("3,4", 4), (" Then", 0)], "the harbour.[3,4] Then"),
        ([("the 4", 0), ("th", 4), (" harbour", 0)], "the 4th harbour"),
        ([("is 1", 0), ("3", 4), ("/", 0.001), ("4", -2), (" inches", 0)], "is 1 3/4 inches"),
        ([("12", 4), ("Measured at the gate.", 0)], "[12] Measured at the gate."),
    ]
    for parts, text in cases:
        assert PdfParser().parse(pdf_of(line_of(*parts))).text == text
    assert PdfParser().parse(pdf_of(line_of(("the number 10", 0), ("6", 4), ("cells", 0), gap=3))).text == "the number 10^6 cells"


def test_a_number_of_a_note_on_the_page_is_no_power() -> None:
    page = line_of(("The beam is 3", 0), ("12", 4), (" metres wide, of 10", 0), ("6", 4), (" parts.", 0))
    page.shows(72, 80, "12 Measured at the north gate.", size=7)
    text = PdfParser().parse(pdf_of(page)).text
    assert text.splitlines()[0] == "The beam is 3[12] metres wide, of 10^6 parts."


@pytest.mark.parametrize(("text", "heights"), [("", ()), ("ab", (0.0, 0.0)), ("HARBOUR", (10, 7, 7, 7, 7, 7, 7))])
def test_text_of_one_base_line_has_no_marks(text: str, heights: tuple[float, ...]) -> None:
    if text:
        assert mark_scripts(text, heights, [5.0] * len(text)) == text
    assert add_superscript("Harbour", "*") == "Harbour*"


def test_characters_above_the_basic_plane_and_unnamed_ones() -> None:
    page = Page(fonts="/F3 5 0 R").shows(72, 700, "The volume V of the lock is V = 3 W", font="F3")
    names = {letter: f"{ord(letter):04x}" for letter in "The volume of lock is = 3 W"} | {"V": "d835dc49"}
    text = PdfParser().parse(pdf_of(page, more_objects=font_naming(names, 5))).text
    assert text == "The volume \U0001d449 of the lock is \U0001d449 = 3 W"
