"""Small chunks in parents: every chunk lies in its parent, and parents cover the text without overlap."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.documents.chunking.passages import chunks_of
from agentic_rag_backend.documents.chunking.registry import check_options, options_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser
from agentic_rag_backend.domain.document import Chunk, ChunkingOptions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer()
SENTENCE = "Cranes unload the ships by day and the harbour master counts every container. "


def chunked(text: str, size: int = 40, overlap: int = 0, parent_size: int = 120, unit: str = "tokens") -> list[Chunk]:
    options = ChunkingOptions("parent_child", size, overlap, unit, parent_size=parent_size)
    return chunks_of(TenantId("t_" + "1" * 32), "d", 1, MarkdownParser().parse(text), options, tokenizer=TOKENIZER)


def test_small_chunks_share_the_parent_around_them() -> None:
    text = f"# Port\n\n{SENTENCE * 5}\n\n# Town\n\n{SENTENCE * 20}"
    chunks = chunked(text)
    groups = [list(own) for _, own in itertools.groupby(chunks, key=lambda each: each.parent_id)]
    assert len(groups) > 2
    assert all(len(own) > 1 for own in groups)
    for own in groups:
        place = own[0].location
        assert place.parent_start == place.start_char
        assert place.parent_end == own[-1].location.end_char
        assert {each.location.parent_end for each in own} == {place.parent_end}
        assert {each.location.headings for each in own} == {place.headings}
        assert len(TOKENIZER.spans(text[place.parent_start or 0 : place.parent_end])) <= 120
    assert len({own[0].parent_id for own in groups}) == len(groups)


def test_a_table_keeps_its_header_and_its_rows() -> None:
    rows = "\n".join(f"| Person {number:03} | C{number:03} |" for number in range(60))
    chunks = chunked(f"# Staff\n\n| Name | Room |\n|---|---|\n{rows}")
    assert all(each.text.endswith("|") for each in chunks)
    assert all(each.location.header for each in chunks[1:])


def test_sizes_are_checked_and_the_default_parent_is_larger_than_a_chunk() -> None:
    assert options_of("parent_child", None, None, "tokens") == ChunkingOptions("parent_child", 100, 0, parent_size=500)
    assert options_of("parent_child", 600, None, "tokens").parent_size == 1200
    assert options_of("parent_child", None, None, "characters").parent_size == 2000
    assert options_of("recursive", None, None, "characters").parent_size == 500, "other strategies keep their options"
    for size, parent_size, message in ((100, 100, "above chunk_size \\(100\\)"), (100, 2049, "at most 2048 tokens; it is 2049")):
        with pytest.raises(InvalidRequest, match=message):
            check_options(ChunkingOptions("parent_child", size, 0, parent_size=parent_size))
    check_options(ChunkingOptions("recursive", 600, 0))


WORDS = st.sampled_from(["word", "Dr. Smith", "ends here.", "What?", "\n\n", "\n# Heading\n", "é", "\n- item\n", "x" * 90])


@sampled(gate=60, deep=1000)
@given(st.lists(WORDS, min_size=1, max_size=120).map(" ".join), st.integers(16, 60), st.floats(0, 0.5), st.integers(2, 5))
def test_parents_cover_the_text_in_order(words: str, size: int, share: float, times: int) -> None:
    text = f"start {words}"
    chunks = chunked(text, size, int(size * share), size * times)
    places = [each.location for each in chunks]
    assert all((p.parent_start or 0) <= p.start_char < p.end_char <= (p.parent_end or 0) for p in places)
    parents = list(dict.fromkeys((p.parent_start or 0, p.parent_end or 0) for p in places))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(parents))
    assert "".join("".join(text[start:end].split()) for start, end in parents) == "".join(text.split())
    covered = bytearray(len(text))
    for place in places:
        covered[place.start_char : place.end_char] = b"x" * (place.end_char - place.start_char)
    assert not [character for at, character in enumerate(text) if not covered[at] and not character.isspace()]


def test_a_document_without_parents_has_no_parents() -> None:
    options = ChunkingOptions("recursive", 40, 0)
    chunks = chunks_of(TenantId("t_" + "1" * 32), "d", 1, ParsedDocument(text=SENTENCE), options, tokenizer=TOKENIZER)
    assert [each.parent_id for each in chunks] == [None]
