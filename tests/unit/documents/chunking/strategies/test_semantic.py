"""Breakpoints by the distance of sentences, with vectors of hashed words instead of an encoder."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.joining import pieces_of
from agentic_rag_backend.documents.chunking.sentence_units import units_of
from agentic_rag_backend.documents.chunking.strategies.semantic import find_breakpoints, measure_distances
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser, headings_of
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.models.embedding.base import Vectors
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer()
OPTIONS = ChunkingOptions("semantic", 120, 0)
SHIPS = "The ship sailed from the harbour. The ship carried grain. The harbour master saw the ship. "
BREAD = "Bread needs flour and yeast. The yeast makes bread rise. Bake the bread with flour on top. "


def vectors_of(texts: list[str]) -> Vectors:
    """Return the normalised counts of hashed words, a deterministic encoder."""
    found = np.full((len(texts), 64), 1e-3, dtype=np.float32)
    for row, text in zip(found, texts, strict=True):
        for word in text.casefold().split():
            row[sum(word.encode()) % 64] += 1
    normalised: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
    return normalised


def cut(parsed: ParsedDocument, options: ChunkingOptions) -> tuple[list[Piece], list[Piece]]:
    units = list(units_of(parsed, options, TOKENIZER))
    vectors = vectors_of([parsed.text[unit.start : unit.end] for unit in units])
    return units, list(pieces_of(find_breakpoints(vectors, units, options), units, options))


def test_it_cuts_where_the_subject_changes() -> None:
    text = SHIPS * 2 + BREAD * 2
    _, pieces = cut(ParsedDocument(text=text), OPTIONS)
    assert [text[piece.start : piece.end] for piece in pieces] == [(SHIPS * 2).strip(), (BREAD * 2).strip()]


def test_distances_are_of_two_sentences_on_each_side() -> None:
    gaps = measure_distances(np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32))
    assert gaps.tolist() == [0.2929, 1.0, 0.2929]


def test_a_heading_stays_with_its_sentence_and_rows_stay_whole() -> None:
    rows = "\n".join(f"| Person {number} | C{number} |" for number in range(40))
    parsed = MarkdownParser().parse(f"# Ships\n\n{SHIPS}\n\n# Staff\n\n| Name | Room |\n|---|---|\n{rows}")
    units, pieces = cut(parsed, ChunkingOptions("semantic", 60, 0))
    assert parsed.text[units[0].start : units[0].end] == "# Ships\n\nThe ship sailed from the harbour."
    table = [piece for piece in pieces if piece.header]
    assert len(table) > 3
    assert all(parsed.text[piece.start : piece.end].endswith("|") for piece in pieces[2:])
    assert {piece.headings for piece in pieces} == {("Ships",), ("Staff",)}


def test_overlap_is_of_whole_sentences() -> None:
    parsed = ParsedDocument(text=SHIPS * 10)
    units, pieces = cut(parsed, ChunkingOptions("semantic", 60, 20))
    assert {piece.start for piece in pieces} <= {unit.start for unit in units}
    overlaps = [before.end - after.start for before, after in itertools.pairwise(pieces)]
    assert any(overlap > 0 for overlap in overlaps)
    assert all(piece.size_tokens <= 60 for piece in pieces)


WORDS = st.sampled_from(["word", "Dr. Smith", "ends here.", "What?", "\n\n", "# Heading\n", "ships", "é", "- item\n", "x" * 90])
SIZES = st.builds(
    lambda size, share, unit, percentile: ChunkingOptions("semantic", size, int(size * share), unit, percentile),
    st.integers(20, 90),
    st.floats(0, 0.5),
    st.sampled_from(["tokens", "characters"]),
    st.integers(50, 99),
)


@sampled(gate=80, deep=1000)
@given(st.lists(WORDS, min_size=1, max_size=150).map(" ".join), SIZES)
def test_every_character_is_in_a_chunk_and_no_sentence_is_cut(text: str, options: ChunkingOptions) -> None:
    source = f"start {text}"
    parsed = ParsedDocument(text=source, headings=tuple(headings_of(source)))
    units, pieces = cut(parsed, options)
    assert cut(parsed, options)[1] == pieces
    covered = bytearray(len(source))
    for piece in pieces:
        covered[piece.start : piece.end] = b"x" * (piece.end - piece.start)
        size = piece.size_tokens if options.unit == "tokens" else piece.end - piece.start
        assert size <= options.chunk_size or sum(piece.start <= unit.start < piece.end for unit in units) == 1
        assert piece.size_tokens == len(TOKENIZER.spans(source[piece.start : piece.end])) or "x" in source
    assert not [character for place, character in enumerate(source) if not covered[place] and not character.isspace()]
    for before, after in itertools.pairwise(pieces):
        assert before.start < after.start
        assert before.end < after.end
    edges = {edge for piece in pieces for edge in (piece.start, piece.end)}
    for sentence in split_sentences(source):
        assert not any(sentence.start < edge < sentence.end for edge in edges)
