"""Rerankers by a model that reads the question and each passage: `cross_encoder` and `http`."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import RerankerUnavailable
from agentic_rag_backend.models.reranking.base import PassageScorer
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.retrieval.rerank.passages import passage_of


class ScoredByModel:
    """Takes the model's scores.

    Args:
        scorer: None if the deployment has none.
        remedy: how to configure one.
    """

    def __init__(self, scorer: PassageScorer | None, *, remedy: str) -> None:
        self._scorer = scorer
        self._remedy = remedy

    def check(self) -> None:
        """See `Reranker`."""
        self._model.check()

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the model's score of each candidate."""
        model = self._model
        scores = await model.score(query.text, [passage_of(hit) for hit in candidates], account)
        return Reranking(
            scores={hit.id: score for hit, score in zip(candidates, scores, strict=True)}, details={"model": model.name}
        )

    async def try_out(self) -> str:
        """Call the model with one passage. Return a description of it."""
        model = self._model
        await model.score("Does the reranker work?", ["It works."], UsageAccount())
        return f"{model.name} responds"

    @property
    def _model(self) -> PassageScorer:
        if self._scorer is None:
            raise RerankerUnavailable(self._remedy)
        return self._scorer
