"""Statements of a language model: they make chunks findable, rest on named sentences, and never change the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.answering.claims.registry import says_statement
from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.passages import chunks_from, passage_text
from agentic_rag_backend.documents.chunking.sentence_units import units_of
from agentic_rag_backend.documents.chunking.sentence_windows import SentenceWindow
from agentic_rag_backend.documents.chunking.strategies import proposition
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.markdown import headings_of
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer()
OPTIONS = ChunkingOptions("proposition", 120, 0, parent_size=200)
TEXT = (
    "Mara Venn leads the Harbour Authority. She bought the Fish Market in 2015. It was closed for two years. "
    "The halls were not damaged by the storm. Nobody was hurt."
)


def units(text: str, options: ChunkingOptions = OPTIONS) -> list[Piece]:
    return list(units_of(ParsedDocument(text=text, headings=tuple(headings_of(text))), options, TOKENIZER))


def item(statement: object, *sentences: object) -> dict[str, Any]:
    return {"statement": statement, "sentences": list(sentences)}


def stated(text: str, *items: Mapping[str, Any], title: str = "Harbour") -> dict[int, list[str]]:
    found = units(text)
    return proposition.statements_of(
        title, text, found, [(SentenceWindow(0, len(found)), {"statements": list(items)})], says_statement
    )


def cut(text: str, statements: Mapping[int, Sequence[str]], options: ChunkingOptions = OPTIONS) -> list[Piece]:
    return list(proposition.cut_pieces(text, units(text, options), statements, options))


def test_a_statement_belongs_to_the_last_sentence_that_it_names() -> None:
    bought, closed = "Mara Venn bought the Fish Market in 2015.", "The Fish Market was closed for two years."
    assert stated(TEXT, item(bought, 1, 2), item(closed, 3, 2)) == {1: [bought], 2: [closed]}


@pytest.mark.parametrize(
    "wrong",
    [
        item("Mara Venn bought the Fish Market in 2016.", 1, 2),
        item("Jorin Sorrelwick bought the Fish Market in 2015.", 1, 2),
        item("The halls were damaged by the storm.", 4),
        item("Mara Venn bought the Fish Market in 2015.", 3),
        item("The Fish Market was sold to the council.", 2, 3),
        item("Nobody was hurt.", 0),
        item("Nobody was hurt.", 6),
        item("Nobody was hurt."),
        item("Nobody was hurt.", True),
        item("Nobody was hurt.", "5"),
        item("Nobody was hurt.", 1, 2, 3, 4, 5, 5, 5),
        item("  ", 5),
        item("Nobody was hurt. " * 30, 5),
        {"statement": "Nobody was hurt."},
    ],
    ids=[
        *("number", "name", "denial", "other-sentence", "invented", "zero", "beyond", "no-sentence"),
        *("boolean", "text", "too-many", "blank", "too-long", "no-list"),
    ],
)
def test_a_statement_that_its_sentences_do_not_say_is_dropped(wrong: Mapping[str, Any]) -> None:
    right = item("Mara Venn leads the Harbour Authority.", 1)
    assert stated(TEXT, wrong, right) == {0: ["Mara Venn leads the Harbour Authority."]}


def test_names_may_come_from_the_title() -> None:
    said = "The Fish Market opened in 1911."
    assert stated("It opened in 1911. The halls are rented.", item(said, 1), title="Fish Market") == {0: [said]}


def test_a_reply_without_any_usable_place_is_refused() -> None:
    found = units(TEXT)
    asked = proposition.make_inquiry("Harbour", TEXT, found, SentenceWindow(0, len(found)))
    assert asked.accepts({"statements": [item("Nobody was hurt.", 5), item("x", 99)]})
    assert not asked.accepts({"statements": [item("Nobody was hurt.", 99)]})
    assert not asked.accepts({"statements": []})
    assert "Harbour" in asked.values["about"]


def test_a_chunk_has_at_most_five_statements_and_its_own_exact_text() -> None:
    statements = {0: ["A.", "B.", "C."], 1: ["D.", "E."], 2: ["F."], 4: ["G."]}
    pieces = cut(TEXT, statements)
    assert [piece.statements for piece in pieces] == [
        ("A.", "B.", "C.", "D.", "E."),
        ("F.", "The halls were not damaged by the storm.", "G."),
    ]
    assert TEXT[pieces[0].start : pieces[0].end] == "Mara Venn leads the Harbour Authority. She bought the Fish Market in 2015."
    assert {piece.parent for piece in pieces} == {(0, len(TEXT))}
    (first, _) = chunks_from(TenantId("t_" + "1" * 32), "d", 1, ParsedDocument(text=TEXT), pieces)
    assert passage_text("Harbour", first) == "Harbour\nA.\nB.\nC.\nD.\nE."


def test_without_statements_the_sentences_are_found_by_their_words() -> None:
    (piece,) = cut(TEXT, {})
    assert piece.statements == ()
    (chunk,) = chunks_from(TenantId("t_" + "1" * 32), "d", 1, ParsedDocument(text=TEXT), [piece])
    assert passage_text("Harbour", chunk) == f"Harbour\n{TEXT}"


WORDS = st.sampled_from(["word", "Dr. Smith", "ends here.", "What?", "\n\n", "\n# Heading\n", "é", "\n- item\n", "x" * 90])


@sampled(gate=60, deep=1000)
@given(
    st.lists(WORDS, min_size=1, max_size=80).map(" ".join),
    st.dictionaries(st.integers(0, 60), st.integers(1, 5), max_size=20),
    st.integers(16, 60),
    st.integers(2, 6),
)
def test_every_character_is_in_one_chunk_inside_its_parent(words: str, counts: dict[int, int], size: int, times: int) -> None:
    text = f"start {words}"
    options = ChunkingOptions("proposition", size, 0, parent_size=size * times)
    found = units(text, options)
    statements = {unit: [f"S{unit}.{n}." for n in range(count)] for unit, count in counts.items() if unit < len(found)}
    pieces = cut(text, statements, options)
    assert "".join("".join(text[piece.start : piece.end].split()) for piece in pieces) == "".join(text.split())
    assert [each for piece in pieces for each in piece.statements if each.startswith("S")] == [
        each for unit in sorted(statements) for each in statements[unit]
    ]
    for piece in pieces:
        assert piece.parent is not None
        assert piece.parent[0] <= piece.start < piece.end <= piece.parent[1]
        assert len(piece.statements) <= proposition.MAX_STATEMENTS
