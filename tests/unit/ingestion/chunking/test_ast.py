"""Chunks of source code."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import agentic_rag_backend
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.ingestion.chunking.ast import AstChunker
from agentic_rag_backend.ingestion.chunking.base import Piece
from agentic_rag_backend.ingestion.chunking.recursive import RecursiveChunker
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer()
METHOD = '''    def method_{0}(self) -> str:
        """Return the name of the crane."""
        return os.path.join("harbour", "crane {0}", self.name)

'''
CODE = f'''"""Cranes of the harbour."""

import os
import re


class Crane:
    """A crane that unloads ships."""

{"".join(METHOD.format(number) for number in range(6))}

def lift(weight: int) -> bool:
    return re.match("a", str(weight)) is not None
'''


def chunked(text: str, size: int, language: str | None = "python") -> list[Piece]:
    parsed = ParsedDocument(text=text, language=language)
    return list(AstChunker(TOKENIZER)(parsed, ChunkingOptions("ast", size, 0)))


def check_coverage(text: str, pieces: list[Piece], size: int) -> None:
    covered = bytearray(len(text))
    for piece in pieces:
        assert piece.size_tokens <= size
        covered[piece.start : piece.end] = b"x" * (piece.end - piece.start)
    assert not [character for place, character in enumerate(text) if not covered[place] and not character.isspace()]
    assert all(before.end <= after.start for before, after in itertools.pairwise(pieces))


def test_a_text_that_is_no_code_is_cut_by_recursive() -> None:
    parsed = ParsedDocument(text="Ships and cranes. " * 200)
    options = ChunkingOptions("ast", 60, 0)
    assert list(AstChunker(TOKENIZER)(parsed, options)) == list(RecursiveChunker(TOKENIZER)(parsed, options))


def test_a_long_class_is_cut_between_its_methods_with_their_path_and_imports() -> None:
    pytest.importorskip("agentic_rag_backend.ingestion.parsing.code.definitions", reason="no syntax trees in this build")
    pieces = chunked(CODE, 70)
    check_coverage(CODE, pieces, 70)
    methods = [piece for piece in pieces if piece.headings[:1] == ("Crane",) and "def method" in CODE[piece.start : piece.end]]
    assert len(methods) >= 3
    assert all(CODE[piece.start : piece.end].startswith(("def method", "class Crane")) for piece in methods)
    assert {piece.header for piece in methods} == {"import os"}
    assert pieces[-1].headings == ("lift",)
    assert pieces[-1].header == "import re"


def test_every_module_of_this_package_is_covered_in_order_and_within_the_size() -> None:
    pytest.importorskip("agentic_rag_backend.ingestion.parsing.code.definitions", reason="no syntax trees in this build")
    files = sorted(Path(agentic_rag_backend.__file__).parent.rglob("*.py"))
    for path in files[::12]:
        text = path.read_text(encoding="utf-8")
        for size in (60, 500):
            check_coverage(text, chunked(text, size), size)
