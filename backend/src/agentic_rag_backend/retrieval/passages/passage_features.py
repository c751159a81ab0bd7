"""Vectors and BM25 terms of passages, and what follows from them: marginal relevance, and relevance for the user's own question.

The graph walk compares a hundred passages with each question, and questions of a tenant reach the same passages again and again.

Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents and producing summaries", SIGIR 1998.

A strategy that searches other texts or vectors than the question's own is not measured by them: a hypothetical passage is near to
similar passages, whether they answer the question or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.models.embedding.calibration import CosineScale
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.caching import ReadThrough, State, TenantCache
from agentic_rag_backend.retrieval.scoring import MEASURED, best_coverage, relevance
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


def similarities(vectors: Sequence[NDArray[np.float32] | None], scale: CosineScale) -> NDArray[np.float64]:
    """Return the cosines of all pairs, shape (vectors, vectors), converted with ``scale``. Pairs with a missing vector have 0."""
    size = next((len(vector) for vector in vectors if vector is not None), 1)
    rows = np.stack([np.zeros(size) if vector is None else vector.astype(np.float64) for vector in vectors])
    # Not a matrix product: its rounding may depend on the position of a row.
    cosines = np.einsum("id,jd->ij", rows, rows)
    lacks_vector = np.array([vector is None for vector in vectors])
    converted = np.asarray(np.clip(scale.converted_all(cosines), 0.0, 1.0))
    converted[lacks_vector | lacks_vector[:, None]] = 0.0
    return converted


def marginal_relevances(
    ids: Sequence[str], relevance: Sequence[float], similar: NDArray[np.float64], share: float
) -> dict[str, float]:
    """Return ``share`` × relevance + (1 − ``share``) × (1 − similarity to the nearest chosen one) at the choice of each id.

    The greatest value is chosen first, and the first of equal values in ``ids``. Values fall from choice to choice,
    because each choice can only lower the others.

    Args:
        relevance: in [0, 1].
        similar: shape (ids, ids), in [0, 1].
    """
    closest = np.zeros(len(ids))
    chosen: dict[str, float] = {}
    remaining = list(range(len(ids)))
    while remaining:
        values = {number: share * relevance[number] + (1 - share) * (1 - float(closest[number])) for number in remaining}
        best = max(remaining, key=lambda number: values[number])
        chosen[ids[best]] = min(1.0, max(0.0, values[best]))
        closest = np.maximum(closest, similar[best])
        remaining = [number for number in remaining if number != best]
    return chosen


async def measured_relevance(stores: Stores, query: Query, hits: Sequence[Hit]) -> float:
    """Return the relevance in [0, 1] of the first `MEASURED` hits for ``query.text``. 0.0 without hits.

    Give at least `MEASURED` candidates if there are as many, or the value depends on the request's limit.
    """
    measured = hits[:MEASURED]
    if not measured:
        return 0.0
    question = await stores.encoder.encode(query.tenant_id, query.text)
    vectors = await stores.vectors.vectors(query.tenant_id, Collection.CHUNKS, [hit.id for hit in measured])
    cosine = max((float(vector @ question) for vector in vectors.values()), default=0.0)
    coverage = best_coverage(stores.vectors.terms, query.text, [hit.visible.chunk.text for hit in measured])
    return relevance(cosine, coverage, await stores.calibration())
