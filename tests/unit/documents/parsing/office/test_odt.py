from __future__ import annotations

import pytest
from office_files import OPEN_NAMESPACES, mutations, open_document, reads_or_refuses, tables_of, zipped

from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import ODT
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

PARSER = parser_of(ODT)
NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "meta")
)
META = (
    f'<office:document-meta {NAMESPACES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta><dc:title>A guide</dc:title>'
    "<meta:initial-creator>Ann</meta:initial-creator></office:meta></office:document-meta>"
)
CELL = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
BODY = (
    '<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:h text:outline-level="2">Setup</text:h>'
    '<text:p>Press<text:s text:c="2"/>the <text:span>red</text:span> key<text:note><text:note-citation>1</text:note-citation>'
    "<text:note-body><text:p>Twice.</text:p></text:note-body></text:note>.</text:p>"
    "<text:list><text:list-item><text:p>Oil</text:p><text:list><text:list-item><text:p>Thin</text:p></text:list-item></text:list>"
    "</text:list-item></text:list><table:table><table:table-header-rows><table:table-row>"
    + CELL.format("Part") + CELL.format("Price") + "</table:table-row></table:table-header-rows><table:table-row>"
    + CELL.format("Seal") + CELL.format("2") + '<table:table-cell table:number-columns-repeated="1000"/></table:table-row>'
    "</table:table>"
    "<text:p>End<text:line-break/>here</text:p>"
)  # fmt: skip


def text_file(body: str, **members: str) -> bytes:
    content = f"<office:document-content {NAMESPACES}><office:body><office:text>{body}</office:text></office:body>"
    content += "</office:document-content>"
    files = {"mimetype": ODT, "content.xml": content, "meta.xml": META, "META-INF/manifest.xml": "<manifest/>"}
    return zipped({**files, **{name.replace("_", "."): text for name, text in members.items()}}, first="mimetype")


def test_headings_lists_tables_and_notes_are_in_order() -> None:
    parsed = PARSER.parse(text_file(BODY))
    assert parsed.text.split("\n\n") == [
        "Setup", "Press  the red key[1].", "[1] Twice.", "- Oil\n- Thin", "| Part | Price |\n| --- | --- |\n| Seal | 2 |",
        "End\nhere",
    ]  # fmt: skip
    assert tables_of(parsed) == [[["Part", "Price"], ["Seal", "2"]]]
    assert [(each.level, each.title) for each in parsed.headings] == [(2, "Setup")]
    assert parsed.title == PARSER.check(text_file(BODY), is_whole=True).title == "A guide"
    assert parsed.metadata["author"] == "Ann"


def test_scripts_are_text_on_the_line_and_what_is_left_out_is_counted() -> None:
    style = '<style:style style:name="{}" style:family="text"><style:text-properties style:text-position="{}"/></style:style>'
    styles = "".join(style.format(*pair) for pair in (("U", "super 58%"), ("L", "-33% 58%"), ("N", "0% 100%")))
    body = (
        '<text:p>10<text:span text:style-name="U">6</text:span>, CO<text:span text:style-name="L">2</text:span>'
        '<text:span text:style-name="N"> ok</text:span>, metres<text:span text:style-name="U">12</text:span></text:p>'
        "<text:p>Text<office:annotation><text:p>why</text:p></office:annotation><text:object/></text:p>"
    )
    content = (
        f'<office:document-content {NAMESPACES} xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0">'
        f"<office:automatic-styles>{styles}</office:automatic-styles><office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    parsed = PARSER.parse(text_file("", content_xml=content))
    assert parsed.text == "10^6, CO2 ok, metres[12]\n\nText"
    assert parsed.warnings == ("not in the text: comments (1)", "not in the text: embedded objects (1)")


def test_automatic_numbers_are_text() -> None:
    levels = (
        '<text:{kind} style:name="N"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
        '<text:list-level-style-number text:level="2" style:num-prefix="(" style:num-suffix=")" style:num-format="a"/>'
        '<text:list-level-style-bullet text:level="3"/></text:{kind}>'
    )
    outline = '<text:outline-level-style text:level="{}" style:num-format="1" text:display-levels="{}"/>'
    off = '<style:style style:name="Off" style:family="paragraph" style:list-style-name=""/>'
    outline = f"<text:outline-style>{outline.format(1, 1)}{outline.format(2, 2)}</text:outline-style>"
    styles = f"<office:s {OPEN_NAMESPACES}>{outline}</office:s>"
    item, inner = (
        "<text:list-item><text:p>{}</text:p>{}</text:list-item>",
        "<text:list><text:list-item>{}</text:list-item></text:list>",
    )
    head = '<text:h text:outline-level="{}" {}>{}</text:h>'
    deep = (
        "<text:list>"
        + item.format("b", inner.format("<text:p>c</text:p><text:p>more</text:p>"))
        + item.format("d", "")
        + "</text:list>"
    )
    named = '<text:list text:style-name="N" {}>{}</text:list>'
    body = "".join([
        head.format(1, "", "<text:number>9</text:number>One"), head.format(2, "", "Two"),
        head.format(2, 'text:style-name="M"', "None"),
        head.format(2, 'text:is-list-header="true"', "<text:number>X</text:number> Saved"), head.format(2, "", "Three"),
        named.format("xml:id='L'", item.format("a", deep)), "<text:p>Between</text:p>",
        named.format("text:continue-numbering='true'", item.format("e", "")), named.format("", item.format("f", "")),
        named.format("text:continue-list='L'",
                     "<text:list-item text:start-value='7'>" + head.format(1, "", "g") + "</text:list-item>"),
    ])  # fmt: skip
    off += '<style:style style:name="M" style:family="paragraph" style:parent-style-name="Off"/>'
    file = open_document(ODT, f"<office:text>{body}</office:text>", levels.format(kind="list-style") + off, styles_xml=styles)
    parsed = PARSER.parse(file)
    assert parsed.text.split("\n\n") == [
        "1 One", "1.1 Two", "None", "X Saved", "1.2 Three", "1. a\n(a) b\n- c\nmore\n(b) d", "Between", "2. e", "1. f", "7. g",
    ]  # fmt: skip
    assert [heading.level for heading in parsed.headings] == [1, 2, 2, 2, 2, 1]


def test_repeated_cells_are_limited() -> None:
    cell = '<table:table-cell table:number-columns-repeated="{}"><text:p>x</text:p></table:table-cell>'
    for columns, rows in ((2_000_000_000, 1), (10_000, 10_000)):
        table = f'<table:table-row table:number-rows-repeated="{rows}">{cell.format(columns)}</table:table-row>'
        with pytest.raises(ResourceLimit, match="more than 1000000 cells"):
            PARSER.parse(text_file(f"<table:table>{table}</table:table>"))


def test_encrypted_and_hostile_files_are_refused() -> None:
    manifest = {"META-INF/manifest_xml": "<manifest><encryption-data/></manifest>"}
    with pytest.raises(UnreadableDocument, match="encrypted"):
        PARSER.parse(text_file(BODY, **manifest))
    with pytest.raises(UnreadableDocument, match="DOCTYPE"):
        PARSER.parse(text_file(BODY, content_xml='<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'))
    with pytest.raises(UnreadableDocument, match="nested more than 256 deep"):
        PARSER.parse(text_file("<text:span>" * 300 + "x" + "</text:span>" * 300))
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(text_file(""))


def test_damaged_texts_are_read_or_refused() -> None:
    found = [reads_or_refuses(PARSER, damaged) for damaged in mutations(text_file(BODY), 150)]
    assert any(found)
    assert not all(found)
