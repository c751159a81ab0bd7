"""Joins units, which are sentences and rows, into chunks of a limited size. Units are never cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.cutting import CHARACTERS_PER_TOKEN, LEAST_FILL
from agentic_rag_backend.documents.chunking.sections import shared_path
from agentic_rag_backend.domain.document import ChunkingOptions

Gaps = NDArray[np.float64]
"""How well the text divides at each gap between neighbouring units, shape (units - 1,). Larger is better."""


def fit_starts(starts: Collection[int], gaps: Gaps, units: Sequence[Piece], options: ChunkingOptions) -> list[int]:
    """Return the first units of chunks: ``starts``, the first unit, and a cut wherever a chunk would be too large.

    Such a cut is at the largest gap among those that leave the chunk well filled.
    """
    starts_found = [0]
    for unit in range(1, len(units)):
        if unit in starts:
            starts_found.append(unit)
        while not fits_chunk(units, starts_found[-1], unit, options):
            starts_found.append(_find_widest_gap(gaps, units, starts_found[-1], unit, options))
    return starts_found if units else []


def pieces_of(starts: Sequence[int], units: Sequence[Piece], options: ChunkingOptions) -> Iterator[Piece]:
    """Yield the chunks that begin at these units, each with whole units of the one before as overlap."""
    before = 0
    for start, end in pairwise([*starts, len(units)]):
        begin = start
        while begin - 1 > before and measure_units(units, begin - 1, start - 1, options) <= options.overlap:
            if not fits_chunk(units, begin - 1, end - 1, options):
                break
            begin -= 1
        yield _make_piece(units[begin:end])
        before = start


def fits_chunk(units: Sequence[Piece], start: int, end: int, options: ChunkingOptions) -> bool:
    """Return whether the units from ``start`` to ``end`` fit in a chunk. A single unit always does."""
    if start == end:
        return True
    limit = CHARACTERS_PER_TOKEN * options.chunk_size
    return measure_units(units, start, end, options) <= options.chunk_size and units[end].end - units[start].start <= limit


def measure_units(units: Sequence[Piece], start: int, end: int, options: ChunkingOptions) -> int:
    """Return the size of the units from ``start`` to ``end``, in the unit of the options."""
    if options.unit == "characters":
        return units[end].end - units[start].start
    return sum(unit.size_tokens for unit in units[start : end + 1])


def _find_widest_gap(gaps: Gaps, units: Sequence[Piece], start: int, unit: int, options: ChunkingOptions) -> int:
    """Return the unit before which a chunk from ``start`` is cut, because it is full with ``unit``."""
    least = unit
    while least > start + 1 and measure_units(units, start, least - 2, options) >= LEAST_FILL * options.chunk_size:
        least -= 1
    return least + int(np.argmax(gaps[least - 1 : unit]))


def _make_piece(units: Sequence[Piece]) -> Piece:
    path = units[0].headings
    for unit in units[1:]:
        path = shared_path(path, unit.headings)
    return Piece(units[0].start, units[-1].end, sum(unit.size_tokens for unit in units), path, units[0].header)
