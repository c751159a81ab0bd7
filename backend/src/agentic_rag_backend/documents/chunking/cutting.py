"""Cuts a span of text into passages of a limited size, at the best boundaries near their ends.

Tables and lists are cut between their rows and items, source code between its lines. Fenced code is cut only if it is larger than
a chunk. Every step looks at one window of the text, so time is linear in its length.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.fences import fenced_code
from agentic_rag_backend.documents.chunking.measure import Measure
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.language.entries.base import Block
from agentic_rag_backend.language.entries.reading import Headers, blocks_of, join_blocks
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

LEAST_FILL = 0.6
"""A boundary is only taken if the chunk is at least this share of its ideal size."""
CHARACTERS_PER_TOKEN = 16
"""Chunks counted in word pieces hold at most this many characters for each: a run of spaces has none."""

Places = Callable[[str], list[int]]
"""Returns the places where a window of text may be cut."""

_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_LINE = re.compile(r"\n\s*")
_WORD = re.compile(r"\s+")
_NO_SPACE = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts spans of one text.

    Args:
        headers: its tables, lists and fenced code.
        fences: its fenced code by start.
        code: it is source code, which has lines instead of sentences.
    """

    text: str
    measure: Measure
    options: ChunkingOptions
    headers: Headers
    fences: Sequence[Block] = ()
    code: bool = False

    overlaps_at_sentences: ClassVar[bool] = True

    @classmethod
    def from_parsed_text(cls, parsed: ParsedDocument, options: ChunkingOptions, tokenizer: WordPieceTokenizer) -> Cutter:
        """Return the cutter of a document's text."""
        code = parsed.language is not None
        fences = () if code else tuple(fenced_code(parsed.text))
        headers = Headers(parsed.text, [] if code else join_blocks(fences, blocks_of(parsed.text)))
        return cls(parsed.text, Measure(parsed.text, tokenizer, unit=options.unit), options, headers, fences, code)

    def make_piece(self, start: int, end: int, headings: tuple[str, ...] = ()) -> Piece:
        """Return the passage [start, end) with its size and the header above it."""
        return Piece(start, end, self.measure.count_tokens(start, end), headings, self.headers.header_at(start))

    def cut_span(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield trimmed passages of [start, end), each overlapping the one before."""
        start, end = self.trim_span(start, end)
        covered = start
        while start < end:
            if self.fits_chunk(start, end):
                yield start, end
                return
            cut = self._before_fence(self._find_boundary(start, end, covered), covered)
            yield self.trim_span(start, cut)
            covered = self.trim_span(cut, end)[0]
            start = self._find_overlap(start, cut, covered)
            if self._find_limit(start) <= covered:  # a run of spaces too long to be in one chunk
                start = covered

    def _before_fence(self, position: int, covered: int) -> int:
        """Return the beginning of the fenced code around ``position``, if it fits a chunk and begins behind ``covered``."""
        index = bisect_left(self.fences, position, key=lambda fence: fence.start) - 1
        fence = self.fences[index] if index >= 0 else None
        inside = fence is not None and covered < fence.start and position < fence.end
        return fence.start if fence is not None and inside and self.fits_chunk(fence.start, fence.end) else position

    def fits_chunk(self, start: int, end: int) -> bool:
        """Return whether [start, end) is not larger than a chunk may be."""
        return end <= self._find_limit(start)

    def trim_span(self, start: int, end: int) -> tuple[int, int]:
        """Return [start, end) without white space at its ends."""
        opening = _NO_SPACE.search(self.text, start, end)
        if opening is None:
            return end, end
        while self.text[end - 1].isspace():
            end -= 1
        return opening.start(), end

    def _find_limit(self, start: int) -> int:
        """Return the largest end that a chunk from ``start`` may have."""
        return min(self.measure.find_end(start, self.options.chunk_size), start + CHARACTERS_PER_TOKEN * self.options.chunk_size)

    def _find_boundary(self, start: int, end: int, covered: int) -> int:
        """Return where the chunk from ``start`` ends: behind ``covered``, at the best kind of boundary near its ideal end."""
        limit = self._find_limit(start)
        size, overlap = self.options.chunk_size, self.options.overlap
        remaining = self.measure.measure_span(start, end)
        count = max(2, -(-(remaining - overlap) // (size - overlap)))
        ideal = min(size, overlap + -(-(remaining - overlap) // count))
        middle = min(limit, self.measure.find_end(start, ideal))
        least = max(covered + 1, min(middle, self.measure.find_end(start, int(LEAST_FILL * ideal))))
        window = self.text[start:limit]
        rows = self.headers.list_cuts(covered + 1, limit + 1)
        parts = _find_line_ends if self.code else _find_sentence_ends
        for places in (_find_paragraph_ends(window), [*parts(window), *(row - start for row in rows)], _find_word_ends(window)):
            candidates = [
                start + offset for offset in places if least <= start + offset <= limit and self.headers.is_whole(start + offset)
            ]
            if candidates:
                return min(candidates, key=lambda position: (abs(position - middle), -position))
        # A short chunk is better than a row without its first cells, which is better than a part of a word.
        words = [start + offset for offset in _find_word_ends(window) if least <= start + offset <= limit]
        return (
            rows[-1]
            if rows
            else min(words, key=lambda position: (abs(position - middle), -position), default=max(limit, start + 1))
        )

    def _find_overlap(self, start: int, cut: int, covered: int) -> int:
        """Return where the next chunk begins: at the earliest sentence, else word, within the overlap before ``cut``."""
        earliest = max(
            self.measure.find_start(cut, self.options.overlap), cut - CHARACTERS_PER_TOKEN * self.options.overlap, start + 1
        )
        if self.options.overlap == 0 or earliest >= cut:
            return covered
        # The character before tells whether the overlap would begin inside a word or sentence.
        window = self.text[earliest - 1 : cut]
        for begin in (earliest - 1 + offset for places in self._list_beginnings() for offset in places(window)[:1]):
            begin = self.trim_span(begin, cut)[0]
            if begin < cut and not self.headers.is_inside(begin):
                return begin
        return covered

    def _list_beginnings(self) -> tuple[Places, ...]:
        """Return the kinds of places at which an overlap may begin, best first."""
        if self.code:
            return (_find_line_ends,)
        return (_find_sentence_ends, _find_word_ends) if self.overlaps_at_sentences else (_find_word_ends,)


@dataclass(frozen=True, slots=True)
class WindowCutter(Cutter):
    """Cuts windows that are as large as allowed, between words."""

    overlaps_at_sentences: ClassVar[bool] = False

    def _find_boundary(self, start: int, end: int, covered: int) -> int:
        """Return the last word's beginning within the limit; between rows, if the window has enough of them."""
        limit = self._find_limit(start)
        window = self.text[start : limit + 1]
        least = max(covered + 1, self.measure.find_end(start, int(LEAST_FILL * self.options.chunk_size)))
        words = [start + offset for offset in _find_word_ends(window) if covered < start + offset <= limit]
        row_starts = [position for position in reversed(words) if position >= least and self.headers.is_whole(position)][:1]
        lines = (
            [start + offset for offset in reversed(_find_line_ends(window)) if least <= start + offset <= limit][:1]
            if self.code
            else []
        )
        return next(iter([*lines, *row_starts, *words[-1:]]), max(limit, start + 1))


def _find_paragraph_ends(window: str) -> list[int]:
    return [gap.end() for gap in _PARAGRAPH.finditer(window)]


def _find_line_ends(window: str) -> list[int]:
    return [gap.end() for gap in _LINE.finditer(window)]


def _find_sentence_ends(window: str) -> list[int]:
    return [sentence.end for sentence in split_sentences(window)[:-1]]


def _find_word_ends(window: str) -> list[int]:
    return [gap.end() for gap in _WORD.finditer(window)]
