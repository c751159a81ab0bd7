"""Chunks of fenced code."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.documents.chunking.fences import fenced_code
from agentic_rag_backend.documents.chunking.passages import chunks_of
from agentic_rag_backend.documents.parsing.markdown import MarkdownParser
from agentic_rag_backend.domain.document import Chunk, ChunkingOptions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TENANT = TenantId("t_" + "1" * 32)
TOKENIZER = WordPieceTokenizer()
PROSE = "The tide turns twice a day and the boats follow it home. " * 6


def code(lines: int) -> str:
    return "```python\n" + "".join(f"depth_{number} = measure(boat, at={number})\n\n" for number in range(lines)) + "```"


def chunked(text: str, *, size: int = 220) -> list[Chunk]:
    parsed = MarkdownParser().parse(text)
    return chunks_of(TENANT, "d", 1, parsed, ChunkingOptions(chunk_size=size, overlap=20), tokenizer=TOKENIZER)


def test_code_that_fits_a_chunk_is_whole() -> None:
    for before in range(1, 9):
        text = f"# Tides\n\n{PROSE * before}\n\n{code(8)}\n\n{PROSE * 3}"
        assert any(code(8) in each.text for each in chunked(text)), before


def test_longer_code_is_cut_between_lines() -> None:
    chunks = chunked(f"{PROSE}\n\n{code(60)}\n\n{PROSE}")
    inside = [each.text for each in chunks if "depth_" in each.text]
    assert len(inside) > 3
    for text in inside:
        assert text.rstrip("`\n").endswith((")", "python")) or text.endswith("home.")
        assert text.startswith(("depth_", "```python", "The tide"))
    assert "".join("".join(each.text.split()) for each in chunked(code(60))) == "".join(code(60).split())


def test_what_is_fenced() -> None:
    def found(text: str) -> list[str]:
        return [text[each.start : each.end] for each in fenced_code(text)]

    assert found("a\n```\nb\n```\nc") == ["```\nb\n```"]
    assert found("~~~~ sh\nb\n~~~\nc\n~~~~~\nd") == ["~~~~ sh\nb\n~~~\nc\n~~~~~"]
    assert found("```\nnever closed") == found("``` inline ``` code\n```x`\n") == found("    ```\nx\n    ```") == []
    assert found("```\n```\n\n```\n\n\nb\n\n```") == ["```\n```", "```\n\n\nb\n\n```"]


@given(st.text(alphabet="`~ab |-\n", max_size=200))
def test_blocks_are_apart_and_cut_at_lines(text: str) -> None:
    end = -1
    for each in fenced_code(text):
        assert end < each.start < each.end <= len(text)
        assert list(each.cuts) == sorted(each.cuts)
        assert all(each.start < cut < each.end and text[cut - 1] == "\n" for cut in each.cuts)
        end = each.end
