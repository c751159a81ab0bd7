"""Configurations with Graphiti's search, and messages for configurations without it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from graphiti_worlds import WordEmbedder

from agentic_rag_backend.container.adapters import _open_graph_search
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION, Calibrator
from agentic_rag_backend.models.llm.base import ExtractiveModel
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.graph.base import GraphSearchEngine
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress, Neo4jConnections
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore

VECTORS: Any = object()


async def chosen(**named: Any) -> GraphSearchEngine | None:
    connections = Neo4jConnections.open(Neo4jAddress(uri="bolt://127.0.0.1:1"))
    embedder = WordEmbedder()
    try:
        settings = Settings(_env_file=None, neo4j_uri="bolt://127.0.0.1:1", **named)
        calibrator = Calibrator(embedder, calibration=BUNDLED_CALIBRATION)
        return _open_graph_search(settings, Neo4jGraphStore(connections), VECTORS, ExtractiveModel(), calibrator)
    finally:
        await connections.close()


async def test_neo4j_has_it_unless_it_is_switched_off() -> None:
    found = await chosen(graph_store="neo4j")

    assert found is not None
    assert found.name == "graphiti"
    assert await chosen(graph_store="neo4j", graphiti_search_enabled=False) is None
    assert await chosen(graph_store="sqlite") is None


async def test_the_extra_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentic_rag_backend.plugins.graphiti.search", None)
    with pytest.raises(ConfigurationError, match=r"GRAPHITI_SEARCH_ENABLED.*'server'"):
        await chosen(graph_store="neo4j")
