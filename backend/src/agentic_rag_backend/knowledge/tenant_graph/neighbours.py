"""Entities that share chunks with an entity, bounded at hubs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.row_pool import Ints

READ_CHUNKS = 300
"""Chunks of a hub whose entities are read. The keys of the chunks select them, so the choice is always the same."""


def sharing_chunks(graph: TenantGraph, number: int, *, limit: int) -> Mapping[int, int]:
    """Return the entities that share most chunks with an entity, with the number of shared chunks, at most ``limit``.

    Of equal ones, rarer entities come first. Of entities with many chunks, `READ_CHUNKS` are read.
    """
    _, entities, _ = graph.mentions.gather(_select_chunks(graph, graph.links.of(number)))
    neighbours, shared = np.unique(entities[entities != number], return_counts=True)
    order = np.lexsort((graph.entity_keys[neighbours], graph.document_frequency[neighbours], -shared))[:limit]
    return dict(zip(neighbours[order].tolist(), shared[order].tolist(), strict=True))


def shared_count(graph: TenantGraph, entity_a: int, entity_b: int) -> int:
    """Return the number of chunks that mention both entities."""
    return len(np.intersect1d(graph.links.of(entity_a), graph.links.of(entity_b)))


class SharedChunks:
    """The chunks that mention entities of one set. They are counted once, for comparisons with many entities.

    Args:
        numbers: the entities of the set.
    """

    def __init__(self, graph: TenantGraph, numbers: Iterable[int]) -> None:
        self._graph = graph
        self._numbers = frozenset(numbers)
        self._chunks, self._counts = _count_chunks(graph, self._numbers)

    def sharing(self, candidates: Iterable[int], *, without: Iterable[int]) -> set[int]:
        """Return the candidates that share a chunk with an entity of the set, ``without`` some of its entities."""
        chunks, left_out = _count_chunks(self._graph, self._numbers.intersection(without))
        counts = self._counts.copy()
        counts[np.searchsorted(self._chunks, chunks)] -= left_out
        other_chunks = self._chunks[counts > 0]
        return {number for number in candidates if np.isin(self._graph.links.of(number), other_chunks).any()}


def _count_chunks(graph: TenantGraph, numbers: Iterable[int]) -> tuple[Ints, Ints]:
    """Return the chunks that mention some entities, in order, and how many of the entities each mentions."""
    chunks = [graph.links.of(number) for number in numbers]
    if not chunks:
        return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
    ordered, counts = np.unique(np.concatenate(chunks), return_counts=True)
    return ordered, counts.astype(np.int32)


def shared_chunk(graph: TenantGraph, entity_a: int, entity_b: int) -> str | None:
    """Return the id of a chunk that mentions both entities, None without any. The key of the chunk selects it."""
    common = np.intersect1d(graph.links.of(entity_a), graph.links.of(entity_b))
    return None if not len(common) else graph.chunk_ids[int(common[np.argmin(graph.chunk_keys[common])])]


def first_chunks(graph: TenantGraph, number: int, *, limit: int) -> list[str]:
    """Return the ids of chunks that mention an entity, those about it first, at most ``limit``."""
    _, chunks, weights = graph.links.gather(np.array([number]))
    order = np.lexsort((graph.chunk_keys[chunks], -weights))[:limit]
    return [graph.chunk_ids[chunk] for chunk in chunks[order].tolist()]


def _select_chunks(graph: TenantGraph, chunks: Ints) -> Ints:
    if len(chunks) <= READ_CHUNKS:
        return chunks
    return np.asarray(chunks[np.argpartition(graph.chunk_keys[chunks], READ_CHUNKS)[:READ_CHUNKS]])
