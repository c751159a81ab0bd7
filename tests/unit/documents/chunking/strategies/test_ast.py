"""Chunks of source code."""

from __future__ import annotations

import itertools
import re
import textwrap
from pathlib import Path

import pytest

import agentic_rag_backend
from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.functions import MAX_NAME_CHARACTERS
from agentic_rag_backend.documents.chunking.passages import chunks_of
from agentic_rag_backend.documents.chunking.strategies.ast import AstChunker
from agentic_rag_backend.documents.chunking.strategies.recursive import RecursiveChunker
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.code.code_parser import CodeParser
from agentic_rag_backend.domain.document import Chunk, ChunkingOptions
from agentic_rag_backend.domain.location import MAX_FUNCTIONS
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer()
TENANT = TenantId("t_" + "1" * 32)
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
    pytest.importorskip("agentic_rag_backend.documents.parsing.code.definitions", reason="no syntax trees in this build")
    pieces = chunked(CODE, 70)
    check_coverage(CODE, pieces, 70)
    methods = [piece for piece in pieces if piece.headings[:1] == ("Crane",) and "def method" in CODE[piece.start : piece.end]]
    assert len(methods) >= 3
    assert all(CODE[piece.start : piece.end].startswith(("def method", "class Crane")) for piece in methods)
    assert {piece.header for piece in methods} == {"import os"}
    assert pieces[-1].headings == ("lift",)
    assert pieces[-1].header == "import re"


def test_every_module_of_this_package_is_covered_in_order_and_within_the_size() -> None:
    pytest.importorskip("agentic_rag_backend.documents.parsing.code.definitions", reason="no syntax trees in this build")
    files = sorted(Path(agentic_rag_backend.__file__).parent.rglob("*.py"))
    for path in files[::12]:
        text = path.read_text(encoding="utf-8")
        for size in (60, 500):
            check_coverage(text, chunked(text, size), size)


SMALL = "".join(f"def lift_{number}(weight):\n    return weight + {number}\n\n\n" for number in range(9))


def chunks_of_code(text: str, strategy: str, size: int) -> list[Chunk]:
    pytest.importorskip("agentic_rag_backend.documents.parsing.code.definitions", reason="no syntax trees in this build")
    parsed = CodeParser("python").parse(text)
    return chunks_of(TENANT, "d", 1, parsed, ChunkingOptions(strategy, size, 0), tokenizer=TOKENIZER)


@pytest.mark.parametrize("strategy", ["ast", "recursive", "fixed"])
def test_a_chunk_names_every_function_that_it_has_a_part_of(strategy: str) -> None:
    chunks = chunks_of_code(SMALL, strategy, 60)
    assert len(chunks) > 1
    assert max(len(chunk.location.functions) for chunk in chunks) > 1
    for chunk in chunks:
        defined = re.findall(r"def (\w+)", chunk.text)
        assert defined
        assert list(chunk.location.functions)[-len(defined) :] == defined
        assert len(chunk.location.functions) <= len(defined) + 1  # the end of the function before may be in it, too


def test_methods_have_the_name_of_their_class_and_parts_of_a_function_its_name() -> None:
    names = [chunk.location.functions for chunk in chunks_of_code(CODE, "ast", 70)]
    methods = [f"Crane.method_{number}" for number in range(6)]
    assert [name for each in names for name in each] == ["Crane", *methods, "lift"]
    long = "def haul():\n" + "".join(f"    rope.pull({number})\n" for number in range(60))
    parts = chunks_of_code(f"class Winch:\n    size = 3\n\n{textwrap.indent(long, '    ')}", "ast", 80)
    assert len(parts) > 3
    assert {each.location.functions for each in parts[1:]} == {("Winch.haul",)}
    assert parts[0].location.functions[0] == "Winch"


def test_texts_that_are_no_code_have_no_functions() -> None:
    parsed = ParsedDocument(text="def lift is a word. " * 50)
    chunks = chunks_of(TENANT, "d", 1, parsed, ChunkingOptions("ast", 60, 0), tokenizer=TOKENIZER)
    assert {chunk.location.functions for chunk in chunks} == {()}


def test_many_functions_and_long_names_are_cut_at_the_limits() -> None:
    many = "".join(f"def f{number}(): 1\n" for number in range(300))
    assert {len(chunk.location.functions) for chunk in chunks_of_code(many, "ast", 2048)[:1]} == {MAX_FUNCTIONS}
    nested = "".join(f"{'  ' * level}def {'f' * 60}{level}():\n" for level in range(9)) + "  " * 9 + "pass\n"
    names = chunks_of_code(nested, "ast", 500)[0].location.functions
    assert len(names) == 9
    assert max(map(len, names)) == MAX_NAME_CHARACTERS
