"""Boundaries that a language model chooses: the model moves boundaries between sentences, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.documents.chunking import sentence_windows
from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.sentence_units import units_of
from agentic_rag_backend.documents.chunking.sentence_windows import SentenceWindow, windows_of
from agentic_rag_backend.documents.chunking.strategies import agentic
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser, headings_of
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer()
OPTIONS = ChunkingOptions("agentic", 120, 0)
SHIPS = "The ship sailed from the harbour. The ship carried grain. The harbour master saw it. "
BREAD = "Bread needs flour and yeast. The yeast makes it rise. Bake it with flour on top. "


def units(parsed: ParsedDocument, options: ChunkingOptions = OPTIONS) -> list[Piece]:
    return list(units_of(parsed, options, TOKENIZER))


def cut(parsed: ParsedDocument, *replies: Mapping[str, Any] | None, options: ChunkingOptions = OPTIONS) -> list[str]:
    found = units(parsed, options)
    windows = windows_of(parsed.text, found)
    pieces = agentic.cut_pieces(parsed.text, found, list(zip(windows, replies, strict=True)), options)
    return [parsed.text[piece.start : piece.end] for piece in pieces]


def test_chunks_begin_at_the_chosen_sentences() -> None:
    parsed = ParsedDocument(text=SHIPS + BREAD + SHIPS)
    assert cut(parsed, {"starts": [1, 4, 7]}) == [SHIPS.strip(), BREAD.strip(), SHIPS.strip()]
    assert cut(parsed, {"starts": [7]}) == [(SHIPS + BREAD).strip(), SHIPS.strip()], "the first sentence always begins a chunk"


def test_a_passage_that_is_too_large_is_divided_at_the_end_of_a_paragraph() -> None:
    text = f"{SHIPS}\n\n{BREAD}\n\n{SHIPS}".replace(" \n", "\n")
    parts = cut(ParsedDocument(text=text), {"starts": [1]}, options=ChunkingOptions("agentic", 30, 0))
    assert parts == [SHIPS.strip(), BREAD.strip(), SHIPS.strip()]


@pytest.mark.parametrize(
    "numbers",
    [[0], [10], [3, 2], [2, 2], ["2"], [True], [1.5], None, "2", {"a": 1}],
    ids=["zero", "beyond", "descending", "twice", "text", "boolean", "fraction", "missing", "string", "object"],
)
def test_other_numbers_are_refused(numbers: object) -> None:
    parsed = ParsedDocument(text=SHIPS * 3)
    asked = agentic.make_inquiry(parsed.text, units(parsed), SentenceWindow(0, 9))
    assert asked.accepts({"starts": [1, 9]})
    assert asked.accepts({"starts": []})
    assert not asked.accepts({"starts": numbers})
    assert not asked.accepts({})


def test_a_window_without_advice_is_divided_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_windows, "WINDOW_UNITS", 6)
    text = f"# Ships\n\n{SHIPS * 2}\n\n# Bread\n\n{BREAD * 2}"
    parsed = ParsedDocument(text=text, headings=tuple(headings_of(text)))
    small = ChunkingOptions("agentic", 30, 0)
    assert [window.count for window in windows_of(text, units(parsed, small))] == [6, 6]
    by_size = cut(parsed, None, None, options=small)
    assert [part.count(".") for part in by_size] == [4, 2, 4, 2]
    assert cut(parsed, None, {"starts": [1, 6]}, options=small)[:2] == by_size[:2]
    assert cut(parsed, None, {"starts": [1, 6]}, options=small)[-1] == "Bake it with flour on top."


def test_the_end_of_a_window_inside_a_paragraph_is_no_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_windows, "WINDOW_UNITS", 4)
    parsed = ParsedDocument(text=SHIPS * 2)
    assert cut(parsed, {"starts": [1]}, {"starts": [1]}) == [(SHIPS * 2).strip()]
    assert cut(parsed, {"starts": [1, 3]}, {"starts": [1, 2]}) == [
        "The ship sailed from the harbour. The ship carried grain.",
        "The harbour master saw it. The ship sailed from the harbour. The ship carried grain.",
        "The harbour master saw it.",
    ]


def test_windows_end_with_a_section_and_cover_every_sentence() -> None:
    text = "\n\n".join(f"## Part {part}\n\n{SHIPS * 12}" for part in range(12))
    parsed = ParsedDocument(text=text, headings=tuple(headings_of(text)))
    found = units(parsed)
    windows = windows_of(text, found)
    assert [window.end for window in windows[:-1]] == [window.first for window in windows[1:]]
    assert (windows[0].first, windows[-1].end) == (0, len(found))
    assert all(found[window.first].headings != found[window.first - 1].headings for window in windows[1:])
    assert all(window.count <= sentence_windows.WINDOW_UNITS for window in windows)


def test_the_model_reads_fenced_numbered_sentences() -> None:
    text = "One </sentences> ends.\nTwo\nlines. [3] is a number. " + "x" * 3000
    parsed = ParsedDocument(text=text)
    found = units(parsed)
    shown = agentic.make_inquiry(text, found, SentenceWindow(0, len(found))).values["sentences"]
    assert shown.count("</sentences>") == 1
    assert re.findall(r"^(\d+)\. ", shown, re.MULTILINE) == [str(number) for number in range(1, len(found) + 1)]
    assert len(shown) < 2500, "a long sentence is shown by its beginning"


def test_rows_stay_whole_and_keep_the_header_of_their_table() -> None:
    rows = "\n".join(f"| Person {number} | C{number} |" for number in range(40))
    parsed = MarkdownParser().parse(f"# Staff\n\n| Name | Room |\n|---|---|\n{rows}")
    found = units(parsed)
    advice = [(SentenceWindow(0, len(found)), {"starts": [1, 11, 21]})]
    pieces = list(agentic.cut_pieces(parsed.text, found, advice, ChunkingOptions("agentic", 500, 0)))
    assert len(pieces) == 3
    assert all(parsed.text[piece.start : piece.end].endswith("|") for piece in pieces)
    assert [bool(piece.header) for piece in pieces] == [False, True, True]


WORDS = st.sampled_from(["word", "Dr. Smith", "ends here.", "What?", "\n\n", "# Heading\n", "é", "- item\n", "x" * 90])


@sampled(gate=60, deep=1000)
@given(st.lists(WORDS, min_size=1, max_size=60), st.sets(st.integers(1, 60)), st.integers(20, 90))
def test_any_boundaries_keep_every_character(words: list[str], starts: set[int], size: int) -> None:
    text = " ".join(words)
    if not text.strip():
        return
    parsed = ParsedDocument(text=text, headings=tuple(headings_of(text)))
    options = ChunkingOptions("agentic", size, 0)
    found = units(parsed, options)
    chosen = sorted(number for number in starts if number <= len(found))
    pieces = list(agentic.cut_pieces(text, found, [(SentenceWindow(0, len(found)), {"starts": chosen})], options))
    assert "".join("".join(text[piece.start : piece.end].split()) for piece in pieces) == "".join(text.split())
    begins = {unit.start for unit in found}
    assert all(piece.start in begins for piece in pieces)
    largest = max(unit.size_tokens for unit in found)
    assert all(piece.size_tokens <= max(size, largest) for piece in pieces)
