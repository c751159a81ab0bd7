"""`mmr`: maximal marginal relevance, which prefers candidates that differ from those chosen before."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.models.embedding.calibrator import Calibrator
from agentic_rag_backend.retrieval.options.model import RequestOptions
from agentic_rag_backend.retrieval.passages.marginal_relevance import marginal_relevances, similarities
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.stores.vector.base import Collection, VectorStore

DEFAULT_LAMBDA = 0.7
"""Share of relevance; the rest is the share of novelty."""


class MmrRequestOptions(RequestOptions):
    share: float = Field(
        DEFAULT_LAMBDA, ge=0, le=1, alias="lambda", description="share of relevance; the rest is the share of novelty"
    )


class Mmr:
    """Chooses greedily. ``options.lambda`` in [0, 1] is the share of relevance: 1 keeps the order of the strategy."""

    def __init__(self, vectors: VectorStore, calibrator: Calibrator) -> None:
        self._vectors = vectors
        self._calibrator = calibrator

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the value of each candidate at its choice. Relevance is its score ÷ the best score.

        Similarity is the calibrated cosine of the stored vectors, 0 if negative or if a chunk has no vector.
        """
        ids = [hit.id for hit in candidates]
        share = float(query.rerank.options.get("lambda", DEFAULT_LAMBDA)) if query.rerank is not None else DEFAULT_LAMBDA
        stored = await self._vectors.vectors(query.tenant_id, Collection.CHUNKS, ids)
        calibration = await self._calibrator.current_calibration()
        similar = similarities([stored.get(id) for id in ids], calibration.passages)
        best = max((hit.score for hit in candidates), default=0.0) or 1.0
        values = marginal_relevances(ids, [hit.score / best for hit in candidates], similar, share)
        return Reranking(scores=values, details={"lambda": share})
