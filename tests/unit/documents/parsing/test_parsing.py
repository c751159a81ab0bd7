from __future__ import annotations

import codecs
import io
import random
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from office_files import open_document, zipped

from agentic_rag_backend.documents import metadata_checks
from agentic_rag_backend.documents.parsing.base import CHECKED_BYTES, Preview, checked_part, sniff_content
from agentic_rag_backend.documents.parsing.markdown import headings_of
from agentic_rag_backend.documents.parsing.registry import parser_of, title_of
from agentic_rag_backend.domain.media_types import CSV, DOCX, EPUB, HTML, MARKDOWN, ODT, PDF, RTF, TEXT, XLSX, media_type_of
from agentic_rag_backend.errors import InvalidRequest, UnreadableDocument, UnsupportedMediaType

TEXT_PARSER, MARKDOWN_PARSER = parser_of(TEXT), parser_of(MARKDOWN)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_encodings(mark: bytes, encoding: str) -> None:
    assert TEXT_PARSER.parse(mark + "Grüße, 東京 🎉".encode(encoding)).text == "Grüße, 東京 🎉"


def test_line_ends_and_nul_are_normalised() -> None:
    assert TEXT_PARSER.parse(b"one\r\ntwo\rthree\x00\n").text == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (codecs.BOM_UTF8 + b"ab\xff", r"1 of its 3 characters are not valid utf-8 \(limit 10%\); the first one is 0xff"),
        (bytes(range(1, 9)) * 40, "control characters"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10 binary", "control characters"),
        (b"\x01\x00\x00\x00\x02\x00\x00\x00" * 40, "control characters"),
        (bytes(range(256)) * 40, r"not utf-8 \(byte 0x80 at offset 128\), and no other encoding fits"),
        (b"", "no text"),
        (b" \n\t ", "no text"),
        ("\u200b \ufeff".encode(), "no text"),
        (b"\x00\x00", "no text"),
    ],
)
def test_binary_content_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableDocument, match=message):
        TEXT_PARSER.parse(content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'Name,Note\r\nPetra,"one\r\ntwo"\r\nBob,"a ""b"""\r\n', 'Name,Note\nPetra,"one two"\nBob,"a ""b"""\n'),
        (b'Pipe,Size\nshort,5" wide\nlong,6" wide\n', 'Pipe,Size\nshort,5" wide\nlong,6" wide\n'),
        (b'Name,Note\nPetra,"open\n', 'Name,Note\nPetra,"open\n'),
    ],
)
def test_a_record_of_a_table_is_one_line(content: bytes, text: str) -> None:
    assert media_type_of("text/plain", "staff.csv") == media_type_of("text/tab-separated-values", None) == CSV
    assert parser_of(CSV).parse(content).text == text


def test_the_beginning_of_a_file_may_end_inside_a_character() -> None:
    content = "äöü".encode()
    assert TEXT_PARSER.check(content[:5], is_whole=False).text == "äö"
    with pytest.raises(UnreadableDocument):
        TEXT_PARSER.check(content[:5], is_whole=True)


def test_front_matter_becomes_title_and_metadata() -> None:
    front = (
        "title: A study\nauthors: [Ann, Bob]\npublished: 2024-02-03\nscore: .5\nbig: 99999999999999999999\nnan: .nan\nkey: own\n"
        "version: 1.10\nid: 007\nyes: no\ndraft: true\nyear: 2024\nzero: 1.0\nempty:\nlast: 12:30\n"
        "author:\n  name: Nils\n  unit: {code: 7}\npeople:\n- name: Ann\n  age: 9\n- name: Bo\n"
    )
    parsed = MARKDOWN_PARSER.parse(f"---\n{front}---\n\n# Heading\n\nText.\n".encode())
    assert parsed.title == "A study"
    assert parsed.metadata == {
        "authors": ["Ann", "Bob"], "published": "2024-02-03", "score": 0.5, "big": "99999999999999999999", "nan": ".nan",
        "version": "1.10", "id": "007", "yes": "no", "draft": True, "year": 2024, "zero": "1.0", "empty": None, "last": "12:30",
        "author.name": "Nils", "author.unit.code": 7, "people.name": ["Ann", "Bo"], "people.age": [9],
    }  # fmt: skip
    assert parsed.text == "\n# Heading\n\nText.\n"
    assert parsed.text[parsed.headings[0].start_char :].startswith("# Heading")
    assert parsed.warnings == ()


def test_what_only_looks_like_front_matter_stays_text() -> None:
    for text in (
        "---\n\nA break, not front matter.\n\n---\n",
        "---\n\nNot front matter: a rule first.\n\n---\n",
        "---\nNot front matter: a rule first.\n---\n",
        "---\ntitle: open\n\nText",
        "--- title\nText\n---\n",
        "---\na: [1, 2\n---\nText",
        "---\nNote: this is\nprose with a colon\nin three lines.\n---\nText",
        "---\na: &x [1]\nb: *x\nc: *x\n---\nText",
    ):
        assert MARKDOWN_PARSER.parse(text.encode()).text == text


def test_wrong_lines_of_front_matter_are_left_out_with_a_warning() -> None:
    for wrong in ("b: [1, 2", "b: *x", "b: !!python/object/apply:os.system [echo]", "b: " + "[" * 5000, "b: @c", "b: c: d"):
        parsed = MARKDOWN_PARSER.parse(f"---\na: 1\n{wrong}\nc:\n  d: 2\n---\nText".encode())
        assert (parsed.text, parsed.metadata) == ("Text", {"a": 1, "c.d": 2})
        assert parsed.warnings == ("not in the metadata: lines of the front matter that are not YAML (1: 3)",)


def test_front_matter_is_bounded() -> None:
    keys = "".join(f"key{number}: 1\n" for number in range(65))
    parsed = MARKDOWN_PARSER.parse(f"---\n{keys}---\nText".encode())
    assert len(parsed.metadata) == 64
    assert parsed.warnings == ("the front matter has 65 keys; the first 64 are read",)
    with pytest.raises(UnreadableDocument, match="longer than 8192"):
        MARKDOWN_PARSER.parse(f"---\na: {'x' * 9000}\n---\nText".encode())


def test_front_matter_brings_no_text_that_a_store_refuses() -> None:
    front = (
        r'title: "a\0b\uD800"'
        + "\n"
        + r"kept: x"
        + "\n"
        + r'author: "\uDFFF"'
        + "\n"
        + r'"\uD800": 1'
        + "\n"
        + r'tags: [y, "\0"]'
    )
    content = f"---\n{front}\n---\nText".encode()
    parsed = MARKDOWN_PARSER.parse(content)
    assert parsed.metadata == {"kept": "x"}
    assert title_of(MARKDOWN_PARSER.check(content, is_whole=True), None) == "a\ufffdb\ufffd"
    assert title_of(MARKDOWN_PARSER.check(b"Text", is_whole=True), "a\0b.md") == "a\ufffdb"


def test_front_matter_alone_is_no_document() -> None:
    with pytest.raises(UnreadableDocument, match="except its front matter"):
        MARKDOWN_PARSER.parse(b"---\na: 1\n---\n")


def test_headings_with_exact_offsets() -> None:
    text = (
        "Title\n=====\n\n# One #\n\n```python\n# a comment\n```\n\n~~~\n## no\n```\n~~~\n\n"
        "   ### **Bold** [link](http://x) `code` ###\n"
        "\nUnder\n-----\n\n#no space\n    # code\n\n- item\n---\n\n#\n\ntext\nmore\n---\n####### seven\n## snake_case_name\n"
    )
    headings = list(headings_of(text))
    assert [(each.level, each.title) for each in headings] == [
        (1, "Title"),
        (1, "One"),
        (3, "Bold link code"),
        (2, "Under"),
        (2, "snake_case_name"),
    ]
    for each in headings:
        assert text[each.start_char :].lstrip("# ").startswith(each.title[:4].replace("Bold", "**Bo"))
        assert each.start_char == 0 or text[each.start_char - 1] == "\n"


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["# a", "```", "~~~~", "====", "---", "text", "", " ", "#", "- x", "## b ##"]), max_size=30))
def test_headings_are_in_order_and_begin_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    starts = [each.start_char for each in headings_of(text)]
    assert starts == sorted(set(starts))
    assert all(start == 0 or text[start - 1] == "\n" for start in starts)


def test_an_unclosed_fence_hides_the_rest() -> None:
    assert [each.title for each in headings_of("# a\n```\n# b\n")] == ["a"]


@pytest.mark.parametrize(
    ("declared", "name", "expected"),
    [
        (None, None, TEXT),
        (None, "a.md", MARKDOWN),
        ("text/plain; charset=utf-8", "A.MD", MARKDOWN),
        ("application/octet-stream", "a.txt", TEXT),
        ("text/x-markdown", "a.txt", MARKDOWN),
        ("text/plain", "notes", TEXT),
        ("text/plain", "log.2024", TEXT),
    ],
)
def test_media_types(declared: str | None, name: str | None, expected: str) -> None:
    assert media_type_of(declared, name) == expected


@pytest.mark.parametrize(("declared", "name"), [("application/msword", "a"), (None, "a.doc"), ("application/octet-stream", None)])
def test_errors_of_unsupported_types_list_the_supported_ones(declared: str | None, name: str | None) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"text/plain \(\.txt, \.text\), text/markdown \(\.md, \.markdown\)"):
        media_type_of(declared, name)


def _zip(*names: str, media_type: str = "") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        if media_type:
            archive.writestr("mimetype", media_type)
        for name in names:
            archive.writestr(name, "text")
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.txt", b"%PDF-1.7\n", PDF),
        ("a.txt", b"\n\n%PDF-1.4\n", PDF),
        ("a.txt", b"{\\rtf1 text}", RTF),
        ("a.bin", _zip("[Content_Types].xml", "word/document.xml"), DOCX),
        ("a.docx", _zip("[Content_Types].xml", "xl/workbook.xml"), XLSX),
        (None, _zip("content.xml", media_type=ODT), ODT),
        (None, _zip("META-INF/container.xml", media_type=EPUB), EPUB),
        (None, _zip("content.xml", "META-INF/manifest.xml"), ODT),
        (None, zipped({"META-INF/container.xml": "", "OEBPS/a.xhtml": "", "mimetype": EPUB}), EPUB),
        (None, zipped({"OEBPS/a.xhtml": "", "META-INF/container.xml": ""}), EPUB),
        (None, zipped({"content.xml": "", "mimetype": f"{ODT}-template\n"}), ODT),
        (None, zipped({"docProps/app.xml": "", "customXml/item1.xml": "", "xl/workbook.xml": ""}), XLSX),
        (None, zipped({"a.bin": random.Random(1).randbytes(3_000_000), "word/document.xml": ""}), DOCX),
        ("page", b"<!DOCTYPE html><html>", HTML),
        ("a.md", b"<html>", MARKDOWN),
    ],
)
def test_content_decides_before_the_name(name: str | None, head: bytes, expected: str) -> None:
    assert media_type_of("text/plain", name, sniff_content(head)) == expected


@pytest.mark.parametrize(
    ("name", "head", "message"),
    [
        ("a.pdf", b"GIF89a", "a GIF image"),
        ("a.txt", _zip("notes.txt"), "ZIP archive without a document"),
        (
            "a.odg",
            _zip("content.xml", media_type="application/vnd.oasis.opendocument.graphics"),
            "ZIP archive without a document",
        ),
        ("a.docx", b"plain words", "not a Word document"),
        ("a.pdf", b"plain words", "not a PDF file"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office file"),
        ("a.txt", b"\x1f\x8b\x08", "gzip"),
    ],
)
def test_content_that_no_parser_reads_is_named(name: str, head: bytes, message: str) -> None:
    with pytest.raises((UnreadableDocument, UnsupportedMediaType), match=message):
        media_type_of(None, name, head)


def test_large_files_with_a_directory_at_their_end_are_checked_whole() -> None:
    padding = random.Random(7).randbytes(CHECKED_BYTES)  # does not compress
    properties = '<office:document-meta xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    properties += 'xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta><dc:title>Harbour plan</dc:title></office:meta>'
    content = open_document(ODT, "<text:p>Berths</text:p>", **{"meta.xml": f"{properties}</office:document-meta>"})
    with zipfile.ZipFile(file := io.BytesIO(content), "a") as archive:
        archive.writestr("Pictures/plan.png", padding)
    head, is_whole = checked_part(file.getvalue())
    assert is_whole
    assert parser_of(ODT).check(head, is_whole=is_whole).title == "Harbour plan"
    assert checked_part(b"prose " * CHECKED_BYTES) == ((b"prose " * CHECKED_BYTES)[:CHECKED_BYTES], False)


def test_titles() -> None:
    assert title_of(Preview(title=None, text=""), None) == "Untitled document"
    assert title_of(MARKDOWN_PARSER.check(b"# Heading\n\ntext", is_whole=True), "file.md") == "Heading"
    assert title_of(TEXT_PARSER.check(b"text", is_whole=True), "C:\\docs\\My notes.txt") == "My notes"
    assert title_of(TEXT_PARSER.check(b"\n  First line \nSecond", is_whole=True), None) == "First line…"
    assert title_of(TEXT_PARSER.check(b"Mara Venn founded it in 2011.\n", is_whole=True), None) == "Mara Venn founded it in 2011…"
    assert title_of(MARKDOWN_PARSER.check(b"# Waiting\xe2\x80\xa6\n\ntext", is_whole=True), None) == "Waiting…"
    for title in (
        "(anonymous)", "untitled", "Untitled Document 3", "Microsoft Word - letter.doc", "Document1", "Chapter 1",
        "PowerPoint Presentation", "Folie 1", "PowerPoint-Präsentation", "Mappe1", "Presentation (2)", "report_final.docx",
        "(no subject)", "Slide 12", "scan_0012", "?????", "- -",
    ):  # fmt: skip
        assert title_of(Preview(title=title, text="Text."), "Taxi receipt.pdf") == "Taxi receipt", title
    for title in (
        "Chapter 1: Tides",
        "Document retention",
        "The unknown soldier",
        "Title IX",
        "Book of hours",
        "1984",
        "Node.js",
    ):
        assert title_of(Preview(title=title, text="Text."), "a.pdf") == title
    assert title_of(MARKDOWN_PARSER.check(b"---\ntitle: untitled\n---\n# Chapter 1\n\n# Tides", is_whole=True), "a.md") == "Tides"
    for page in (b"<title>Untitled</title><h1>Tides</h1>", b"<h1>Tides</h1>"):
        assert title_of(parser_of(HTML).check(page, is_whole=True), "a.html") == "Tides"
    long = title_of(TEXT_PARSER.check(b"word " * 100, is_whole=True), None)
    assert len(long) <= 80
    assert long.endswith("word…")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({f"k{number}": 1 for number in range(65)}, "65 keys; the limit is 64"),
        ({"k" * 129: 1}, "129 characters; the limit is 128"),
        ({"a": {"b": 1}}, "it is dict"),
        ({"a": [1, [2]]}, "it is list"),
        ({"a": float("nan")}, "nan is not a JSON number"),
        ({"a": 2**63}, "beyond"),
        ({"a": "x" * 9000}, "bytes as JSON; the limit is 8192"),
        ({"title": "x"}, "fields of every document"),
        ({"": 1}, "not empty"),
        ({"a": "\x00"}, "NUL"),
        ({"a": "\ud800"}, "surrogate"),
    ],
)
def test_metadata_outside_its_limits(value: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        metadata_checks.check_metadata(value)


def test_metadata_of_scalars_and_lists() -> None:
    value = {"a": 1, "b": 1.5, "c": True, "d": None, "e": "text", "f": ["x", 2]}
    assert metadata_checks.check_metadata({**value, "g": ("y",)}) == {**value, "g": ["y"]}
