"""Vectors and BM25 terms of passages, with a cache by the state of their tenant.

The graph walk compares a hundred passages with each question, and questions of a tenant reach the same passages again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.retrieval.caching.cache_entries import State, TenantCache
from agentic_rag_backend.retrieval.caching.read_through import ReadThrough
from agentic_rag_backend.stores.vector.base import Collection, Vector, VectorStore
from agentic_rag_backend.telemetry.metrics import PASSAGES_CACHE

Terms = NDArray[np.int64]
"""BM25 terms of a text, rising."""


class PassageFeatures:
    """Reads the vectors of chunks, and computes their terms.

    A value depends on the chunk, its document's title and the embedder alone, so filters and times of a query do not matter.

    Args:
        cache: keeps them. None: nothing is kept.
    """

    def __init__(self, vectors: VectorStore, cache: TenantCache[Any] | None = None) -> None:
        self._store = vectors
        cache = cache or TenantCache[Any](PASSAGES_CACHE, 0)
        self._vectors = ReadThrough[Vector](cache, "vector", lambda vector: vector.nbytes, counted=True)
        self._terms = ReadThrough[Terms](cache, "terms", lambda terms: terms.nbytes)

    async def vectors(self, query: Query, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of chunks by id. Chunks without a vector are left out.

        Raises:
            StoreUnavailable: the vector store did not answer.
        """

        async def load(missing_ids: list[str]) -> Mapping[str, Vector]:
            vectors = await self._store.vectors(query.tenant_id, Collection.CHUNKS, missing_ids)
            for vector in vectors.values():
                vector.setflags(write=False)  # several searches read it
            return vectors

        return await self._vectors.read(query, _state(query), ids, load)

    def terms(self, query: Query, visible: Mapping[str, VisibleChunk]) -> dict[str, Terms]:
        """Return the terms of chunks with their titles, by id."""

        def make(id: str) -> Terms:
            return self.of_text(f"{visible[id].document_title}\n{visible[id].chunk.text}")

        return self._terms.compute(query, _state(query), list(visible), make)

    def of_text(self, text: str) -> Terms:
        """Return the terms of a text."""
        terms = np.array(sorted(self._store.terms(text)), dtype=np.int64)
        terms.setflags(write=False)
        return terms


def _state(query: Query) -> State:
    # A tenant that is created again under the same id counts from the beginning.
    return (query.tenant.created_at, query.tenant.state_version)
