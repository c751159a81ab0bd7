"""Fixed chunking: windows of one size, each overlapping the one before, cut between words."""

from __future__ import annotations

from collections.abc import Iterator

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.cutting import WindowCutter
from agentic_rag_backend.documents.chunking.sections import sections_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer


class FixedChunker:
    """Cuts without regard to headings and sentences. A piece has the headings above its beginning."""

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, parsed: ParsedDocument, options: ChunkingOptions) -> Iterator[Piece]:
        """Cut the text into windows of at most ``options.chunk_size`` units."""
        cutter = WindowCutter.from_parsed_text(parsed, options, self._tokenizer)
        sections = sections_of(parsed.text, parsed.headings)
        section = next(sections)
        for start, end in cutter.cut_span(0, len(parsed.text)):
            while section.end <= start:
                section = next(sections)
            yield cutter.make_piece(start, end, section.path)
