"""The builder of a document's text: headings and regions stand exactly where their text is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.documents.parsing.base import Heading, ParsedDocument
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.domain.location import Region
from agentic_rag_backend.errors import UnreadableDocument


def test_blocks_are_separated_by_a_blank_line_and_regions_are_their_places() -> None:
    builder = TextBuilder()
    builder.add_heading(2, "  The \n quay ", page=1)
    builder.add_paragraph("  It is long. \r\nVery long.\r", page=1, box=(1.0, 2.0, 3.0, 4.0))
    builder.add_paragraph("No place.")
    parsed = builder.build(title=" A  title\n", metadata={"author": "Ada"})
    assert parsed.text == "The quay\n\nIt is long. \nVery long.\n\nNo place."
    assert parsed.headings == (Heading(2, "The quay", 0),)
    assert [(parsed.text[each.start_char : each.end_char], each.page) for each in parsed.regions] == [
        ("The quay", 1),
        ("It is long. \nVery long.", 1),
    ]
    assert parsed.regions[1].box == (1.0, 2.0, 3.0, 4.0)
    assert (parsed.title, parsed.metadata) == ("A title", {"author": "Ada"})


def test_lines_keep_their_places_and_are_joined_as_asked() -> None:
    builder = TextBuilder()
    builder.add_paragraph("Above.")
    places: list[tuple[str, dict[str, Any]]] = [
        (" ", {"page": 9}),
        ("inter", {"page": 1}),
        ("national", {"page": 2}),
        ("trade", {}),
    ]
    builder.add_lines(places, joins=["!", "", " "])
    parsed = builder.build()
    assert parsed.text == "Above.\n\ninternational trade"
    assert parsed.regions == (Region(8, 13, page=1), Region(13, 21, page=2))


def test_what_has_no_visible_characters_adds_nothing() -> None:
    builder = TextBuilder()
    builder.add_heading(1, " \n ")
    builder.add_paragraph("\t \r\n", page=1)
    builder.add_lines([])
    builder.add_table([])
    builder.add_table([["", " "], [""]])
    with pytest.raises(UnreadableDocument, match="no text"):
        builder.build()
    builder.add_paragraph("Text.")
    parsed = builder.build(title=" ")
    assert (parsed.text, parsed.headings, parsed.regions, parsed.title) == ("Text.", (), (), None)


def test_a_table_has_a_line_for_each_row_with_its_place() -> None:
    builder = TextBuilder()
    builder.add_paragraph("Staff")
    rows = [["Name", "Room"], ["Petra|Pia", "C 2\nleft"], ["Ines"], ["Größe", "C4", "x"]]
    builder.add_table(rows, [{"cells": f"A{number}:B{number}", "sheet": "S"} for number in range(1, 5)])
    parsed = builder.build()
    assert parsed.text.splitlines() == [
        *("Staff", "", "| Name | Room |  |", "| --- | --- | --- |", "| Petra\\|Pia | C 2 left |  |", "| Ines |  |  |"),
        "| Größe | C4 | x |",
    ]
    shown = [(parsed.text[each.start_char : each.end_char].split(" ")[1], each.cells) for each in parsed.regions]
    assert shown == [("Name", "A1:B1"), ("Petra\\|Pia", "A2:B2"), ("Ines", "A3:B3"), ("Größe", "A4:B4")]


def test_a_table_without_a_header_gets_an_empty_one() -> None:
    builder = TextBuilder()
    builder.add_table([["1", "2"]], header=False)
    assert builder.build().text == "|  |  |\n| --- | --- |\n| 1 | 2 |"


def test_the_places_of_a_table_must_be_as_many_as_its_rows() -> None:
    with pytest.raises(ValueError, match="zip"):
        TextBuilder().add_table([["a"], ["b"]], [{"page": 1}])


def test_the_text_of_another_file_is_a_block_with_deeper_headings_and_no_regions() -> None:
    builder = TextBuilder()
    builder.add_heading(1, "Mail")
    inner = ParsedDocument(
        text="Top\n\nText.\n\n", headings=(Heading(1, "Top", 0), Heading(2, "Text.", 5)), regions=(Region(0, 3, page=1),)
    )
    builder.add_document(inner, level=1)
    builder.add_paragraph("After.")
    parsed = builder.build()
    assert parsed.text == "Mail\n\nTop\n\nText.\n\nAfter."
    assert parsed.headings == (Heading(1, "Mail", 0), Heading(2, "Top", 6), Heading(3, "Text.", 11))
    assert parsed.regions == ()


TEXTS = st.text(st.sampled_from("ab é\n\r\t|\x00 🚢"), max_size=12)
BLOCKS = st.one_of(
    st.tuples(st.just("paragraph"), TEXTS),
    st.tuples(st.just("heading"), TEXTS),
    st.tuples(st.just("table"), st.lists(st.lists(TEXTS, max_size=3), max_size=4)),
)


@sampled(gate=80, deep=1000)
@given(st.lists(BLOCKS, max_size=8))
def test_offsets_are_exact_for_any_blocks(blocks: list[tuple[str, Any]]) -> None:
    builder = TextBuilder()
    builder.add_paragraph("start", page=1)
    for page, (kind, value) in enumerate(blocks, 2):
        if kind == "paragraph":
            builder.add_paragraph(value, page=page)
        elif kind == "heading":
            builder.add_heading(1, value, page=page)
        else:
            builder.add_table(value, [{"page": page}] * len(value))
    parsed = builder.build()
    assert "\x00" not in parsed.text
    assert "\r" not in parsed.text
    assert parsed.text == parsed.text.strip()
    for heading in parsed.headings:
        assert parsed.text.startswith(heading.title, heading.start_char)
        assert heading.start_char == 0 or parsed.text[heading.start_char - 2 : heading.start_char] == "\n\n"
    ends = 0
    for region in parsed.regions:
        shown = parsed.text[region.start_char : region.end_char]
        assert region.start_char >= ends
        assert shown == shown.strip() != ""
        ends = region.end_char
    at = 0
    for line in parsed.text.split("\n"):
        placed = any(each.start_char <= at < each.end_char for each in parsed.regions)
        assert placed or set(line) <= set("|- "), "only the rule below a header and the lines between blocks have no place"
        at += len(line) + 1
