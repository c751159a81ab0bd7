"""A tenant's chunk–entity graph in memory: what the walk and the hops read, visible knowledge only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from agentic_rag_backend.domain.graph import Entity, Mention, normalise_name

ABOUT_WEIGHT = 2.0
"""A chunk whose title or heading is the entity is where a mention of it should lead: twice a mention's weight."""

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A sparse matrix by rows (CSR): ``columns[starts[i]:starts[i+1]]`` are the neighbours of row i, ``weights`` beside them."""

    starts: NDArray[np.int64]
    columns: Ints
    weights: Floats
    width: int
    _matrix: sparse.csr_matrix

    @classmethod
    def from_matrix(cls, matrix: sparse.csr_matrix) -> Adjacency:
        """Wrap a scipy matrix; rows keep their order, columns are sorted."""
        matrix.sort_indices()
        return cls(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            matrix.data,
            int(matrix.shape[1]),
            sparse.csr_matrix(matrix.T),
        )

    def gather(self, rows: Ints) -> tuple[Ints, Ints, Floats]:
        """Return (position in ``rows``, column, weight) of every entry of the given rows, concatenated."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        total = int(lengths.sum())
        position = np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
        offsets = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        index = np.repeat(self.starts[rows], lengths) + offsets
        return position, self.columns[index], self.weights[index]

    def push(self, mass: Floats, floor: float) -> Floats:
        """Return ``mass @ matrix``; rows holding no more than ``floor`` pass nothing on."""
        if floor <= 0:
            return np.asarray(self._matrix @ mass)
        rows = np.flatnonzero(mass > floor).astype(np.int32)
        position, columns, weights = self.gather(rows)
        return np.bincount(columns, weights=weights * mass[rows][position], minlength=self.width).astype(np.float64)

    @property
    def size_bytes(self) -> int:
        """Memory held by the arrays, both orientations."""
        own = self.starts.nbytes + self.columns.nbytes + self.weights.nbytes
        return int(own + self._matrix.data.nbytes + self._matrix.indices.nbytes + self._matrix.indptr.nbytes)


@dataclass(frozen=True, slots=True)
class TenantGraph:
    """Chunks and entities as rows and columns.

    ``chunk_to_entity`` and ``entity_to_chunk`` are the walk's transition matrices (rows sum to 1): from a chunk to its
    entities by inverse document frequency, from an entity to its chunks with *about* edges counting `ABOUT_WEIGHT`.
    ``links`` has the same shape as ``entity_to_chunk`` with plain weights (1, or `ABOUT_WEIGHT` for about edges).
    """

    chunk_ids: tuple[str, ...]
    chunk_index: Mapping[str, int]
    entities: tuple[Entity, ...]
    entity_index: Mapping[str, int]
    names: Mapping[str, tuple[int, ...]]
    idf: Floats
    document_frequency: Ints
    about: NDArray[np.bool_]
    """Whether any chunk is about the entity; shape (entities,)."""
    chunk_to_entity: Adjacency
    entity_to_chunk: Adjacency
    links: Adjacency

    @property
    def size_bytes(self) -> int:
        """An estimate of the memory held, for the cache's bound."""
        text = 150 * (len(self.chunk_ids) + len(self.entities) + len(self.names))
        return text + self.chunk_to_entity.size_bytes + self.entity_to_chunk.size_bytes + self.links.size_bytes

    def entities_of(self, chunk: int) -> Ints:
        """Return the entities of one chunk."""
        start, end = self.chunk_to_entity.starts[chunk], self.chunk_to_entity.starts[chunk + 1]
        return self.chunk_to_entity.columns[start:end]


def build_tenant_graph(entities: Sequence[Entity], mentions: Iterable[Mention], visible: Mapping[str, int]) -> TenantGraph:
    """Build the graph from what the graph store holds and the document versions the catalogue shows.

    Args:
        entities: every entity of the tenant, in a stable order.
        mentions: every mention; those of versions that are not visible are left out.
        visible: visible version by document.
    """
    entity_index = {entity.id: number for number, entity in enumerate(entities)}
    chunk_index: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    about: list[bool] = []
    for mention in mentions:
        column = entity_index.get(mention.entity_id)
        support = mention.support
        if column is None or visible.get(support.document_id) != support.version:
            continue
        rows.append(chunk_index.setdefault(support.chunk_id, len(chunk_index)))
        columns.append(column)
        about.append(mention.about)
    return _assemble(entities, entity_index, chunk_index, (rows, columns, about))


def _assemble(
    entities: Sequence[Entity],
    entity_index: dict[str, int],
    chunk_index: dict[str, int],
    edges: tuple[list[int], list[int], list[bool]],
) -> TenantGraph:
    rows, columns, about = edges
    shape = (len(chunk_index), len(entities))
    is_about = np.array(about, dtype=bool)
    # An entity can be both mentioned in a chunk and what it is about: the stronger edge counts.
    weights = np.where(is_about, ABOUT_WEIGHT, 1.0)
    links = sparse.coo_matrix((weights, (np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32))), shape=shape).tocsr()
    links.data = np.minimum(links.data, ABOUT_WEIGHT)
    document_frequency = np.bincount(links.indices, minlength=shape[1]).astype(np.int32)
    idf = np.log1p(shape[0] / np.maximum(document_frequency, 1))
    by_entity = sparse.csr_matrix(links.T)
    names: dict[str, list[int]] = {}
    for number, entity in enumerate(entities):
        if document_frequency[number]:
            for name in dict.fromkeys(normalise_name(text) for text in (entity.name, *entity.aliases)):
                names.setdefault(name, []).append(number)
    names.pop("", None)
    return TenantGraph(
        chunk_ids=tuple(chunk_index),
        chunk_index=chunk_index,
        entities=tuple(entities),
        entity_index=entity_index,
        names={name: tuple(numbers) for name, numbers in names.items()},
        idf=idf,
        document_frequency=document_frequency,
        about=np.bincount(np.array(columns, dtype=np.int64)[is_about], minlength=shape[1]) > 0,
        chunk_to_entity=Adjacency.from_matrix(_row_normalised(sparse.csr_matrix(links.multiply(idf[None, :])))),
        entity_to_chunk=Adjacency.from_matrix(_row_normalised(by_entity)),
        links=Adjacency.from_matrix(by_entity),
    )


def _row_normalised(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    sums[sums == 0] = 1.0
    return sparse.csr_matrix(sparse.diags(1.0 / sums) @ matrix)
