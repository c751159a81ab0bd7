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

from agentic_rag_backend.domain.media_types import DOCX
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.registry import parser_of

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
    assert [(each.level, each.title) for each in parsed.headings] == [(3, "By level")]


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
