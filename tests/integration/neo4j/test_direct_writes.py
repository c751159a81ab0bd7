"""The benchmarks' direct writer gives the same graph as the store."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from graph_database import ask

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore

TENANT = TenantId("t_" + "5" * 32)
PASSING = {"created_at", "revision"}
"""Properties that differ between two writes of the same data. ``valid_at`` of chunks, too."""
NODES = "MATCH (n) WHERE n.group_id IS NOT NULL RETURN labels(n) AS labels, properties(n) AS held"
EDGES = """
MATCH (a)-[r]->(b) WHERE a.group_id IS NOT NULL
RETURN type(r) AS labels, properties(r) AS held, coalesce(a.uuid, '') AS source, coalesce(b.uuid, '') AS target
"""


@pytest.mark.parametrize("per_document", [40, 1_000])
async def test_direct_writes_give_the_same_graph(
    empty_neo4j: Neo4jAddress, monkeypatch: pytest.MonkeyPatch, per_document: int
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "benchmarks"))
    direct_writes, planted = importlib.import_module("neo4j_direct_writes"), importlib.import_module("planted_graph")
    graph = planted.Planted.of(60, 130)
    monkeypatch.setattr(direct_writes, "_BATCH", 17)
    store = await Neo4jGraphStore.open(empty_neo4j)
    try:
        await planted.write(store, TENANT, graph, per_document=per_document)
        written = await _held(empty_neo4j)
        await store.delete_tenant(TENANT)
        await direct_writes.fill(store.connections, TENANT, graph.documents(per_document))
        filled = await _held(empty_neo4j)
        versions = [version async for batch in store.all_versions(TENANT) for version in batch]
        counts = await store.counts(TENANT)
    finally:
        await store.close()
    assert filled == written
    assert written.total() > 5 * len(graph.pairs)
    assert all(version.whole for version in versions)
    assert counts.relationships == len({tuple(pair) for pair in graph.pairs.tolist()})


async def _held(address: Neo4jAddress) -> Counter[str]:
    """Return every node and relationship with all properties except times."""
    found = [*await ask(address, NODES), *await ask(address, EDGES)]
    return Counter(repr([row["labels"], _comparable(row), row.get("source"), row.get("target")]) for row in found)


def _comparable(row: dict[str, Any]) -> list[tuple[str, Any]]:
    passing = {*PASSING, "valid_at"} if "Chunk" in row["labels"] else PASSING
    return sorted((name, value) for name, value in row["held"].items() if name not in passing)
