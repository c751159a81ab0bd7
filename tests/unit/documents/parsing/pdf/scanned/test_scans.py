"""Pages that are pictures, with a recogniser that knows where the words are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from pdf_files import Page, pdf_of

from agentic_rag_backend.documents.parsing.mail.mail_parser import MailParser
from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.documents.parsing.pdf.scanned import scans
from agentic_rag_backend.documents.parsing.pdf.scanned.scans import list_pages
from agentic_rag_backend.documents.parsing.pdf.scanned.sizes import UNKNOWN, raise_boxes
from agentic_rag_backend.documents.recognition.base import (
    NoRecogniser,
    NotRecognised,
    Picture,
    RecognisedWord,
    RecognitionLimit,
)
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

LINES = [
    "The harbour authority began the tidal bar-",
    "rage in May 2019, and its engineers chose",
    "a site below the old bridge on the quay.",
]


def page_of(lines: Sequence[str], *, top: int = 400, height: int = 40, confidence: float = 0.9) -> list[RecognisedWord]:
    """Return the words of lines at 300 dpi, from 300 pixels to the right: letters are 20 pixels wide, and lines 50 high."""
    words = []
    for number, line in enumerate(lines):
        left, upper = 300, top + number * round(1.25 * height)
        for text in line.split():
            width = height // 2 * len(text)
            box = (left, upper, left + width, upper + height)
            words.append(RecognisedWord(text, box, confidence))
            left += width + height // 2
        words[-1] = replace(words[-1], ends_line=True)
    return words


class Scripted:
    """`Recogniser` that gives a prepared result for each picture."""

    name = "Tesseract 5.3.0, eng"

    def __init__(self, *results: Sequence[RecognisedWord] | NotRecognised) -> None:
        self._results: Iterator[Sequence[RecognisedWord] | NotRecognised] = iter(results)
        self.pictures: list[Picture] = []
        self.stopped: NotRecognised | None = None

    def words(self, picture: Picture) -> Sequence[RecognisedWord]:
        self.pictures.append(picture)
        result = next(self._results)
        if isinstance(result, RecognitionLimit):
            self.stopped = result
        if isinstance(result, NotRecognised):
            raise result
        return result


def scan(rotate: int = 0) -> Page:
    return Page(rotate=rotate).picture()


def test_a_picture_is_recognised_with_lines_and_boxes() -> None:
    recogniser = Scripted(page_of(LINES))
    document = PdfParser(recogniser).parse(pdf_of(scan()))
    picture = recogniser.pictures[0]
    assert (picture.width, picture.dpi) == (2550, 300)
    assert picture.height in {3300, 3301}
    assert len(picture.pixels) == picture.width * picture.height
    assert set(picture.pixels) == {0x80}
    assert document.text == "The harbour authority began the tidal barrage in May 2019, and its engineers chose " + LINES[2]
    assert document.regions[2].page == 1
    assert document.regions[2].box == pytest.approx(
        (72, 792 - (500 + 40) * 0.24, 72 + len(LINES[2]) * 4.8, 792 - 500 * 0.24), abs=0.1
    )
    assert document.metadata["ocr_pages"] == 1
    assert document.metadata["ocr_confidence"] == 0.9
    assert document.warnings == ("text was recognised in pictures (Tesseract 5.3.0, eng; mean confidence 90%) on page 1",)
    assert document.failures == ()


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_pages_on_their_side_or_upside_down_are_read_in_order(turn: int) -> None:
    def moved(word: RecognisedWord) -> RecognisedWord:
        left, top, right, bottom = word.box
        places = {1: (top, 3300 - right, bottom, 3300 - left), 2: (2550 - right, 3300 - bottom, 2550 - left, 3300 - top)}
        return replace(word, box={**places, 3: (2550 - bottom, left, 2550 - top, right)}[turn])

    words = [*map(moved, page_of(["Title", *LINES]))]
    document = PdfParser(Scripted(words)).parse(pdf_of(scan()))
    assert "tidal barrage in May 2019, and its engineers chose a site below" in document.text
    assert document.text.startswith("Title")
    box = document.regions[-1].box
    assert box is not None
    assert sorted((box[2] - box[0], box[3] - box[1])) == pytest.approx([9.6, len(LINES[2]) * 4.8], abs=0.5)


def test_text_from_right_to_left_is_not_upside_down() -> None:
    texts = ["אבג", "דהו", "זחט"]
    words = [RecognisedWord(each, (900 - 200 * n, 400, 1050 - 200 * n, 440), 0.9) for n, each in enumerate(texts)]
    document = PdfParser(Scripted([*words[:-1], replace(words[-1], ends_line=True)])).parse(pdf_of(scan()))
    assert document.text == "אבג דהו זחט"
    assert document.regions[0].box == pytest.approx((500 * 0.24, 792 - 440 * 0.24, 1050 * 0.24, 792 - 400 * 0.24), abs=0.1)


@pytest.mark.parametrize(
    ("rotate", "begins"),
    [(90, (96, 72)), (180, (540, 96)), (270, (516, 720))],
)
def test_boxes_of_rotated_pages_are_in_unrotated_space(rotate: int, begins: tuple[float, float]) -> None:
    text = "Words on a page that is rotated, which lie on one line"
    document = PdfParser(Scripted(page_of([text]))).parse(pdf_of(scan(rotate)))
    assert document.text == text
    box = document.regions[0].box
    assert box is not None
    left, bottom, right, top = box
    assert sorted((right - left, top - bottom)) == pytest.approx([9.6, len(text) * 4.8], abs=0.1)
    assert (right - left > top - bottom) == (rotate == 180)
    corner = {90: (left, bottom), 180: (right, bottom), 270: (right, top)}[rotate]
    assert corner == pytest.approx(begins, abs=0.1)


def test_only_pictures_are_recognised_and_stamps_are_kept_once() -> None:
    stamped = Page().picture().shows(72, 700, "Scanned by Ada")
    recogniser = Scripted(page_of(["Scanned by Ada"], top=350), page_of([*LINES, "Scanned again"]))
    written = Page().picture().column(72, 700, ["A page with enough text of its own", "on a picture, which is the background"])
    document = PdfParser(recogniser).parse(pdf_of(stamped, written, scan(), Page()))
    assert len(recogniser.pictures) == 2
    assert document.text.count("Scanned by Ada") == 1
    assert document.text.index("enough text") < document.text.index("harbour")
    assert document.metadata["ocr_pages"] == 2


def test_larger_type_is_a_heading_and_letters_without_stems_are_not() -> None:
    words = page_of(["Harbour works"], top=300, height=80)
    body = page_of([*LINES, *LINES], top=500)
    low = page_of(["we saw no sea or sun"], top=900, height=20)
    document = PdfParser(Scripted([*words, *body, *low])).parse(pdf_of(scan()))
    assert [heading.title for heading in document.headings] == ["Harbour works"]


def test_the_size_of_a_font_does_not_depend_on_the_letters() -> None:
    inks = {"Agb": 100, "Ace": 78, "age": 72, "ace": 50}
    sizes = [raise_boxes([text * 3], [(0, 0, 90, ink)])[1] for text, ink in inks.items()]
    assert sizes == pytest.approx([115.0] * 4)
    assert raise_boxes(["12"], [(0, 0, 90, 70)])[1] == UNKNOWN


def test_pages_that_were_not_recognised_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "DPI", 30)
    failed, limit = NotRecognised("Tesseract was ended by SIGKILL"), RecognitionLimit("at most 3 pages (OCR_MAX_PAGES)")
    recogniser = Scripted(page_of(LINES), failed, limit)
    document = PdfParser(recogniser).parse(pdf_of(*[scan()] * 6))
    [failure] = document.failures
    assert (failure.stage, failure.code) == ("parse", "resource_limit")
    assert failure.message == (
        "text in pictures was not recognised: page 2 (Tesseract was ended by SIGKILL); "
        "pages 3–6 (at most 3 pages (OCR_MAX_PAGES))"
    )
    assert len(recogniser.pictures) == 3
    assert document.metadata["ocr_pages"] == 1
    many = Scripted(page_of(LINES), *[NotRecognised(f"reason {number}") for number in range(20)])
    [failure] = PdfParser(many).parse(pdf_of(*[scan()] * 21)).failures
    assert failure.code == "ocr_failed"
    assert failure.message.endswith("page 6 (reason 4); 15 more pages")


def test_without_a_recogniser_the_reason_says_how_to_get_one() -> None:
    parser = PdfParser(NoRecogniser("install Tesseract"))
    with pytest.raises(UnreadableDocument, match=r"only images: 1 of 2 pages are pictures without text; .*: install Tesseract"):
        parser.parse(pdf_of(scan(), Page()))
    document = parser.parse(pdf_of(Page().column(72, 700, LINES), scan(), scan(), Page().picture().shows(72, 700, "Title")))
    assert document.warnings == ("pages 2–3: pictures without text; text in pictures is not recognised: install Tesseract",)
    assert document.failures == ()
    assert "ocr_pages" not in document.metadata


@pytest.mark.parametrize(
    ("result", "kind", "reason"),
    [
        (page_of(["~ ;: | ,.' x"], confidence=0.4), UnreadableDocument, "no text was recognised in them"),
        ([], UnreadableDocument, "no text was recognised in them"),
        (NotRecognised("Tesseract was ended by SIGKILL"), UnreadableDocument, "ended by SIGKILL"),
        (RecognitionLimit("more than 600 seconds (OCR_TIMEOUT_S)"), ResourceLimit, "OCR_TIMEOUT_S"),
    ],
)
def test_pictures_without_text_are_unreadable(
    result: Sequence[RecognisedWord] | NotRecognised, kind: type[UnreadableDocument], reason: str
) -> None:
    with pytest.raises(UnreadableDocument, match=reason) as refused:
        PdfParser(Scripted(result)).parse(pdf_of(scan()))
    assert type(refused.value) is kind
    assert "only images: 1 of 1 pages" in refused.value.message


def test_huge_images_and_pages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = pdf_of(scan()).replace(b"/Width 1 /Height 1", b"/Width 100000 /Height 100000")
    recogniser = Scripted()
    with pytest.raises(UnreadableDocument, match="an image has 100000 × 100000 pixels; the limit is 100 million"):
        PdfParser(recogniser).parse(bomb)
    assert recogniser.pictures == []
    monkeypatch.setattr(scans, "MAX_PICTURE_PIXELS", 90_000)
    small = Scripted([])
    with pytest.raises(UnreadableDocument):
        PdfParser(small).parse(pdf_of(scan()))
    assert small.pictures[0].width * small.pictures[0].height <= 91_000
    assert small.pictures[0].dpi == 31


def test_attachments_share_the_recogniser_of_their_message() -> None:
    head = 'From: a@example.org\nContent-Type: multipart/mixed; boundary="b"\n\n'
    part = '--b\nContent-Type: application/pdf; name="{}.pdf"\nContent-Transfer-Encoding: 8bit\n\n'
    pdf = pdf_of(scan()).replace(b"\x80\nendstream", b"a\nendstream")
    message = head.encode() + b"".join(part.format(name).encode() + pdf + b"\n" for name in ["one", "two"]) + b"--b--\n"
    recogniser = Scripted(page_of(LINES), NotRecognised("Tesseract was ended by SIGKILL"))
    document = MailParser().with_recogniser(recogniser).parse(message)
    assert "tidal barrage" in document.text
    assert any("attachment one.pdf: text was recognised" in warning for warning in document.warnings)
    assert any("attachment two.pdf: not read" in warning for warning in document.warnings)


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ([3], "page 3"),
        ([7, 1, 2, 3], "pages 1–3, 7"),
        (range(1, 40, 2), "pages 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 and 8 more"),
    ],
)
def test_pages_are_listed_as_ranges(pages: Sequence[int], expected: str) -> None:
    assert list_pages(pages) == expected
