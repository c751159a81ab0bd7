from __future__ import annotations

import itertools
from typing import get_args

import pytest
from cpu_time import cpu_s
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.api.schemas.documents.documents import Strategy
from agentic_rag_backend.documents.chunking.passages import chunks_of, passage_text
from agentic_rag_backend.documents.chunking.registry import KNOWN, check_options, chunker_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser, headings_of
from agentic_rag_backend.domain.document import CHUNKING_STRATEGIES, Chunk, ChunkingOptions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TENANT = TenantId("t_" + "1" * 32)
TOKENIZER = WordPieceTokenizer()
PARAGRAPH = (
    "The harbour of Rotterdam handles most of the containers. Cranes unload ships by day and by night. Trains leave hourly."
)
OPTIONS = ChunkingOptions()


def chunk(parsed: ParsedDocument, options: ChunkingOptions = OPTIONS, *, version: int = 1) -> list[Chunk]:
    return chunks_of(TENANT, "document-1", version, parsed, options, tokenizer=TOKENIZER)


def markdown(text: str) -> ParsedDocument:
    return MarkdownParser().parse(text)


def check_invariants(text: str, chunks: list[Chunk], options: ChunkingOptions) -> None:
    covered = bytearray(len(text))
    for each in chunks:
        assert each.text == text[each.location.start_char : each.location.end_char]
        assert each.text.strip() == each.text
        assert each.text
        assert each.location.start_line == text.count("\n", 0, each.location.start_char) + 1
        assert each.location.end_line == each.location.start_line + each.text.count("\n")
        covered[each.location.start_char : each.location.end_char] = b"x" * len(each.text)
        size = len(each.text) if options.unit == "characters" else each.size_tokens
        assert size <= options.chunk_size
    assert [character for place, character in enumerate(text) if not covered[place] and not character.isspace()] == []
    for before, after in itertools.pairwise(chunks):
        assert before.location.start_char < after.location.start_char
        assert before.location.end_char < after.location.end_char
    assert len({each.id for each in chunks}) == len(chunks)
    assert [each.ordinal for each in chunks] == list(range(len(chunks)))


WORDS = st.sampled_from(
    [
        "word",
        "Dr. Smith",
        "ends here.",
        "What?",
        "\n\n",
        "\n",
        "# Heading\n",
        "\n## Deeper\n",
        "東京タワー",
        "x" * 70,
        "  " * 40,
        "\x01",
        "é",
        "- item\n",
    ]
)
SMALL = st.builds(
    lambda strategy, size, share, unit: ChunkingOptions(strategy, size, int(size * share), unit),
    st.sampled_from(["recursive", "fixed", "structure", "ast"]),
    st.integers(16, 60),
    st.floats(0, 0.5),
    st.sampled_from(["tokens", "characters"]),
)


@sampled(gate=80, deep=1000)
@given(st.lists(WORDS, min_size=1, max_size=150).map(" ".join), SMALL)
def test_every_character_is_in_a_chunk_of_the_right_size(text: str, options: ChunkingOptions) -> None:
    parsed = ParsedDocument(text=f"start {text}", headings=tuple(headings_of(f"start {text}")))
    check_invariants(parsed.text, chunk(parsed, options), options)


@sampled(gate=60, deep=600)
@given(st.text(min_size=1, max_size=400), SMALL)
def test_any_text_at_all(text: str, options: ChunkingOptions) -> None:
    parsed = ParsedDocument(text=f"a{text}")
    check_invariants(parsed.text, chunk(parsed, options), options)


def test_a_short_text_is_one_chunk() -> None:
    chunks = chunk(ParsedDocument(text=f"\n {PARAGRAPH}\n\n{PARAGRAPH}  \n"))
    assert [(each.location.start_char, each.location.end_char) for each in chunks] == [(2, 2 * len(PARAGRAPH) + 4)]
    assert chunks[0].size_tokens == len(TOKENIZER.spans(chunks[0].text))


def test_a_section_is_not_crossed_where_it_need_not_be() -> None:
    parsed = markdown("\n\n".join(f"## Part {number}\n\n{PARAGRAPH * 6}" for number in range(5)))
    chunks = chunk(parsed)
    assert [each.location.headings for each in chunks] == [(f"Part {number}",) for number in range(5)]
    assert all(each.text.startswith("## Part") for each in chunks)


def test_tiny_sections_share_a_chunk() -> None:
    parsed = markdown("# Guide\n\n## One\n\nShort.\n\n## Two\n\nShort too.\n\n## Three\n\n" + PARAGRAPH * 9)
    chunks = chunk(parsed)
    assert len(chunks) == 2
    assert chunks[0].location.headings == ("Guide",)
    assert "Short too." in chunks[0].text
    assert chunks[1].location.headings == ("Guide", "Three")


def test_a_bare_heading_goes_with_what_it_heads() -> None:
    chunks = chunk(markdown("# Ports\n\n## Cranes\n\n" + PARAGRAPH * 20))
    assert chunks[0].text.startswith("# Ports\n\n## Cranes\n\nThe harbour")
    assert {each.location.headings for each in chunks} == {("Ports", "Cranes")}


def test_the_heading_path_is_outermost_first_and_closed_by_level() -> None:
    big = PARAGRAPH * 6
    chunks = chunk(markdown(f"# A\n\n{big}\n\n### C\n\n{big}\n\n## B\n\n{big}\n\n# D\n\n{big}"))
    assert [each.location.headings for each in chunks] == [("A",), ("A", "C"), ("A", "B"), ("D",)]


def test_a_long_section_is_cut_evenly_at_paragraphs_or_sentences_with_overlap() -> None:
    text = "\n\n".join([PARAGRAPH] * 40)
    chunks = chunk(ParsedDocument(text=text))
    sizes = [each.size_tokens for each in chunks]
    assert min(sizes) > OPTIONS.chunk_size * 0.5
    for before, after in itertools.pairwise(chunks):
        shared = len(TOKENIZER.spans(text[after.location.start_char : before.location.end_char]))
        assert 0 < shared <= OPTIONS.overlap
        assert after.text[0].isupper()
        assert before.text.endswith(".")


def test_without_overlap_every_word_is_in_one_chunk() -> None:
    text = PARAGRAPH * 40
    chunks = chunk(ParsedDocument(text=text), ChunkingOptions(overlap=0))
    assert sum(each.size_tokens for each in chunks) == len(TOKENIZER.spans(text))


def test_one_sentence_without_end_is_cut_between_words() -> None:
    text = "unending " * 900
    chunks = chunk(ParsedDocument(text=text))
    assert all(set(each.text.split()) == {"unending"} for each in chunks)


def test_characters_as_unit() -> None:
    options = ChunkingOptions(chunk_size=300, overlap=40, unit="characters")
    chunks = chunk(ParsedDocument(text=PARAGRAPH * 20), options)
    assert max(len(each.text) for each in chunks) <= 300
    check_invariants(PARAGRAPH * 20, chunks, options)


def test_equal_passages_have_ids_of_their_own_and_versions_share_ids() -> None:
    big = f"## Same\n\n{PARAGRAPH * 6}"
    first = chunk(markdown(f"{big}\n\n{big}\n\n{big}"))
    assert len({each.content_hash for each in first}) == 1
    assert len({each.id for each in first}) == 3
    second = chunk(markdown(f"## New\n\n{PARAGRAPH * 7}\n\n{big}\n\n{big}\n\n{big}"), version=2)
    assert [each.id for each in second[1:]] == [each.id for each in first]
    other = chunks_of(TenantId("t_" + "2" * 32), "document-1", 1, markdown(big), OPTIONS, tokenizer=TOKENIZER)
    assert other[0].id != first[0].id


def test_passage_text_says_title_and_headings_once() -> None:
    chunks = chunk(markdown("# Ports\n\n## Cranes\n\n" + "\n\n".join([PARAGRAPH] * 15)))
    first, later = chunks[0], chunks[1]
    assert passage_text("Ports", first) == first.text
    assert passage_text("Ports", later) == f"Ports\nCranes\n{later.text}"
    assert passage_text("The sea", later) == f"The sea\nPorts\nCranes\n{later.text}"
    assert passage_text("", chunk(ParsedDocument(text=PARAGRAPH))[0]) == PARAGRAPH


def test_time_is_linear() -> None:
    def seconds(text: str) -> float:
        return cpu_s(lambda: chunk(ParsedDocument(text=text)), runs=2)

    for unit in (PARAGRAPH + "\n\n", "word ", "x", " \n \n\t ", "a" + " " * 50):
        text = "a" + unit * (40_000 // len(unit)) + "b"
        assert seconds(text * 4) < 16 * seconds(text) + 0.1


def test_options_outside_their_limits_are_refused() -> None:
    for options, message in [
        (ChunkingOptions(strategy="magic"), "magic.*recursive"),
        (ChunkingOptions(unit="lines"), "lines.*tokens, characters"),
        (ChunkingOptions(chunk_size=15), "16 to 2048 tokens; it is 15"),
        (ChunkingOptions(chunk_size=20000, unit="characters"), "64 to 16384 characters; it is 20000"),
        (ChunkingOptions(overlap=-1), "0 to 110"),
        (ChunkingOptions(overlap=111), "it is 111"),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            check_options(options)


def test_every_layer_names_the_same_strategies() -> None:
    assert KNOWN == CHUNKING_STRATEGIES == get_args(Strategy)


def test_known_strategies() -> None:
    check_options(OPTIONS)
    assert list(chunker_of("recursive", TOKENIZER)(ParsedDocument(text="text"), OPTIONS))
    with pytest.raises(InvalidRequest, match="known are recursive"):
        chunker_of("magic", TOKENIZER)
