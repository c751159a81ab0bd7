"""Fixed windows, and chunks along sections, pages and sheets."""

from __future__ import annotations

import itertools

from agentic_rag_backend.documents.chunking.passages import chunks_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser
from agentic_rag_backend.domain.document import Chunk, ChunkingOptions
from agentic_rag_backend.domain.location import Region
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer()
PARAGRAPH = "Cranes unload the ships by day. Trains leave every hour for the south. The harbour master counts the containers."
ROWS = "\n".join(["| Name | Room |", "|---|---|", *(f"| Person {number:03} | C{number:03} |" for number in range(80))])


def chunked(parsed: ParsedDocument | str, strategy: str, size: int = 120, overlap: int = 0, unit: str = "tokens") -> list[Chunk]:
    document = MarkdownParser().parse(parsed) if isinstance(parsed, str) else parsed
    options = ChunkingOptions(strategy, size, overlap, unit)
    return chunks_of(TenantId("t_" + "1" * 32), "d", 1, document, options, tokenizer=TOKENIZER)


def test_fixed_windows_are_full_and_overlap_by_whole_words() -> None:
    text = " ".join(f"word{number}" for number in range(2000))
    chunks = chunked(text, "fixed", 1000, 100, "characters")
    assert all(980 < len(each.text) <= 1000 for each in chunks[:-1])
    assert all(word in text.split() for each in chunks for word in each.text.split())
    for before, after in itertools.pairwise(chunks):
        assert 80 < before.location.end_char - after.location.start_char <= 100


def test_fixed_windows_know_the_heading_above_their_beginning_and_keep_rows_whole() -> None:
    chunks = chunked(f"# One\n\n{PARAGRAPH * 8}\n\n# Two\n\n{ROWS}", "fixed")
    assert {each.location.headings for each in chunks} == {("One",), ("Two",)}
    rows = [each for each in chunks if each.location.header]
    assert len(rows) > 3
    assert all(each.text.startswith("| Person") and each.text.endswith("|") for each in rows)


def test_a_section_is_a_chunk_and_small_neighbours_of_one_parent_are_joined() -> None:
    long = PARAGRAPH * 5
    text = f"# Port\n\n## A\n\nShort.\n\n## B\n\nShort.\n\n# Town\n\n## C\n\nShort.\n\n## D\n\n{long}\n\n## E\n\n{long}"
    chunks = chunked(text, "structure")
    assert [each.location.headings for each in chunks] == [("Port",), ("Town", "C"), ("Town", "D"), ("Town", "E")]
    # `recursive` would join the sections of both parents.
    assert chunks[0].text.startswith("# Port")
    assert chunks[0].text.endswith("## B\n\nShort.")


def test_a_long_section_is_cut_inside_and_rows_stay_whole() -> None:
    chunks = chunked(f"# Staff\n\n{ROWS}\n\n# Other\n\n{PARAGRAPH}", "structure")
    table = [each for each in chunks if each.location.headings == ("Staff",)]
    assert len(table) > 3
    assert all(each.text.endswith("|") for each in table)
    assert all(each.location.header == "| Name | Room |\n|---|---|" for each in table[1:])


def test_slides_and_sheets_are_sections() -> None:
    builder = TextBuilder()
    for page in (1, 2, 3):
        builder.add_paragraph(f"Slide {page}. {PARAGRAPH * 3}", page=page)
    chunks = chunked(builder.build(), "structure")
    assert [[region.page for region in each.location.regions] for each in chunks] == [[1], [2], [3]]
    sheets = TextBuilder()
    for sheet in ("Staff", "Rooms"):
        rows = [["Name", "Room"], *([f"Person {number}", f"C{number:03}"] for number in range(12))]
        sheets.add_table(rows, [{"sheet": sheet, "cells": f"A{number}:B{number}"} for number in range(1, 14)])
    for each in chunked(sheets.build(), "structure"):
        assert len({region.sheet for region in each.location.regions}) == 1


def test_a_sentence_that_a_page_break_interrupts_stays_whole() -> None:
    first, second = "The ship sailed from the old harbour " * 8 + "towards", "the island in the north. " * 12
    text = f"{first}\n{second.strip()}"
    end = len(first)
    parsed = ParsedDocument(text=text, regions=(Region(0, end, page=1), Region(end + 1, len(text), page=2)))
    assert len(chunked(parsed, "structure", 400)) == 1
