"""`none`: the candidates keep the scores of the strategy."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.retrieval.rerank.base import Reranking


class Unchanged:
    """Returns the scores of the strategy."""

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the own score of each candidate."""
        return Reranking(scores={hit.id: hit.score for hit in candidates})
