"""A store on an empty Neo4j."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

# First: a direct import of Graphiti would show its warnings.
import agentic_rag_backend.plugins.graphiti.sdk  # noqa: F401
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore


@pytest.fixture
async def store(empty_neo4j: Neo4jAddress) -> AsyncIterator[Neo4jGraphStore]:
    opened = await Neo4jGraphStore.open(empty_neo4j)
    yield opened
    await opened.close()
