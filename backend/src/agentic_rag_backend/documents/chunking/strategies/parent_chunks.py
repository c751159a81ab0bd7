"""Parent–child chunking: small chunks are found, and the parent around them is read.

A parent is a passage as `recursive` cuts it, of at most ``parent_size`` and without overlap. Its chunks, the children, are cut
from it in the same way. Only children are embedded. Each has the place of its parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.cutting import Cutter
from agentic_rag_backend.documents.chunking.strategies.recursive import passages_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer


class ParentChildChunker:
    """See the module; safe to use from several threads."""

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, parsed: ParsedDocument, options: ChunkingOptions) -> Iterator[Piece]:
        """Cut the text into pieces of at most ``options.chunk_size`` units, in parents of at most ``options.parent_size``."""
        cutter = Cutter.from_parsed_text(parsed, options, self._tokenizer)
        parents = replace(cutter, options=replace(options, chunk_size=options.parent_size, overlap=0))
        for start, end, path in passages_of(parents, parsed):
            for piece in cutter.cut_span(start, end):
                yield replace(cutter.make_piece(*piece, path), parent=(start, end))
