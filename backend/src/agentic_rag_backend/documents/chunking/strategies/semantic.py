"""Semantic chunking: cut where the meaning of neighbouring sentences differs most.

The distance at a gap is one minus the cosine similarity of the sentences before and after it, two on each side, as in TextTiling
(Hearst 1997) with embeddings. A gap whose distance is above a percentile of all gaps is a breakpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.joining import fit_starts, fits_chunk, measure_units
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.embedding.base import Vectors

SENTENCES_PER_SIDE = 2
SMALL_SHARE = 0.25
"""A chunk smaller than this share of the chunk size is joined with the neighbour that is nearer in meaning."""


def measure_distances(vectors: Vectors) -> NDArray[np.float64]:
    """Return the distance at each gap between neighbouring units, shape (units - 1,), rounded so that ties are ties."""
    count = len(vectors)
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors, axis=0, dtype=np.float64)])
    gaps = np.arange(1, count)
    before = sums[gaps] - sums[np.maximum(gaps - SENTENCES_PER_SIDE, 0)]
    after = sums[np.minimum(gaps + SENTENCES_PER_SIDE, count)] - sums[gaps]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    gap_distances: NDArray[np.float64] = 1 - np.einsum("ij,ij->i", before, after) / np.maximum(lengths, 1e-12)
    return gap_distances.round(4)


def find_breakpoints(vectors: Vectors, units: Sequence[Piece], options: ChunkingOptions) -> list[int]:
    """Return the indexes of the units that begin a chunk, the first one included. A pure function of its arguments."""
    if len(units) < 2:
        return [0] if units else []
    gaps = measure_distances(vectors)
    limit = float(np.percentile(gaps, options.percentile))
    above = {unit for unit in range(1, len(units)) if gaps[unit - 1] > limit}
    return _join_small_chunks(fit_starts(above, gaps, units, options), gaps, units, options)


def _join_small_chunks(
    starts: list[int], gaps: NDArray[np.float64], units: Sequence[Piece], options: ChunkingOptions
) -> list[int]:
    """Return the starts without those of chunks that are too small, if a neighbour has room for them."""
    joined_starts = [starts[0]]
    ends = [*starts[1:], len(units)]
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if index and (
            _may_join(units, joined_starts[-1], start, end, options)
            and (
                end == len(units)
                or gaps[start - 1] <= gaps[end - 1]
                or not fits_chunk(units, start, _end_of_chunk(ends, index) - 1, options)
            )
        ):
            continue
        if index:
            joined_starts.append(start)
    return joined_starts


def _end_of_chunk(ends: Sequence[int], index: int) -> int:
    return ends[min(index + 1, len(ends) - 1)]


def _may_join(units: Sequence[Piece], before: int, start: int, end: int, options: ChunkingOptions) -> bool:
    """Return whether the chunk [start, end) or the one before it is small, and both fit in one."""
    small = SMALL_SHARE * options.chunk_size
    either = min(measure_units(units, start, end - 1, options), measure_units(units, before, start - 1, options))
    return either < small and fits_chunk(units, before, end - 1, options)
