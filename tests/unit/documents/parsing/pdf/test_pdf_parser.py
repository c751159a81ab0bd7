from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pdf_files import Page, pdf_of

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.pdf import opening
from agentic_rag_backend.documents.parsing.pdf.details import date_of
from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.errors import UnreadableDocument

PARSER = PdfParser()
LEFT = [
    "The harbour authority began the tidal",
    "barrage in May 2019. Its engineers chose",
    "a site below the old bridge, where the",
    "river is narrow and the bed is rock.",
    "Work stopped for two winters.",
]
RIGHT = [
    "The second phase was led by Mara Venn.",
    "She had built three dams before, and she",
    "insisted on a fish passage of her own",
    "design. It opened in June 2022 with a",
    "ceremony on the quay.",
]


def parsed(*pages: Page, **more: object) -> ParsedDocument:
    document = PARSER.parse(pdf_of(*pages, **more))  # type: ignore[arg-type]
    for one, other in zip(document.regions, document.regions[1:], strict=False):
        assert one.end_char <= other.start_char
    return document


def shown(document: ParsedDocument) -> list[str]:
    return [document.text[region.start_char : region.end_char] for region in document.regions]


def test_each_line_has_its_page_and_box() -> None:
    document = parsed(Page().column(72, 700, LEFT), Page().shows(72, 600, "A line of the second page"))
    assert document.text.startswith("The harbour authority began the tidal barrage in May 2019. Its engineers chose a site")
    assert shown(document) == [*LEFT, "A line of the second page"]
    second = document.regions[1]
    assert second.page == 1
    assert second.label is None
    assert second.box == pytest.approx((72, 688, 72 + 6 * len(LEFT[1]), 688), abs=9)
    assert second.box is not None
    assert second.box[1] < 688 < second.box[3]
    assert document.regions[-1].page == 2


def test_columns_are_read_one_after_the_other() -> None:
    page = Page().shows(100, 740, "A title above both of the columns of this page", size=14)
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        page.shows(60, 700 - 12 * number, left, size=9).shows(320, 700 - 12 * number, right, size=9)
    page.column(
        60, 600, ["A closing line of text which runs over the whole width of the page to its right edge, then it ends."], size=8
    )
    document = parsed(page)
    assert document.text.index("title above") < document.text.index("two winters") < document.text.index("second phase")
    assert document.text.index("on the quay") < document.text.index("A closing line")
    assert "insisted on a fish passage of her own design." in document.text


def test_hyphens_that_the_end_of_a_line_causes_are_joined() -> None:
    lines = [
        "The engineers looked for more infor-",
        "mation about the well-known Anglo-",
        "Saxon fords, which are well-",
        "known to anglers of the region.",
    ]
    document = parsed(Page().column(72, 700, lines))
    assert document.text == (
        "The engineers looked for more information about the well-known Anglo-Saxon fords, which are well-known to anglers "
        "of the region."
    )
    assert shown(document)[:2] == ["The engineers looked for more infor", "mation about the well-known Anglo-"]


def test_paragraphs_are_separated_by_distance_or_indent() -> None:
    document = parsed(
        Page()
        .column(72, 700, LEFT)
        .column(72, 620, RIGHT[:4])
        .shows(92, 572, "An indented line begins a paragraph here")
        .shows(72, 560, "and goes on.")
    )
    blocks = document.text.split("\n\n")
    assert [block[:12] for block in blocks] == ["The harbour ", "The second p", "An indented "]


def test_running_heads_and_page_numbers_are_left_out_once_they_are_repeated() -> None:
    def pages(head: str, foot: str, count: int = 4) -> list[Page]:
        words = ("Dredging", "Piling", "Concrete", "Steel")[:count]
        return [
            Page()
            .shows(72, 760, head.format(number))
            .column(72, 700, [f"{word} is the first line.", f"{word} is the second one."])
            .shows(72, 30, foot.format(number))
            for number, word in enumerate(words, start=1)
        ]

    head_once = ("not in the text: running heads (4: page 1, page 2, page 3, …)",)
    numbers = ("not in the text: page numbers (4: page 1, page 2, page 3, …)",)
    for head, foot, heads, warnings in (
        ("Harbour report", "", 1, head_once),
        ("Harbour report", "- {} -", 1, head_once + numbers),
        ("", "Harbour report                 {}", 1, head_once),
        ("", "Harbour report, page {} of 4", 1, head_once),
        ("Harbour report {}", "", 4, ()),
        ("Invoice number 2024-00{} for Harbour report", "", 4, ()),
    ):
        document = parsed(*pages(head, foot))
        assert document.text.count("Harbour report") == heads, (head, foot)
        assert document.text.count("first line") == 4
        assert set(document.warnings) == set(warnings), (head, foot)
    one_of_two_pages = [*pages("Harbour report", "", 2), *pages("", "", 4)]
    assert parsed(*one_of_two_pages).text.count("Harbour report") == 2
    at_the_top, at_the_bottom = parsed(*pages("Harbour report", "")), parsed(*pages("", "Harbour report"))
    assert at_the_top.text.startswith("Harbour report")
    assert at_the_bottom.text.endswith("Harbour report")
    assert at_the_bottom.regions[-1].page == 1


def test_a_page_of_nothing_else_keeps_what_is_repeated() -> None:
    assert parsed(*[Page().shows(72, 760, "Certificate of swimming")] * 4).text.count("Certificate") == 4
    assert parsed(*[Page().shows(300, 30, str(number)) for number in range(1, 4)]).text.split() == ["1", "2", "3"]


def test_the_outline_gives_headings() -> None:
    page = Page().shows(72, 740, "1. Barrage", size=10).column(72, 720, LEFT).shows(72, 640, "2. Passage").column(72, 620, RIGHT)
    document = parsed(page, outline=[("Barrage", 0), ("Passage", 0), ("Lost", 0)])
    assert [(heading.level, heading.title) for heading in document.headings] == [(1, "1. Barrage"), (1, "2. Passage")]
    for heading in document.headings:
        assert document.text[heading.start_char :].startswith(heading.title + "\n")


def test_larger_type_gives_headings() -> None:
    page = Page().shows(72, 750, "Harbour works", size=20).shows(72, 720, "The barrage", size=14).column(72, 700, LEFT)
    document = parsed(page)
    assert [(heading.level, heading.title) for heading in document.headings] == [(1, "Harbour works"), (2, "The barrage")]


def test_metadata_and_page_labels() -> None:
    info = "/Title (Harbour works) /Author (Mara Venn) /CreationDate (D:20190502101500+02'00')"
    document = parsed(
        *[Page().shows(72, 700, f"Words of page {word}") for word in ("one", "two", "three")],
        info=info,
        labels="0 << /S /r >> 2 << /S /D /St 1 >>",
    )
    assert document.title == "Harbour works"
    assert document.metadata == {"author": "Mara Venn", "created": "2019-05-02T10:15:00+02:00", "pages": 3}
    assert [(region.page, region.label) for region in document.regions] == [(1, "i"), (2, "ii"), (3, "1")]
    assert parsed(Page().shows(72, 700, "Words enough"), info="/Title (Microsoft Word - a.doc)").title is None
    placeholders = r"/Title (\(anonymous\)) /Author (anonymous) /Subject (\(unspecified\))"
    unnamed = parsed(Page().shows(72, 700, "Words enough"), info=placeholders)
    assert (unnamed.title, unnamed.metadata) == (None, {"pages": 1})


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("D:2019", "2019-01-01"),
        ("20190502", "2019-05-02"),
        ("D:20190532", None),
        ("", None),
        ("D:201905021015Z", "2019-05-02T10:15:00+00:00"),
    ],
)
def test_dates(written: str, date: str | None) -> None:
    assert date_of(written) == date


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_rotated_and_cropped_pages_keep_boxes_in_unrotated_space(rotate: int) -> None:
    turn = rotate // 90
    x, y = ((100, 700), (300, 100), (500, 100), (300, 700))[turn]
    step = ((0, -12), (12, 0), (0, 12), (-12, 0))[turn]
    page = Page(rotate=rotate, crop=(20, 20, 580, 780))
    for number, line in enumerate(LEFT):
        page.shows(x + number * step[0], y + number * step[1], line, turn=turn)
    document = parsed(page)
    assert document.text.startswith("The harbour authority began the tidal barrage in May 2019.")
    box = document.regions[0].box
    assert box is not None
    assert box[0] - 0.1 <= x <= box[2] + 0.1
    assert box[1] - 0.1 <= y <= box[3] + 0.1
    assert ((box[2] - box[0]) > (box[3] - box[1])) == (turn in {0, 2})


def test_text_across_the_page_comes_last() -> None:
    document = parsed(Page().shows(30, 100, "margin note", turn=1).column(72, 700, LEFT))
    assert document.text.endswith("margin note")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a PDF", "damaged"),
        (b"%PDF-1.7\n%%EOF", "damaged"),
        (pdf_of(Page().picture()), "only images: 1 of 1 pages"),
        (pdf_of(Page()), "no text"),
        (
            pdf_of(
                Page().shows(9, 9, "x"),
                trailer=" /Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P -4"
                f" /O <{'41' * 32}> /U <{'42' * 32}> >> /ID [<{'43' * 16}> <{'43' * 16}>]",
            ),
            "password",
        ),
    ],
)
def test_reasons(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableDocument, match=message):
        PARSER.parse(content)


def test_more_pages_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_PAGES", 3)
    with pytest.raises(UnreadableDocument, match="4 pages; the limit is 3"):
        PARSER.parse(pdf_of(*[Page().shows(9, 9, "words of a page")] * 4))


def test_ten_thousand_pages_are_refused() -> None:
    head, _, _ = pdf_of(Page().shows(9, 9, "words of a page")).partition(b"xref\n")
    many = head.replace(b"/Count 1 /Kids [6 0 R]", b"/Count 10001 /Kids [" + b"6 0 R " * 10_001 + b"]")
    with pytest.raises(UnreadableDocument, match="10001 pages; the limit is 10000"):
        PARSER.parse(many + b"trailer\n<< /Root 1 0 R >>\n%%EOF")


def test_check() -> None:
    content = pdf_of(Page().shows(72, 700, "Some words"), info="/Title (Harbour works)")
    assert PARSER.check(content, is_whole=True).title == "Harbour works"
    assert PARSER.check(content[:50], is_whole=False).title is None
    for head, whole in ((b"\x89PNG\r\n", False), (content[:50], True)):
        with pytest.raises(UnreadableDocument):
            PARSER.check(head, is_whole=whole)


def test_cyclic_files_end() -> None:
    content = pdf_of(Page().shows(72, 700, "Some words of the page"), outline=[("One", 0), ("Two", 0)])
    cyclic = content.replace(b"/Next 9 0 R", b"/Next 8 0 R")
    assert cyclic != content
    assert PARSER.parse(cyclic).text == "Some words of the page"
    with pytest.raises(UnreadableDocument):
        PARSER.parse(content.replace(b"/Kids [6 0 R]", b"/Kids [2 0 R]"))


SEED = pdf_of(
    Page().column(72, 700, LEFT).grid((70, 200, 300), (500, 520, 540)),
    Page(rotate=90).picture(),
    info="/Title (A)",
    outline=[("B", 0)],
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, len(SEED) - 1), st.binary(max_size=4)), min_size=1, max_size=6), st.integers(0, len(SEED))
)
def test_mutated_files_are_read_or_refused(changes: list[tuple[int, bytes]], cut: int) -> None:
    content = bytearray(SEED)
    for position, new in changes:
        content[position : position + len(new)] = new
    for each in (bytes(content), bytes(content[:cut])):
        try:
            document = PARSER.parse(each)
        except UnreadableDocument:
            continue
        assert document.text


def test_crowded_pages_take_bounded_work() -> None:
    """Words without order and a grid of 900 lines. Quadratic work would exceed the time limit of the test."""
    crowded, ruled = Page(), Page()
    for number in range(10_000):
        crowded.shows(number * 37 % 600, number * 101 % 780, "word", size=8)
    for number in range(450):
        ruled.draws(f"{number} 0 m {number} 700 l S 0 {number * 1.5} m 600 {number * 1.5} l S")
        ruled.shows(number * 37 % 600, number * 101 % 780, "word", size=8)
    assert len(parsed(crowded).text) > 30_000
    assert "word" in parsed(ruled).text
