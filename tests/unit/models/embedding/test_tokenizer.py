from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.models.embedding.tokenizer import (
    PIECE_CHARACTERS,
    UNKNOWN_WORD_CHARACTERS,
    WordPieceTokenizer,
    split_pieces,
)

TOKENIZER = WordPieceTokenizer()


def test_spans_are_word_pieces_in_the_text() -> None:
    text = "Überraschend: unaffable café in 東京!"
    spans = TOKENIZER.spans(text)
    assert [text[start:end] for start, end in spans][-3:] == ["東", "京", "!"]
    assert "".join(text[start:end] for start, end in spans) == text.replace(" ", "")


@settings(max_examples=60)
@given(st.text(max_size=300))
def test_spans_are_ordered_and_inside_the_text(text: str) -> None:
    spans = TOKENIZER.spans(text)
    assert spans == sorted(spans)
    assert all(0 <= start <= end <= len(text) for start, end in spans)


def test_no_text_is_cut_at_the_files_own_limit() -> None:
    assert len(TOKENIZER.spans("word " * 1000)) == 1000


def test_pieces_are_bounded_and_whole() -> None:
    text = "word " * 30_000 + "x" * (5 * PIECE_CHARACTERS) + " end"
    found = list(split_pieces(text))
    assert "".join(piece for _, piece in found) == text
    assert all(text.startswith(piece, offset) for offset, piece in found)
    assert max(len(piece) for _, piece in found) <= 2 * PIECE_CHARACTERS


def test_spans_of_a_text_in_pieces_are_those_of_the_whole() -> None:
    text = "The quick brown fox jumped over 13 lazy dogs in Massachusetts. " * 2000
    sentence = len(TOKENIZER.spans(text[:63]))
    spans = TOKENIZER.spans(text)
    assert len(spans) == 2000 * sentence
    assert spans[-1] == (len(text) - 2, len(text) - 1)


@pytest.mark.parametrize("word", ["x" * 5000, "é" * 5000])
def test_an_endless_word_counts_by_its_length(word: str) -> None:
    spans = TOKENIZER.spans(f"a {word} b")
    assert len(spans) >= 5000 // UNKNOWN_WORD_CHARACTERS
    assert max(end - start for start, end in spans) <= UNKNOWN_WORD_CHARACTERS
    assert spans[-1] == (5003, 5004)
