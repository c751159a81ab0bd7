"""Chunking of source code by its syntax: a function or a class is a chunk, with the path of the names around it.

A class that is too long is cut between its methods, and a function that is too long between its lines. Small neighbours in one
class or module share a chunk. ``header`` of a chunk has the imports whose names it uses. A text that is not code is cut by
`recursive`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.cutting import Cutter
from agentic_rag_backend.documents.chunking.functions import definitions_of
from agentic_rag_backend.documents.chunking.sections import Section, join_tiny_sections, shared_path
from agentic_rag_backend.documents.chunking.strategies.recursive import RecursiveChunker, is_tiny
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

if TYPE_CHECKING:
    from agentic_rag_backend.documents.parsing.code.definitions import Definition

MAX_IMPORTS = 8
"""Imports in the header of a chunk."""
MAX_IMPORT_CHARACTERS = 200
_NAME = re.compile(r"\w+")
_KEYWORDS = frozenset(
    [
        "import",
        "from",
        "as",
        "using",
        "use",
        "include",
        "require",
        "require_relative",
        "package",
        "static",
        "const",
        "let",
        "var",
        "type",
        "h",
    ]
)


class AstChunker:
    """See the module; safe to use from several threads."""

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, parsed: ParsedDocument, options: ChunkingOptions) -> Iterator[Piece]:
        """Cut the text into pieces of at most ``options.chunk_size`` units."""
        definitions = definitions_of(parsed)
        if not definitions:
            yield from RecursiveChunker(self._tokenizer)(parsed, options)
            return
        cutter = Cutter.from_parsed_text(parsed, options, self._tokenizer)
        imports = _Imports(parsed.text, definitions)

        def join_sections(before: Section, after: Section, small: Section) -> Section | None:
            if not is_tiny(cutter, small) or not cutter.fits_chunk(before.start, after.end):
                return None
            inside = after.path[: len(before.path)] == before.path and not before.mixed
            if not inside and before.parent != after.parent and after.path != before.parent:
                return None
            path = shared_path(before.path, after.path)
            return Section(before.start, after.end, path, mixed=before.path != after.path)

        for section in join_tiny_sections(_split_sections(cutter, definitions), join_sections):
            for start, end in cutter.cut_span(section.start, section.end):
                yield replace(cutter.make_piece(start, end, section.path), header=imports.list_used_imports(start, end))


def _split_sections(cutter: Cutter, definitions: Sequence[Definition]) -> Iterator[Section]:
    """Yield the parts of the text: definitions that fit, and the text between the definitions inside of longer ones."""
    around: list[Definition] = []
    at = whole_until = 0
    for definition in definitions:
        if definition.kind == "import" or definition.start_char < whole_until:
            continue
        while around and around[-1].end_char <= definition.start_char:
            yield from _yield_part(cutter, at, around[-1].end_char, around[-1].path)
            at = max(at, around.pop().end_char)
        yield from _yield_part(cutter, at, definition.start_char, around[-1].path if around else ())
        at = max(at, definition.start_char)
        around.append(definition)
        if cutter.fits_chunk(*cutter.trim_span(definition.start_char, definition.end_char)):
            whole_until = definition.end_char
    for definition in reversed(around):
        yield from _yield_part(cutter, at, definition.end_char, definition.path)
        at = max(at, definition.end_char)
    yield from _yield_part(cutter, at, len(cutter.text), ())


def _yield_part(cutter: Cutter, start: int, end: int, path: tuple[str, ...]) -> Iterator[Section]:
    if start < end and cutter.text[start:end].strip():
        yield Section(start, end, path)


class _Imports:
    """The import lines of a text, by the names that they bind."""

    def __init__(self, text: str, definitions: Sequence[Definition]) -> None:
        self._text = text
        self._lines: list[tuple[int, str, frozenset[str]]] = []
        for definition in definitions:
            line = " ".join(text[definition.start_char : definition.end_char].split())
            if definition.kind == "import" and len(line) <= MAX_IMPORT_CHARACTERS:
                bound = frozenset(_NAME.findall(line.rpartition(" import ")[2])) - _KEYWORDS
                self._lines.append((definition.start_char, line, bound))

    def list_used_imports(self, start: int, end: int) -> str:
        """Return the imports above [start, end) that it uses, a line each."""
        used = frozenset(_NAME.findall(self._text[start:end]))
        lines = [line for position, line, names in self._lines if position < start and names & used]
        return "\n".join(lines[:MAX_IMPORTS])
