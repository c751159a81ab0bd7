"""The stages that every search passes. Each one is a retriever that holds the next one; the strategy is the innermost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.name_bearers import BearerReader
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.rerank.registry import RerankerRegistry
from agentic_rag_backend.retrieval.stages.correction import CorrectedRetriever, Corrector
from agentic_rag_backend.retrieval.stages.namesakes import NamesakeRetriever
from agentic_rag_backend.retrieval.stages.ranking import RankedRetriever
from agentic_rag_backend.retrieval.stages.reranking import RerankedRetriever
from agentic_rag_backend.retrieval.stages.results import CachedRetriever, ResultCache
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

Stage = Callable[[Retriever], Retriever]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """What the stages use. Without ``rerankers``, no search is reranked."""

    cache: ResultCache
    graphs: TenantGraphs
    bearers: BearerReader
    documents: DocumentCatalogue
    rerankers: RerankerRegistry | None
    corrector: Corrector

    def stages(self, strategy: str) -> tuple[Stage, ...]:
        """Return the stages of a strategy's searches, the outermost first."""
        return (
            lambda inner: CachedRetriever(strategy, inner, self.cache),  # an equal search was made before, or is being made
            lambda inner: NamesakeRetriever(inner, self.graphs, self.bearers),  # the bearers of a shared name
            lambda inner: RankedRetriever(inner, self.documents),  # least score, limit, parents
            lambda inner: RerankedRetriever(inner, self.rerankers.get if self.rerankers is not None else None),
            lambda inner: CorrectedRetriever(inner, self.corrector),  # other wordings, if too few results are relevant
        )

    def wrap_strategy(self, strategy: str, retriever: Retriever) -> Retriever:
        """Return a strategy behind all stages."""
        for stage in reversed(self.stages(strategy)):
            retriever = stage(retriever)
        return retriever
