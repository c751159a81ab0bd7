"""Text that nobody sees, and text whose characters have no names."""

from __future__ import annotations

import pytest
from pdf_files import Page, font_naming, pdf_of

from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.documents.parsing.pdf.quality.readability import MISNAMED, NAMELESS, find_problem
from agentic_rag_backend.documents.recognition.base import Picture, RecognisedWord
from agentic_rag_backend.errors import UnreadableDocument

PROSE = (
    "The harbour authority began the tidal barrage in May and its engineers chose a site below the old bridge where the river is "
    "narrow and the bed is rock. Work stopped for two winters because the quay had to be built again from its very ground."
)
LAYER = "<< /Type /OCG /Name (Drafts) >>"


def text_of(operators: str, text: str = "Secret words", *, y: int = 600) -> str:
    return f"q {operators} BT /F1 10 Tf 72 {y} Td ({text}) Tj ET Q"


def test_words_that_nobody_sees_are_counted_and_left_out() -> None:
    layers = "/OCProperties << /OCGs [5 0 R] /D << /ON [] /OFF [{}] >> >>"
    dark = "0 0 0 rg 60 590 200 30 re f"
    for operators, seen in (
        (text_of("3 Tr"), False),
        (text_of("1 1 1 rg"), False),
        (text_of("0.95 g"), True),
        (dark + " " + text_of("1 1 1 rg"), True),
        (text_of("1 0 0 1 0 900 cm"), False),
        (f"/OC /L1 BDC {text_of('')} EMC", False),
        (f"/OC /L2 BDC {text_of('')} EMC", True),
    ):
        page = Page(resources="/Properties << /L1 5 0 R /L2 6 0 R >>").shows(72, 700, "The gate is shut.").draws(operators)
        document = PdfParser().parse(pdf_of(page, catalog=layers.format("5 0 R"), more_objects=[LAYER, LAYER]))
        assert ("Secret words" in document.text) == seen, operators
        assert document.warnings == (() if seen else ("not in the text: words that cannot be seen (2: page 1)",)), operators


def test_the_text_layer_of_a_scan_is_text() -> None:
    scan = Page().picture().draws(text_of("3 Tr", "Words of the scan, which lie below its picture"))
    assert PdfParser().parse(pdf_of(scan)).text.startswith("Words of the scan")


def test_a_document_of_hidden_text_is_refused_with_the_reason() -> None:
    with pytest.raises(UnreadableDocument, match="cannot be seen"):
        PdfParser().parse(pdf_of(Page().draws(text_of("3 Tr"))))


def test_faults_of_text() -> None:
    shifted = "".join(chr((ord(letter) - 97 + 3) % 26 + 97) if letter.islower() else letter for letter in PROSE)
    for text, fault in (
        (PROSE, None),
        (PROSE.upper(), None),
        ("H2O (25 °C) – x ∈ ℝ, ∑ ½; 12:30, 4.5 m, AB-1234", None),
        ("\uf0b7 The gate is shut.\n\uf0b7 The quay is wet, and the bridge is open to the carts of the town again.", None),
        ("港の門は shut です。 Ворота порта закрыты.", None),
        ("".join(map(chr, range(0xE041, 0xE060))), NAMELESS),
        (PROSE.replace("ar", "\ufffd").replace("th", "\ufffd"), NAMELESS),
        (PROSE.replace(" ", "\x03"), NAMELESS),
        (shifted, MISNAMED),
        ("ĵǎƶơǎƹŏķ ǔƼǎƹƃơŃ ɍɝɥɨɜɚɹ ɲɥɢɮɨɜɚɥɶɧɚɹ", MISNAMED),
        ("çϣɛϋ اِ㩈ă Ԕϸs ЇΰÎت ߙΨϣķ ଋҨǥab", MISNAMED),
    ):
        assert find_problem(text) == fault, text


class Reader:
    """`Recogniser` that reads one line in every picture."""

    name = "Tesseract 5.3.0, eng"
    stopped = None

    def words(self, picture: Picture) -> list[RecognisedWord]:
        words = ("The", "gate", "is", "shut.")
        return [
            RecognisedWord(word, (300 + 200 * number, 300, 480 + 200 * number, 340), 0.9, number == len(words) - 1)
            for number, word in enumerate(words)
        ]


def test_a_page_whose_text_cannot_be_read_is_recognised_or_named() -> None:
    letters = "The gate is shut."
    private = {letter: f"{0xE000 + ord(letter):04x}" for letter in letters}
    broken = pdf_of(Page(fonts="/F3 5 0 R").shows(72, 700, letters, font="F3"), more_objects=font_naming(private, 5))
    recognised = PdfParser(Reader()).parse(broken)
    assert recognised.text == letters
    assert recognised.metadata["ocr_pages"] == 1
    with pytest.raises(UnreadableDocument, match=r"do not name the characters.*not recognised"):
        PdfParser().parse(broken)
    partly = {letter: f"{ord(letter):04x}" for letter in letters} | {"s": "0000"}
    page = Page(fonts="/F3 5 0 R").shows(72, 700, letters, font="F3")
    document = PdfParser().parse(pdf_of(page, more_objects=font_naming(partly, 5)))
    assert document.text == "The gate i\ufffd \ufffdhut."
    assert document.warnings == (f"page 1: the text is wrong or unreadable: {NAMELESS}",)
