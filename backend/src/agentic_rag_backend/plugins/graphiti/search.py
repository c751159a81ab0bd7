"""Search of a tenant's graph by Graphiti: the graph leg of the low level."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.calibration import Calibrator
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.plugins.graphiti.clients import GraphitiEmbedder, GraphitiLanguageModel, GraphitiReranker
from agentic_rag_backend.plugins.graphiti.driver import GraphReader, TenantDriver
from agentic_rag_backend.plugins.graphiti.filters import valid_at
from agentic_rag_backend.plugins.graphiti.interface import TenantSearch
from agentic_rag_backend.plugins.graphiti.sdk import COMBINED_HYBRID_SEARCH_RRF, Graphiti, SearchConfig, SearchResults
from agentic_rag_backend.stores.graph.base import GraphFindings, GraphQuestion, GraphSearchEngine
from agentic_rag_backend.stores.graph.bolt import Neo4jConnections
from agentic_rag_backend.stores.vector.base import ScoredId, VectorStore


def recipe(limit: int, least_cosine: float) -> SearchConfig:
    """Return a copy of Graphiti's hybrid recipe for facts and entities. The original is a module global.

    Passages and communities are left out: other legs and levels search them.

    Args:
        least_cosine: see `Calibration.passage_of_fact`.
    """
    config: SearchConfig = copy.deepcopy(COMBINED_HYBRID_SEARCH_RRF)
    config.limit = limit
    config.community_config = None
    config.episode_config = None
    for part in (config.edge_config, config.node_config):
        if part is not None:
            part.sim_min_score = least_cosine
    return config


def open_fact_search(
    connections: Neo4jConnections, vectors: VectorStore, *, model: LanguageModel, calibrator: Calibrator
) -> GraphSearchEngine:
    """Return the engine over a graph. Opens no connection."""
    search = GraphitiSearch.over(connections, vectors, embedder=calibrator.embedder, model=model, calibrator=calibrator)
    return GraphSearchEngine("graphiti", search.find)


class GraphitiSearch:
    """Searches a tenant's graph by Graphiti's ``search_``, on the graph store's connections and the vector store's points."""

    def __init__(
        self,
        graphiti: Graphiti,
        driver: TenantDriver,
        connections: Neo4jConnections,
        vectors: VectorStore,
        calibrator: Calibrator,
    ) -> None:
        self._graphiti = graphiti
        self._driver = driver
        self._connections = connections
        self._vectors = vectors
        self._calibrator = calibrator

    @classmethod
    def over(
        cls,
        connections: Neo4jConnections,
        vectors: VectorStore,
        *,
        embedder: Embedder,
        model: LanguageModel,
        calibrator: Calibrator,
    ) -> GraphitiSearch:
        """Create the process's only Graphiti. Opens no connection."""
        driver = TenantDriver(connections)
        graphiti = Graphiti(
            graph_driver=driver,
            llm_client=GraphitiLanguageModel(model),
            embedder=GraphitiEmbedder(embedder),
            cross_encoder=GraphitiReranker(embedder),
            store_raw_episode_content=False,
        )
        return cls(graphiti, driver, connections, vectors, calibrator)

    async def find(self, tenant: TenantId, question: GraphQuestion) -> GraphFindings:
        """Return the entities and relationships that ``search_`` finds, with reciprocal rank scores."""
        calibration = await self._calibrator.current_calibration()
        config = recipe(question.limit, calibration.passage_of_fact)
        results = await self.results(require_tenant(tenant), question, config)
        return GraphFindings(
            entities=tuple(
                ScoredId(node.attributes["id"], score)
                for node, score in zip(results.nodes, results.node_reranker_scores, strict=True)
            ),
            relationships=tuple(
                ScoredId(edge.attributes["id"], score)
                for edge, score in zip(results.edges, results.edge_reranker_scores, strict=True)
            ),
        )

    async def results(self, tenant: TenantId, question: GraphQuestion, config: SearchConfig) -> SearchResults:
        """Return the results of ``search_`` for a recipe, limited to the tenant."""
        moment = question.moment or datetime.now(UTC)
        reader = GraphReader(self._connections, tenant)
        interface = TenantSearch(reader=reader, vectors=self._vectors, moment=moment, passages=question.filter)
        return await self._graphiti.search_(
            question.text,
            config=config,
            group_ids=[tenant.value],
            search_filter=valid_at(moment),
            driver=self._driver.within(reader, interface),
            query_vector=question.vector.tolist(),
        )
