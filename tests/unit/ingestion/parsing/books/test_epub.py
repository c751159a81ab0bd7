from __future__ import annotations

import pytest
from office_files import mutations, reads_or_refuses, tables_of, zipped

from agentic_rag_backend.domain.media_types import EPUB
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.parsing.registry import parser_of

PARSER = parser_of(EPUB)
CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>A book</dc:title><dc:creator>Ann</dc:creator></metadata><manifest><item id="b" href="text/two.xhtml"/>
<item id="a" href="text/one%201.xhtml"/><item id="c" href="gone.xhtml"/></manifest>
<spine><itemref idref="a"/><itemref idref="c"/><itemref idref="b"/></spine></package>"""
ONE = """<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://example.org/x.dtd"><html><head><title>no</title></head><body>
<h1>Chapter <i>one</i></h1><p>It was
late&nbsp;&eacute;.<br/>Then</p><script>no()</script><p hidden="">no</p><ul><li>Oil</li></ul></body></html>"""
TWO = "<html><body><h2>Two</h2><div>Text<table><tr><th>City</th><th>People</th></tr><tr><td>Lyon</td><td>5</td></tr>"
TWO += "</table></div></body></html>"


def book(**changed: str) -> bytes:
    members = {"mimetype": EPUB, "META-INF/container.xml": CONTAINER, "OEBPS/book.opf": PACKAGE}
    members |= {"OEBPS/text/one 1.xhtml": ONE, "OEBPS/text/two.xhtml": TWO, **changed}
    return zipped(members, first="mimetype")


def test_chapters_follow_the_spine() -> None:
    parsed = PARSER.parse(book())
    assert "no" not in parsed.text.split()
    assert parsed.text.split("\n\n") == [
        "Chapter one", "It was late é.\nThen", "- Oil", "Two", "Text", "| City | People |\n| --- | --- |\n| Lyon | 5 |",
    ]  # fmt: skip
    assert tables_of(parsed) == [[["City", "People"], ["Lyon", "5"]]]
    assert [(each.level, each.title) for each in parsed.headings] == [(1, "Chapter one"), (2, "Two")]
    assert [each.page for each in parsed.regions] == [1, 1, 1, 3, 3, 3, 3]
    assert parsed.title == PARSER.check(book(), is_whole=True).title == "A book"
    assert parsed.metadata["author"] == "Ann"


def test_inline_marks_keep_their_meaning_and_hidden_text_is_counted() -> None:
    chapter = (
        "<html><body><p>10<sup>6</sup>, <i>x</i><sup>2</sup>, CO<sub>2</sub>, 3<sup><a href='#n'>12</a></sup>, <del>3</del>4</p>"
        "<p style='display:none'>x <b hidden=''>y</b></p><table><tr><td>10<sup>6</sup></td><td>b</td></tr></table></body></html>"
    )
    parsed = PARSER.parse(book(**{"OEBPS/text/two.xhtml": chapter}))
    assert "\n\n10^6, x^2, CO2, 3[12], 4\n\n| 10^6 | b |" in parsed.text
    assert parsed.warnings == ("not in the text: hidden text (2: chapter 1, chapter 3)",)


def test_listings_keep_their_lines_and_pictures_and_formulas_have_their_texts() -> None:
    chapter = (
        "<html><body><pre>if <b>wet</b>:\n    stay(\n        2)\n</pre><p>A  <img alt='red   flag'/> flies.</p>"
        "<ol><li><p>Row</p><p>on</p></li><li>Rest<ul><li>a</li></ul></li><li>Go</li></ol>"
        "<p>E = <math><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></math>.</p></body></html>"
    )
    authors = PACKAGE.replace("<dc:creator>Ann</dc:creator>", "<dc:creator>Ann</dc:creator><dc:creator> Bo  Lund</dc:creator>")
    parsed = PARSER.parse(book(**{"OEBPS/text/two.xhtml": chapter, "OEBPS/book.opf": authors}))
    assert parsed.text.endswith(
        "\n\nif wet:\n    stay(\n        2)\n\nA red flag flies.\n\n1. Row\n\non\n\n2. Rest\n\n- a\n\n3. Go\n\nE = mc^2."
    )
    assert parsed.metadata["author"] == "Ann; Bo Lund"


def test_protected_and_damaged_books_are_refused() -> None:
    drm = '<e><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></e>'
    with pytest.raises(UnreadableDocument, match="encrypted"):
        PARSER.parse(book(**{"META-INF/encryption.xml": drm}))
    entity = '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><html><p>&x;</p></html>'
    with pytest.raises(UnreadableDocument, match="defines entities"):
        PARSER.parse(book(**{"OEBPS/text/two.xhtml": entity}))
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(book(**{"OEBPS/book.opf": "<package/>"}))


def test_damaged_books_are_read_or_refused() -> None:
    found = [reads_or_refuses(PARSER, damaged) for damaged in mutations(book(), 150)]
    assert any(found)
    assert not all(found)


def test_deep_chapters_are_refused_because_their_text_would_be_lost() -> None:
    for depth in (300, 100_000):
        with pytest.raises(UnreadableDocument, match="chapter 3 of the book are nested more than 256 deep"):
            PARSER.parse(book(**{"OEBPS/text/two.xhtml": "<div>" * depth + "text"}))
    with pytest.raises(ResourceLimit, match="chapter 3 of the book has a text of more than 10000000 bytes without tags"):
        PARSER.parse(book(**{"OEBPS/text/two.xhtml": "<p>" + "text " * 2_000_001}))
