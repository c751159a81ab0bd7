"""Bounds of what a byte of a file may cost: columns, repeated cells and names, headings, attributes, parameters."""

from __future__ import annotations

import json

import pytest
from hostile_documents import docx, epub, odt, xlsx

from agentic_rag_backend.documents.chunking.passages import MAX_CONTEXT_CHARACTERS, chunks_of, passage_text
from agentic_rag_backend.documents.parsing.base import MAX_COLUMNS, MAX_HEADING_CHARACTERS, ParsedDocument
from agentic_rag_backend.documents.parsing.html.depth import MAX_ATTRIBUTES
from agentic_rag_backend.documents.parsing.json_documents import MAX_PATH_CHARACTERS
from agentic_rag_backend.documents.parsing.mail.message import MAX_FIELD_CHARACTERS, open_message
from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.domain.media_types import CSV, DOCX, EML, EPUB, HTML, JSON, JSONL, MARKDOWN, ODT, XLSX
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ResourceLimit
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

WIDE = 2 * MAX_COLUMNS
CELLS = [f"c{number}" for number in range(WIDE)]


def parsed(media_type: str, content: bytes | str) -> ParsedDocument:
    return parser_of(media_type).parse(content.encode() if isinstance(content, str) else content)


def _sheet() -> bytes:
    return xlsx(
        ["<row>", *(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in CELLS), "</row><row><c><v>7</v></c></row>"]
    )


def _word(cells: int) -> str:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    return f"<w:tbl><w:tr>{''.join(map(cell.format, CELLS[:cells]))}</w:tr></w:tbl>"


def _open(cells: str) -> str:
    return f"<table:table><table:table-row>{cells}</table:table-row></table:table>"


TABLES: dict[str, tuple[str, bytes | str]] = {
    "csv": (CSV, f"{','.join(CELLS)}\n{','.join(['7'] * WIDE)}\n"),
    "tsv": (CSV, "\t".join(CELLS) + "\n" + "\t".join(["7"] * WIDE) + "\n"),
    "csv quoted": (CSV, ",".join(f'"{cell}, 1"' for cell in CELLS) + "\n" + '"a,"' * WIDE + "\n"),
    "markdown": (MARKDOWN, f"| {' | '.join(CELLS)} |\n{'|---' * WIDE}|\n| {' | '.join(['7'] * WIDE)} |\n"),
    "html": (HTML, f"<table><tr>{''.join(f'<th>{cell}' for cell in CELLS)}<tr><td>7</table>"),
    "epub": (EPUB, epub(f"<html><body><table><tr>{''.join(f'<td>{cell}</td>' for cell in CELLS)}</tr></table></body></html>")),
    "odt": (ODT, odt(_open("".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in CELLS)))),
    "xlsx": (XLSX, _sheet()),
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_beyond_the_limit_are_left_out_with_a_warning(name: str) -> None:
    document = parsed(*TABLES[name])
    assert f"c{MAX_COLUMNS - 1}" in document.text
    assert f"c{MAX_COLUMNS}" not in document.text
    assert f"first {MAX_COLUMNS} columns" in document.warnings[-1]
    assert str(WIDE) in document.warnings[-1]


def test_a_table_of_as_many_columns_as_allowed_is_whole() -> None:
    text = ",".join(CELLS[:MAX_COLUMNS]) + "\n" + ",".join(["7"] * MAX_COLUMNS)
    assert parsed(CSV, text) == ParsedDocument(text=text)
    text = f"|{'|'.join(CELLS[:MAX_COLUMNS])}|\n{'|---' * MAX_COLUMNS}|\n|a \\| b|\n"
    assert parsed(MARKDOWN, text) == ParsedDocument(text=text)
    assert parsed(DOCX, docx(_word(MAX_COLUMNS))).warnings == ()


def test_a_cell_that_spans_columns_is_repeated_in_columns_that_the_table_has() -> None:
    row = '<tr><td>Ada</td><td colspan="99999">Brno</td></tr>'
    text = parsed(HTML, f"<table><tr><th>Name<th>Room<th>Phone</tr>{row * 50}</table>").text
    assert text.splitlines()[2:] == ["| Ada | Brno | Brno |"] * 50
    grouped = '<table><tr><th>Name<th colspan="2">Size<tr><td>Crane<td>7<td>9</table>'
    assert parsed(HTML, grouped).text.splitlines()[0] == "| Name | Size | Size |"


def test_rows_of_a_table_that_is_almost_empty_are_not_filled() -> None:
    rows = "".join(f"<tr><td>{number}" for number in range(100))
    text = parsed(HTML, f"<table><tr>{'<td>7' * 100}{rows}</table>").text
    assert "\n| 99 |" in text
    assert len(text) < 3_000


def test_lists_of_objects_with_few_keys_in_common_are_no_table() -> None:
    rows: list[dict[str, int]] = [{f"key{number}": 1} for number in range(100)]
    for media_type, content in ((JSON, json.dumps(rows)), (JSONL, "\n".join(map(json.dumps, rows)))):
        text = parsed(media_type, content).text
        assert "[99].key99: 1" in text
        assert len(text) < 2 * len(content)


def test_names_of_json_are_not_repeated_in_full_length() -> None:
    content = json.dumps({"k" * 10_000: {f"a{number}": 1 for number in range(300)}})
    document = parsed(JSON, content)
    assert f"{'k' * 20}.a299: 1" in document.text
    assert max(map(len, document.text.splitlines())) <= MAX_PATH_CHARACTERS + 3
    assert "shortened" in document.warnings[0]


def test_numbers_of_json_share_a_line() -> None:
    assert (
        parsed(JSON, '{"at": [[16.6, 49.2], [1]], "of": ["a", 2]}').text == "at[0]: 16.6, 49.2\nat[1][0]: 1\nof[0]: a\nof[1]: 2"
    )


def test_a_small_file_with_much_text_is_refused_with_the_limit() -> None:
    cell = f'<table:table-cell table:number-columns-repeated="900"><text:p>{"Brno " * 100}</text:p></table:table-cell>'
    with pytest.raises(ResourceLimit, match="more than 8 characters of text for each byte"):
        parsed(ODT, odt(_open(cell)))


def test_headings_are_short_in_paths_and_whole_in_the_text() -> None:
    heading = "Heading word " * 1_000
    levels = "".join(f"<h{level}>{heading}{level}</h{level}>" for level in range(1, 7))
    for media_type, content in ((HTML, f"{levels}<p>{'Text here. ' * 500}".encode()), (EPUB, epub(f"<html>{levels}</html>"))):
        document = parsed(media_type, content)
        assert document.text.count("Heading word") == 6_000
        assert {len(each.title) for each in document.headings} == {MAX_HEADING_CHARACTERS}


def test_a_passage_is_found_under_the_nearest_headings() -> None:
    levels = "".join(f"{'#' * level} {'Heading ' * 20}{level}\n\n" for level in range(1, 7))
    document = parsed(MARKDOWN, levels + "Text of it is here now. " * 2_000)
    chunks = chunks_of(TenantId("t_" + "1" * 32), "d", 1, document, ChunkingOptions(), tokenizer=WordPieceTokenizer())
    passages = [passage_text("Harbour", chunk) for chunk in chunks[1:]]
    assert all(passage.startswith("Harbour\n") and f"{'Heading ' * 20}6\n" in passage for passage in passages)
    assert max(len(passage) - len(chunk.text) for passage, chunk in zip(passages, chunks[1:], strict=True)) < (
        MAX_CONTEXT_CHARACTERS + 20
    )


def _attributes(count: int) -> str:
    return " ".join(f"a{number}='>'" for number in range(count))


@pytest.mark.parametrize("media_type", [HTML, EPUB])
def test_an_element_with_too_many_attributes_is_refused(media_type: str) -> None:
    def page(count: int) -> bytes:
        text = f"<html><body><!-- <b {_attributes(2_000)} --><div {_attributes(count)}>Brno</div></body></html>"
        return epub(text) if media_type == EPUB else text.encode()

    assert parsed(media_type, page(MAX_ATTRIBUTES)).text == "Brno"
    with pytest.raises(ResourceLimit, match=f"{MAX_ATTRIBUTES + 1} attributes; the limit is {MAX_ATTRIBUTES}"):
        parsed(media_type, page(MAX_ATTRIBUTES + 1))
    if media_type == HTML:
        with pytest.raises(ResourceLimit, match="attributes"):
            parser_of(HTML).check(page(MAX_ATTRIBUTES + 1), is_whole=True)


def test_a_script_does_not_hide_an_element_with_too_many_attributes() -> None:
    with pytest.raises(ResourceLimit, match="attributes"):
        parsed(HTML, f"<script>x = \"<a b='\";</script><p {_attributes(2_000)}>Brno</p><i c='>'>")


def test_parameters_of_a_message_are_read_to_the_limit() -> None:
    parameters = "; ".join(f'p{number}="value {number}"' for number in range(20_000))
    head = "From: petra@example.org\r\nSubject: Plant\r\n"
    for kind in ("Content-Type: text/plain", "Content-Disposition: inline", "Content-Type: text/plain;\r\n name*0=a"):
        content = f"{head}{kind}; {parameters}\r\n\r\nPetra leads the plant.".encode()
        # The library reads parameters in quadratic time, and again for every question.
        assert max(len(str(value)) for _, value in open_message(content).raw_items()) <= MAX_FIELD_CHARACTERS
        assert parsed(EML, content).text.endswith("Petra leads the plant.")


def test_a_chapter_that_is_listed_twice_is_read_once() -> None:
    from office_files import unzipped, zipped

    members = unzipped(epub("<html><body><p>Brno</p></body></html>"))
    members["book.opf"] = members["book.opf"].replace(b'<itemref idref="c"/>', b'<itemref idref="c"/>' * 9)
    assert parsed(EPUB, zipped(members, first="mimetype")).text == "Brno"
