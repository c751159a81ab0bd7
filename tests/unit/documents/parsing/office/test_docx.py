from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import docx
import pytest
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from office_files import mutations, reads_or_refuses, tables_of, unzipped, zipped

from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import DOCX
from agentic_rag_backend.errors import UnreadableDocument

PARSER = parser_of(DOCX)


def saved(document: Any) -> bytes:
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def add_xml(document: Any, xml: str) -> None:
    document.element.body.insert_element_before(parse_xml(xml.replace(">", f" {nsdecls('w')}>", 1)), "w:sectPr")


def manual() -> bytes:
    document = docx.Document()
    document.add_heading("Pump manual", 0)
    document.add_heading("Safety", 1)
    document.add_paragraph("Wear gloves.")
    document.add_paragraph("Oil", style="List Bullet")
    document.add_paragraph("Water", style="List Bullet")
    document.add_heading("Parts", 2)
    table = document.add_table(rows=3, cols=3)
    for row, cells in enumerate([["Part", "Size", "Price"], ["Seal", "5", "2.50"], ["", "6", "3 | 4"]]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    document.add_paragraph("After the table.")
    document.add_paragraph("First", style="List Number")
    document.add_paragraph("Second", style="List Number")
    document.sections[0].header.paragraphs[0].text = "Running header"
    properties = document.core_properties
    properties.title, properties.author, properties.created = "Pump X1", "Ann", datetime(2024, 2, 3, 4, 5)  # noqa: DTZ001
    return saved(document)


def test_headings_lists_and_tables_are_in_order() -> None:
    parsed = PARSER.parse(manual())
    assert parsed.text.split("\n\n") == [
        "Pump manual", "Safety", "Wear gloves.", "- Oil\n- Water", "Parts",
        "| Part | Size | Price |\n| --- | --- | --- |\n| Seal | 5 | 2.50 |\n| Seal | 6 | 3 \\| 4 |",
        "After the table.", "1. First\n2. Second",
    ]  # fmt: skip
    assert [(each.level, each.title) for each in parsed.headings] == [(1, "Pump manual"), (1, "Safety"), (2, "Parts")]
    assert all(parsed.text.startswith(each.title, each.start_char) for each in parsed.headings)
    assert tables_of(parsed) == [[["Part", "Size", "Price"], ["Seal", "5", "2.50"], ["Seal", "6", "3 | 4"]]]
    assert parsed.title == PARSER.check(manual(), is_whole=True).title == "Pump X1"
    assert parsed.metadata["author"] == "Ann"
    assert parsed.metadata["created"] == "2024-02-03T04:05:00Z"


def test_insertions_are_read_and_deletions_and_hidden_text_are_not() -> None:
    document = docx.Document()
    add_xml(document, "<w:p><w:r><w:t>kept </w:t></w:r><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins>"
                      "<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
                      "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
                      "<w:hyperlink><w:r><w:t> link</w:t></w:r></w:hyperlink></w:p>")  # fmt: skip
    add_xml(document, "<w:sdt><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt>")
    add_xml(document, '<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>By level</w:t></w:r></w:p>')
    parsed = PARSER.parse(saved(document))
    assert parsed.text == "kept inserted link\n\nin a control\n\nBy level"
    assert parsed.warnings == ("not in the text: hidden text (1)",)
    assert [(each.level, each.title) for each in parsed.headings] == [(3, "By level")]


MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def paragraphs(*contents: str) -> Any:
    document = docx.Document()
    for content in contents:
        document.element.body.insert_element_before(parse_xml(f"<w:p {nsdecls('w')} {MATH}>{content}</w:p>"), "w:sectPr")
    return document


def run(text: str, script: str = "") -> str:
    return f'<w:r><w:rPr><w:vertAlign w:val="{script}"/></w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def test_superscripts_formulas_and_form_fields_are_text_on_the_line() -> None:
    fraction = f"<m:f><m:num>{math('3W')}</m:num><m:den>{math('8')}</m:den></m:f>"
    square = f"<m:sSup><m:e>{math('x')}</m:e><m:sup>{math('2')}</m:sup></m:sSup>"
    root = f"<m:rad><m:deg/><m:e>{square}{math('+1')}</m:e></m:rad>"
    bounds = f"<m:sub>{math('i=1')}</m:sub><m:sup>{math('n')}</m:sup>"
    total = f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>{bounds}<m:e>{math("i")}</m:e></m:nary>'
    brackets = "<m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr>"
    matrix = f"<m:d>{brackets}<m:e><m:eqArr><m:e>{math('a')}</m:e><m:e>{math('b')}</m:e></m:eqArr></m:e></m:d>"
    choices = '<w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/><w:listEntry w:val="green"/></w:ddList>'
    for content, text in (
        (run("10") + run("6", "superscript") + run(" cells, H") + run("2", "subscript") + run("O"), "10^6 cells, H2O"),
        (run("3 metres") + run("1", "superscript") + run("2", "superscript") + run(" wide"), "3 metres[12] wide"),
        (
            f"<m:oMathPara><m:oMath>{math('L=')}{fraction}</m:oMath><m:oMath>{math('a=b')}</m:oMath></m:oMathPara>",
            "L=(3W)/8\na=b",
        ),
        (f"<m:oMath>{square}{math('+')}{root}</m:oMath>", "x^2+√(x^2+1)"),
        (f"<m:oMath><m:sSup><m:e>{math('sin')}</m:e><m:sup>{math('-1')}</m:sup></m:sSup>{math(chr(0x2061))}</m:oMath>", "sin^-1"),
        (f"<m:oMath>{total}</m:oMath>", "∑_(i=1)^n i"),
        (f"<m:oMath>{matrix}</m:oMath>", "[a; b]"),
        (f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{choices}</w:ffData></w:fldChar></w:r>{run(" buoy")}', "green buoy"),
        (
            f'<w:r><w:fldChar><w:ffData><w:checkBox><w:default w:val="1"/></w:checkBox></w:ffData></w:fldChar></w:r>{run("Ice")}',
            "[x] Ice",
        ),
        ('<w:r><w:sym w:font="Symbol" w:char="F061"/></w:r><w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>', "α[x]"),
    ):
        assert PARSER.parse(saved(paragraphs(content))).text == text


def level(index: int, number_format: str, label: str, more: str = "") -> str:
    start = "" if "w:start" in more else '<w:start w:val="1"/>'
    return f'<w:lvl w:ilvl="{index}">{start}<w:numFmt w:val="{number_format}"/><w:lvlText w:val="{label}"/>{more}</w:lvl>'


def numbered(levels: str, numbers: str, *items: tuple[str, str]) -> bytes:
    """Return a document with paragraphs, each with its properties, and these levels of the list 1."""
    document = paragraphs(*(f"<w:pPr>{properties}</w:pPr>{run(text)}" for properties, text in items))
    for number, name in ((1, "Heading 1"), (2, "Heading 2")):
        document.styles[name].element.get_or_add_pPr().append(
            parse_xml(f'<w:numPr {nsdecls("w")}><w:numId w:val="{number}"/></w:numPr>')
        )
    document.part.numbering_part  # noqa: B018 - it makes the part
    definition = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    numbering = f"<w:numbering {nsdecls('w')}>{definition}{numbers}</w:numbering>"
    return zipped({**unzipped(saved(document)), "word/numbering.xml": numbering})


def item(index: int, text: str, number: int = 1) -> tuple[str, str]:
    return f'<w:numPr><w:ilvl w:val="{index}"/><w:numId w:val="{number}"/></w:numPr>', text


def test_automatic_numbers_are_text() -> None:
    head_1, head_2 = '<w:pStyle w:val="Heading1"/>', '<w:pStyle w:val="Heading2"/>'
    legal = level(0, "decimal", "%1", '<w:pStyle w:val="Heading1"/>') + level(
        1, "decimal", "%1.%2", '<w:pStyle w:val="Heading2"/>'
    )
    legal += level(2, "lowerLetter", "(%3)")
    same = '<w:num w:numId="2"><w:abstractNumId w:val="0"/></w:num>'
    again = same.replace("</w:num>", '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>')
    parsed = PARSER.parse(
        numbered(legal, same, (head_1, "Scope"), (head_1, "Duties"), (head_2, "Operator"), item(2, "first"), item(2, "second"),
                 (head_2, "Council"), item(2, "third"), (f'{head_1}<w:numPr><w:numId w:val="0"/></w:numPr>', "Annex"))
    )  # fmt: skip
    assert parsed.text.split("\n\n") == [
        "1 Scope", "2 Duties", "2.1 Operator", "(a) first\n(b) second", "2.2 Council", "(a) third", "Annex"
    ]  # fmt: skip
    assert [heading.title for heading in parsed.headings] == ["1 Scope", "2 Duties", "2.1 Operator", "2.2 Council", "Annex"]
    roman, one = level(0, "upperRoman", "Article %1", '<w:start w:val="4"/>'), level(0, "decimal", "%1.")
    third, legal = level(2, "decimal", "%3)", '<w:lvlRestart w:val="0"/>'), level(1, "decimal", "%1.%2", "<w:isLgl/>")
    two = [item(0, "a"), item(0, "b")]
    for levels, numbers, items, text in (
        (roman, "", [item(0, "Tolls"), item(0, "Fines")], "Article IV Tolls\nArticle V Fines"),
        (one, same, [item(0, "a"), item(0, "b", 2)], "1. a\n2. b"),
        (one, again, [*two, item(0, "c", 2), item(0, "d", 2)], "1. a\n2. b\n1. c\n2. d"),
        (one + level(1, "lowerRoman", "%1-%2"), "", [item(1, "a"), item(1, "b")], "1-i a\n1-ii b"),
        (level(0, "upperLetter", "%1.", '<w:start w:val="26"/>'), "", two, "Z. a\nAA. b"),
        (level(0, "decimalZero", "%1") + third, "", [two[0], item(2, "c"), item(0, "d"), item(2, "e")], "01 a\n1) c\n02 d\n2) e"),
        (level(0, "upperRoman", "%1.") + legal, "", [item(0, "a"), item(1, "b")], "I. a\n1.1 b"),
        (level(0, "bullet", "o"), "", [item(0, "a"), item(7, "none")], "- a\n\nnone"),
    ):  # fmt: skip
        assert PARSER.parse(numbered(levels, numbers, *items)).text == text


def with_part(document: Any, name: str, content: str | bytes, kind: str, type_name: str = "") -> bytes:
    """Return a document with another part and the relationship ``rIdX`` to it."""
    members = unzipped(saved(document))
    base = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relationship = f'<Relationship Id="rIdX" Type="{base}/{kind}" Target="{name}"/></Relationships>'.encode()
    relationships = members["word/_rels/document.xml.rels"].replace(b"</Relationships>", relationship)
    override = (
        f'<Override PartName="/word/{name}" ContentType="application/vnd.openxmlformats-officedocument.{type_name}+xml"/></Types>'
    )
    types = members["[Content_Types].xml"].replace(b"</Types>", override.encode())
    changed = {"word/_rels/document.xml.rels": relationships, **({"[Content_Types].xml": types} if type_name else {})}
    return zipped({**members, f"word/{name}": content, **changed})


def test_inserted_files_are_read_and_parts_that_are_not_are_counted() -> None:
    document = paragraphs(run("Before."))
    chunk = f'<w:altChunk {nsdecls("w")} {nsdecls("r")} r:id="rIdX"/>'
    document.element.body.insert_element_before(parse_xml(chunk), "w:sectPr")
    inner = with_part(document, "deep.docx", saved(paragraphs(run("Too deep."))), "aFChunk")
    lost = "not in the text: inserted files (1)"
    for name, content, text, warnings in (
        ("chunk.html", "<h1>Tolls</h1><p>A boat pays 9 crowns.</p>", "Before.\n\nTolls\n\nA boat pays 9 crowns.", ()),
        ("chunk.docx", saved(paragraphs(run("Inner."))), "Before.\n\nInner.", ()),
        ("chunk.docx", inner, "Before.\n\nBefore.", ("not in the text: parts of inserted files (1)",)),
        ("chunk.png", b"\x89PNG", "Before.", (lost,)),
    ):
        parsed = PARSER.parse(with_part(document, name, content, "aFChunk"))
        assert (parsed.text, parsed.warnings) == (text, warnings)
    comment = f'<w:comments {nsdecls("w")}><w:comment w:id="0"><w:p>{run("Why?")}</w:p></w:comment></w:comments>'
    chart = "<c:chartSpace xmlns:c='x'><c:v>Sales</c:v></c:chartSpace>"
    for name, content, type_name, kind in (
        ("comments.xml", comment, "wordprocessingml.comments", "comments"),
        (
            "header9.xml",
            f"<w:hdr {nsdecls('w')}><w:p>{run('Draft')}</w:p></w:hdr>",
            "wordprocessingml.header",
            "headers and footers",
        ),
        ("chart1.xml", chart, "drawingml.chart", "charts"),
    ):
        parsed = PARSER.parse(with_part(paragraphs(run("Text.")), name, content, "x", type_name))
        assert (parsed.text, parsed.warnings) == ("Text.", (f"not in the text: {kind} (1)",))


def test_nested_tables_follow_theirs() -> None:
    document = docx.Document()
    outer = document.add_table(rows=2, cols=2)
    fill_cells(outer, [["Name", "Parts"], ["Ada", ""]])
    fill_cells(outer.cell(1, 1).add_table(rows=2, cols=2), [["Part", "Size"], ["Seal", "5"]])
    assert tables_of(PARSER.parse(saved(document))) == [[["Name", "Parts"], ["Ada", ""]], [["Part", "Size"], ["Seal", "5"]]]


def fill_cells(table: Any, rows: Sequence[Sequence[str]]) -> None:
    for row, texts in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text


def test_cells_stand_in_every_row_and_column_that_they_cover() -> None:
    document = docx.Document()
    table = document.add_table(rows=5, cols=3)
    fill_cells(
        table, [["Port", "Depth", ""], ["", "summer", "winter"], ["Brno", "2 m", "3 m"], ["", "4 m", "5 m"], ["End", "", ""]]
    )
    for first, last in (((0, 1), (0, 2)), ((0, 0), (1, 0)), ((2, 0), (3, 0)), ((4, 0), (4, 2))):
        table.cell(*first).merge(table.cell(*last))
    indented = document.add_table(rows=2, cols=3)
    fill_cells(indented, [["Ship", "Load", "Crew"], ["gone", "7", "9"]])
    row = indented.rows[1]._tr
    row.remove(row.tc_lst[0])
    row.get_or_add_trPr().append(OxmlElement("w:gridBefore"))
    row.trPr[-1].set(qn("w:val"), "1")
    assert tables_of(PARSER.parse(saved(document))) == [
        [["Port", "Depth – summer", "Depth – winter"], ["Brno", "2 m", "3 m"], ["Brno", "4 m", "5 m"]],
        [["Ship", "Load", "Crew"], ["", "7", "9"]],
    ]


def test_a_table_that_only_places_content_is_read_as_blocks() -> None:
    document = docx.Document()
    frame = document.add_table(rows=1, cols=1).cell(0, 0)
    frame.paragraphs[0].text = "Framed"
    frame.add_paragraph("Notice", style="Heading 2")
    columns = document.add_table(rows=1, cols=2)
    fill_cells(columns, [["The lock is old. " * 20, "Side"]])
    fill_cells(columns.cell(0, 1).add_table(rows=2, cols=2), [["Part", "Size"], ["Seal", "5"]])
    parsed = PARSER.parse(saved(document))
    prose = ("The lock is old. " * 20).strip()
    assert parsed.text.split("\n\n") == ["Framed", "Notice", prose, "Side", "| Part | Size |\n| --- | --- |\n| Seal | 5 |"]
    assert [heading.title for heading in parsed.headings] == ["Notice"]


def test_footnotes_follow_their_paragraph() -> None:
    document = docx.Document()
    add_xml(document, '<w:p><w:r><w:t>Claim</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>')
    members = unzipped(saved(document))
    notes = f'<w:footnotes {nsdecls("w")}><w:footnote w:id="2"><w:p><w:r><w:t>Proof</w:t></w:r></w:p></w:footnote></w:footnotes>'
    relationship = (
        b'<Relationship Id="rIdN" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes" '
        b'Target="footnotes.xml"/></Relationships>'
    )
    relationships = members["word/_rels/document.xml.rels"].replace(b"</Relationships>", relationship)
    content = zipped({**members, "word/footnotes.xml": notes, "word/_rels/document.xml.rels": relationships})
    assert PARSER.parse(content).text == "Claim[2]\n\n[2] Proof"


def test_macros_missing_parts_and_remote_targets_are_left_out() -> None:
    members = unzipped(manual())
    types = members["[Content_Types].xml"].replace(
        b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        b"application/vnd.ms-word.document.macroEnabled.main+xml",
    )
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    extra = b'<Relationship Id="x1" Type="%b/image" Target="NULL"/>' % kind
    extra += b'<Relationship Id="x2" Type="%b/attachedTemplate" Target="http://example.org/t.dotm" TargetMode="External"/>' % kind
    relationships = members["word/_rels/document.xml.rels"].replace(b"</Relationships>", extra + b"</Relationships>")
    changed = {"[Content_Types].xml": types, "word/_rels/document.xml.rels": relationships, "word/vbaProject.bin": b"macro"}
    assert PARSER.parse(zipped({**members, **changed})).text == PARSER.parse(manual()).text


def test_external_entities_are_refused() -> None:
    members = unzipped(manual())
    body = b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>' + members["word/document.xml"].partition(b"?>")[2]
    with pytest.raises(UnreadableDocument, match="DOCTYPE"):
        PARSER.parse(zipped({**members, "word/document.xml": body}))


def test_empty_documents_are_refused() -> None:
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(saved(docx.Document()))


def test_damaged_documents_are_read_or_refused() -> None:
    found = [reads_or_refuses(PARSER, damaged) for damaged in mutations(manual(), 120)]
    assert any(found)
    assert not all(found)
