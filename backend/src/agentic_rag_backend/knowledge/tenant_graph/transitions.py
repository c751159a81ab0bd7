"""One step of the walk over the chunk–entity graph, in both directions. Results do not depend on the order of updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.tenant_graph.numbering import Keys
from agentic_rag_backend.knowledge.tenant_graph.row_pool import Ints, Rows

if TYPE_CHECKING:
    from scipy import sparse

Floats = NDArray[np.float64]


class Edges:
    """Weighted rows. A value is a column number times 2, plus 1 for an *about* edge, which has twice the weight.

    The values of a row are ordered by the keys of their columns, so that sums do not depend on the numbering.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def gather(self, rows: NDArray[np.integer]) -> tuple[Ints, Ints, Floats]:
        """Return (position in ``rows``, column, weight) of every edge of the given rows, concatenated."""
        position, values = self.rows.gather(rows)
        return position, values >> 1, (1 + (values & 1)).astype(np.float64)

    def of(self, row: int) -> Ints:
        """Return the columns of one row."""
        return self.rows.row(row) >> 1


class Transitions:
    """Steps from chunks to entities and back. Each node's mass is divided among its edges.

    From a chunk in proportion to weight × inverse document frequency, from an entity in proportion to weight.
    """

    __slots__ = ("_by_chunk", "_by_entity", "_idf", "_matrices", "_named", "_totals", "chunk_keys", "entity_keys")

    def __init__(self, by_chunk: Edges, by_entity: Edges, *, idf: Floats, totals: Floats, keys: tuple[Keys, Keys]) -> None:
        """``totals`` are the entities' sums of weights. ``keys`` are the keys of chunks and of entities."""
        self._by_chunk = by_chunk
        self._by_entity = by_entity
        self._idf = idf
        self._totals = np.maximum(totals, 1.0)
        self.chunk_keys, self.entity_keys = keys
        # Each chunk's sum of weight × idf. Computed when the walk first needs it, because each added chunk changes all of them.
        self._named = np.full(len(by_chunk.rows.lengths), np.nan)
        self._matrices: tuple[sparse.csr_matrix, sparse.csr_matrix] | None = None

    def to_chunks(self, entities: Floats) -> Floats:
        """Return the mass that all ``entities`` pass to chunks."""
        return np.asarray(self._dense_matrices()[0] @ entities)

    def to_entities(self, chunks: Floats) -> Floats:
        """Return the mass that all ``chunks`` pass to entities."""
        return np.asarray(self._dense_matrices()[1] @ chunks)

    def from_entities(self, rows: NDArray[np.integer]) -> tuple[Ints, Ints, Floats]:
        """Return (position in ``rows``, chunk, share of the entity's mass) of every edge of the given entities."""
        position, chunks, weights = self._by_entity.gather(rows)
        return position, chunks, weights / self._totals[rows][position]

    def from_chunks(self, rows: NDArray[np.integer]) -> tuple[Ints, Ints, Floats]:
        """Return (position in ``rows``, entity, share of the chunk's mass) of every edge of the given chunks."""
        position, entities, weights = self._by_chunk.gather(rows)
        unknown = np.isnan(self._named[rows])
        if unknown.any():
            self._name(rows[unknown])
        return position, entities, weights * self._idf[entities] / self._named[rows][position]

    def _name(self, chunks: NDArray[np.integer]) -> None:
        position, entities, weights = self._by_chunk.gather(chunks)
        sums = np.bincount(position, weights=weights * self._idf[entities], minlength=len(chunks))
        self._named[chunks] = np.where(sums > 0, sums, 1.0)

    def _dense_matrices(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """Return both directions as matrices, by chunk and by entity, for graphs small enough to walk completely."""
        if self._matrices is None:
            self._name(np.arange(len(self._named)))
            self._matrices = (
                _build_matrix(self._by_chunk, np.ones(len(self._named)), self._totals),
                _build_matrix(self._by_entity, self._idf, self._named),
            )
        return self._matrices

    @property
    def size_bytes(self) -> int:
        """Memory in bytes, without the matrices."""
        return int(self._totals.nbytes + self._named.nbytes)


def _build_matrix(edges: Edges, gains: Floats, sums: Floats) -> sparse.csr_matrix:
    """Return the weights as a matrix, multiplied by each row's gain and divided by each column's sum."""
    from scipy import sparse  # 14 MB, loaded only when a graph is walked

    position, columns, weights = edges.gather(np.arange(len(gains)))
    starts = np.concatenate([[0], np.cumsum(edges.rows.lengths, dtype=np.int64)])
    shares = gains[position] * weights / sums[columns]
    return sparse.csr_matrix((shares, columns, starts), shape=(len(gains), len(sums)), copy=False)
