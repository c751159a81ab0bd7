"""Agentic chunking: a language model chooses the sentences at which passages begin. The model moves boundaries, never text.

The document is read in windows of numbered sentences and rows. A reply that is not a list of ascending numbers of the window is
refused, and this window is divided by size, between its sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.joining import fit_starts, fits_chunk, pieces_of
from agentic_rag_backend.documents.chunking.sentence_windows import WINDOW_UNITS, SentenceWindow, gaps_of, number_sentences
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.llm.base import INTEGER, list_of, object_of
from agentic_rag_backend.prompts import built_in
from agentic_rag_backend.prompts.inquiry import Inquiry

_STARTS = "starts"
_REPLY_TOKENS = 4 * WINDOW_UNITS
_SCHEMA = object_of({_STARTS: list_of(INTEGER, WINDOW_UNITS)})


def make_inquiry(text: str, units: Sequence[Piece], window: SentenceWindow) -> Inquiry:
    """Return the request for the boundaries in a window."""
    return Inquiry(
        prompt=built_in("chunk_boundaries"),
        values={"sentences": number_sentences(text, units, window)},
        schema=_SCHEMA,
        max_tokens=_REPLY_TOKENS,
        accepts=lambda reply: _is_ascending(reply.get(_STARTS), window.count),
    )


def cut_pieces(
    text: str,
    units: Sequence[Piece],
    advice: Sequence[tuple[SentenceWindow, Mapping[str, Any] | None]],
    options: ChunkingOptions,
) -> Iterator[Piece]:
    """Yield the chunks. ``advice`` has each window's accepted reply; None: the window is divided by size.

    A passage of the model that is larger than a chunk is divided by size too. The end of a window is only a boundary if the model
    or the size says so, or if a section ends there.
    """
    gaps = gaps_of(text, units)
    starts = {window.first + number - 1 for window, reply in advice if reply is not None for number in reply[_STARTS]}
    starts |= {window.first for window, _ in advice}
    edges = {window.first for window, _ in advice if window.first and gaps[window.first - 1] < 1}
    yield from pieces_of(_without_edges(fit_starts(starts, gaps, units, options), edges, units, options), units, options)


def _is_ascending(numbers: Any, count: int) -> bool:
    """Return whether ``numbers`` is an ascending list of different numbers from 1 to ``count``."""
    if not isinstance(numbers, list) or any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        return False
    return all(1 <= number <= count for number in numbers) and all(a < b for a, b in pairwise(numbers))


def _without_edges(starts: list[int], edges: set[int], units: Sequence[Piece], options: ChunkingOptions) -> list[int]:
    """Return the starts without the edges of windows inside a paragraph at which two chunks fit in one."""
    inner: list[int] = []
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(units)
        if start not in edges or not inner or not fits_chunk(units, inner[-1], end - 1, options):
            inner.append(start)
    return inner
