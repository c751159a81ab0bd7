"""`mmr`: maximal marginal relevance, which prefers candidates that differ from those chosen before.

Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents and producing summaries", SIGIR 1998.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.stores.vector.base import Collection, VectorStore

DEFAULT_LAMBDA = 0.7
"""Share of relevance; the rest is the share of novelty."""


class Mmr:
    """Chooses greedily. ``options.lambda`` in [0, 1] is the share of relevance: 1 keeps the order of the strategy."""

    def __init__(self, vectors: VectorStore) -> None:
        self._vectors = vectors

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the value of each candidate at its choice. Relevance is its score ÷ the best score.

        Similarity is the cosine of the stored vectors, 0 if negative or if a chunk has no vector.
        """
        ids = [hit.id for hit in candidates]
        share = float(query.rerank.options.get("lambda", DEFAULT_LAMBDA)) if query.rerank is not None else DEFAULT_LAMBDA
        stored = await self._vectors.vectors(query.tenant_id, Collection.CHUNKS, ids)
        similar = similarities([stored.get(id) for id in ids])
        best = max((hit.score for hit in candidates), default=0.0) or 1.0
        values = marginal_relevances(ids, [hit.score / best for hit in candidates], similar, share)
        return Reranking(scores=values, details={"lambda": share})


def similarities(vectors: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float64]:
    """Return the cosines of all pairs, shape (vectors, vectors), in [0, 1]. Pairs with a missing vector have 0."""
    size = next((len(each) for each in vectors if each is not None), 1)
    rows = np.stack([np.zeros(size) if each is None else each.astype(np.float64) for each in vectors])
    # Not a matrix product: its rounding may depend on the position of a row.
    cosines = np.einsum("id,jd->ij", rows, rows)
    return np.asarray(np.clip(cosines, 0.0, 1.0))


def marginal_relevances(
    ids: Sequence[str], relevance: Sequence[float], similar: NDArray[np.float64], share: float
) -> dict[str, float]:
    """Return ``share`` × relevance + (1 − ``share``) × (1 − similarity to the nearest chosen one) at the choice of each id.

    The greatest value is chosen first, among equal values the one that is first in ``ids``. Values fall from choice to choice,
    because each choice can only lower the others.

    Args:
        relevance: in [0, 1].
        similar: shape (ids, ids), in [0, 1].
    """
    nearest = np.zeros(len(ids))
    chosen: dict[str, float] = {}
    left = list(range(len(ids)))
    while left:
        values = {number: share * relevance[number] + (1 - share) * (1 - float(nearest[number])) for number in left}
        best = max(left, key=lambda number: values[number])
        chosen[ids[best]] = min(1.0, max(0.0, values[best]))
        nearest = np.maximum(nearest, similar[best])
        left = [number for number in left if number != best]
    return chosen
