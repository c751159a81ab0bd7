"""Units: the smallest parts of a text that semantic chunking puts together: sentences, rows of tables, items of lists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.cutting import Cutter
from agentic_rag_backend.documents.chunking.sections import sections_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

MAX_UNITS = 20_000
"""Sentences and rows of a document from which a model or the encoder finds boundaries. Longer documents are cut otherwise."""


def units_of(parsed: ParsedDocument, options: ChunkingOptions, tokenizer: WordPieceTokenizer) -> Iterator[Piece]:
    """Yield the units of a text in order. Only white space is between them.

    A heading belongs to the sentence after it, and the header of a table to its first row. A sentence that is longer than
    ``chunk_size`` stays whole; a row is cut then.
    """
    cutter = Cutter.from_parsed_text(parsed, options, tokenizer)
    for section in sections_of(parsed.text, parsed.headings):
        for start, end in _split_units(cutter, section.start, section.end):
            if cutter.headers.is_inside(start) and not cutter.fits_chunk(start, end):
                yield from (cutter.make_piece(*part, section.path) for part in cutter.cut_span(start, end))
            else:
                yield cutter.make_piece(start, end, section.path)


def _split_units(cutter: Cutter, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the trimmed units of a section. The first one includes the heading."""
    places = _find_unit_ends(cutter, start, end)
    at = cutter.trim_span(start, end)[0]
    for number, unit_end in enumerate(places):
        begin, finish = cutter.trim_span(at, unit_end)
        # The first unit is the heading, which does not stand alone.
        if begin < finish and not (number == 0 and len(places) > 1 and _is_heading(cutter.text, begin, finish)):
            yield begin, finish
            at = unit_end


def _is_heading(text: str, start: int, end: int) -> bool:
    return "\n" not in text[start:end] and text[end - 1] not in ".!?…:"


def _find_unit_ends(cutter: Cutter, start: int, end: int) -> list[int]:
    """Return where units end: at the ends of sentences outside of tables, and between their rows."""
    if cutter.code:
        return [position for position in range(start + 1, end) if cutter.text[position - 1] == "\n"] + [end]
    ends = [start + sentence.end for sentence in split_sentences(cutter.text[start:end])]
    plain = [position for position in ends[:-1] if cutter.headers.is_whole(position)]
    rows = cutter.headers.list_cuts(start + 1, end)
    merged = sorted({*plain, *rows, end})
    return merged[bisect_left(merged, start + 1) :]
