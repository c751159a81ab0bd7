"""The retriever port. Retrievers that improve on others, such as rerankers, wrap them and have the same signature."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.calibration import Calibration
from agentic_rag_backend.models.embedding.calibrator import Calibrator
from agentic_rag_backend.retrieval.caching.reuse import forbid_reuse
from agentic_rag_backend.retrieval.legs.encoder import QueryEncoder
from agentic_rag_backend.retrieval.legs.graph_leg import GraphLeg
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue, DocumentCatalogue, QuestionCatalogue, TreeCatalogue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore


class Retriever(Protocol):
    """Finds results for a query, within the query's tenant only."""

    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks, facts and themes, best first, with a trace of how they were found.

        A strategy returns at least ``query.candidates`` chunks if there are as many. It may return more: `ranking` cuts them.

        Raises:
            StoreUnavailable: a required store did not answer.
            InvalidRequest: an option is outside its limits.
        """


class Strategies(Protocol):
    """The registered strategies, for a strategy that holds others."""

    async def retrieve(self, name: str, query: Query) -> Retrieval:
        """Retrieve with the strategy of this canonical name. It gets the options of the query that belong to it."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores that retrievers read. Retrievers never write."""

    documents: DocumentCatalogue
    communities: CommunityCatalogue
    vectors: VectorStore
    graph: GraphStore
    embedder: Embedder
    encoder: QueryEncoder
    leg: GraphLeg = field(default_factory=GraphLeg)
    trees: TreeCatalogue = field(kw_only=True)
    questions: QuestionCatalogue = field(kw_only=True)
    facts: FactReader = field(kw_only=True)
    calibrator: Calibrator = field(kw_only=True)

    async def calibration(self) -> Calibration:
        """Return the calibration of the embedder. While it is not known, results are used only once."""
        calibration = await self.calibrator.current_calibration()
        if self.calibrator.pending:
            forbid_reuse()
        return calibration
