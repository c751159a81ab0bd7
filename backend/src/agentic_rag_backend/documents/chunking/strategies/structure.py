"""Chunking by structure: a section below a heading, a page, a slide or a sheet is a chunk.

Small neighbours below the same heading share a chunk. A section that is too long is cut as `recursive` cuts it.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.cutting import Cutter
from agentic_rag_backend.documents.chunking.sections import Section, join_tiny_sections, paged_sections, shared_path
from agentic_rag_backend.documents.chunking.strategies.recursive import is_tiny
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer


class StructureChunker:
    """See the module; safe to use from several threads."""

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, parsed: ParsedDocument, options: ChunkingOptions) -> Iterator[Piece]:
        """Cut the text into pieces of at most ``options.chunk_size`` units."""
        cutter = Cutter.from_parsed_text(parsed, options, self._tokenizer)

        def join_sections(before: Section, after: Section, small: Section) -> Section | None:
            if not is_tiny(cutter, small) or not cutter.fits_chunk(before.start, after.end):
                return None
            if not before.mixed and len(after.path) > len(before.path) and after.path[: len(before.path)] == before.path:
                # The few words above the first subsection, often its parent's bare heading, are no passage by themselves.
                return Section(before.start, after.end, after.path)
            if before.parent != after.parent:
                return None
            return Section(before.start, after.end, shared_path(before.path, after.path), mixed=before.path != after.path)

        for section in join_tiny_sections(paged_sections(parsed), join_sections):
            for start, end in cutter.cut_span(section.start, section.end):
                yield cutter.make_piece(start, end, section.path)
