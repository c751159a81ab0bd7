from __future__ import annotations

from pdf_files import Page, font_naming, pdf_of

from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser

LETTERS = dict(zip("abcdefgh", "港の門を閉める。", strict=True)) | {"K": "한", "L": "글"}


def text_of(page: Page) -> str:
    page.fonts = "/F3 5 0 R"
    names = {letter: f"{ord(name):04x}" for letter, name in LETTERS.items()} | {"x": "0078", " ": "0020"}
    return PdfParser().parse(pdf_of(page, more_objects=font_naming(names, 5))).text


def test_letters_of_one_sentence_have_no_spaces_between_them() -> None:
    spaced, wide, wrapped, korean = Page(), Page(), Page(), Page()
    for number, letter in enumerate("abcdefgh"):
        spaced.shows(72 + 9 * number, 700, letter, font="F3")
        wide.shows(72 + 18 * number, 700, letter, font="F3")
    assert text_of(spaced) == text_of(wide) == "港の門を閉める。"
    wrapped.shows(72, 700, "abcdefg" * 6, font="F3").shows(72, 688, "abcdefg" * 6, font="F3")
    assert text_of(wrapped) == "港の門を閉める" * 12
    assert text_of(korean.shows(72, 700, "K L x a", font="F3")) == "한 글 x 港"


def test_vertical_lines_are_read_from_the_right() -> None:
    page = Page()
    for column, line in enumerate(("abcdef", "ghabc")):
        for number, letter in enumerate(line):
            page.shows(300 - 20 * column, 700 - 11 * number, letter, font="F3")
    assert "".join(text_of(page).split()) == "港の門を閉める。港の門"
