"""Chunks of long tables and lists."""

from __future__ import annotations

import re

import pytest

from agentic_rag_backend.documents.chunking.passages import chunks_of, passage_text
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser
from agentic_rag_backend.domain.document import Chunk, ChunkingOptions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.language.entries.reading import header_text
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TENANT = TenantId("t_" + "1" * 32)
TOKENIZER = WordPieceTokenizer()

PEOPLE = [f"| Person {number:03} | Archivist | C{number:03} | 555-{number:04} |" for number in range(60)]
TABLE = "\n".join(["# Staff", "", "All people.", "", "| Name | Role | Room | Phone |", "|---|---|---|---|", *PEOPLE])
DAYS = [f"- {'Monday' if number % 2 else 'Friday'} of week {number}" for number in range(99)]
ITEMS = "\n".join(["# Hours", "", "The rooms are open on these days:", "", *DAYS])
SHEET = "\n".join(["Name,Role,Room", *(f"Person {number:03},Archivist,C{number:03}" for number in range(90))])
CELLS = "".join(f"<tr><td>Person {number}</td><td>C{number:03}</td></tr>" for number in range(90))
MARKUP = f"<table><tr><th>Name</th><th>Room</th></tr>{CELLS}</table>"


def chunked(text: str, options: ChunkingOptions | None = None) -> list[Chunk]:
    parsed = MarkdownParser().parse(text)
    return chunks_of(TENANT, "d", 1, parsed, options or ChunkingOptions(), tokenizer=TOKENIZER)


@pytest.mark.parametrize(
    ("text", "header", "row"),
    [
        (TABLE, "| Name | Role | Room | Phone |\n|---|---|---|---|", r"\| Person \d{3} [^\n]* 555-\d{4} \|"),
        (ITEMS, "The rooms are open on these days:", r"- (?:Monday|Friday) of week \d+"),
        (SHEET, "Name,Role,Room", r"Person \d{3},Archivist,C\d{3}"),
        (MARKUP, "<table><tr><th>Name</th><th>Room</th></tr>", r"<tr><td>Person \d+</td><td>C\d{3}</td></tr>"),
    ],
    ids=["pipes", "list", "commas", "markup"],
)
def test_every_chunk_of_a_long_table_has_its_header_and_whole_rows(text: str, header: str, row: str) -> None:
    chunks = chunked(text)
    assert len(chunks) > 2
    assert chunks[0].location.header == ""
    for each in chunks[1:]:
        assert each.location.header == header
        assert re.match(row, each.text)
        assert re.search(rf"{row}(?:</table>)?\Z", each.text)
        assert header_text(header) in passage_text("A title", each)
        assert each.text == text[each.location.start_char : each.location.end_char]
    assert "".join("".join(each.text.split()) for each in chunks) == "".join(text.split())


def test_a_row_that_is_too_long_is_cut_and_its_parts_have_no_header() -> None:
    text = f"| Name | Note |\n|---|---|\n| Petra | {'word ' * 400}|\n| Bob | short |\n| Ann | short |"
    parts = [each for each in chunked(text) if each.text.startswith("word")]
    assert parts
    assert all(each.location.header == "" for each in parts)


def test_cells_that_span_rows_stay_with_their_rows() -> None:
    groups = "".join(
        f'<tr><td rowspan="2">Branch {number}</td><td>{number}</td></tr>\n<tr><td>{number + 1}</td></tr>\n'
        for number in range(60)
    )
    chunks = chunked(f"<table><tr><th>Branch</th><th>Loans</th></tr>\n{groups}</table>")
    assert len(chunks) > 2
    assert all(each.text.startswith('<tr><td rowspan="2">') for each in chunks[1:])
