"""The cost of statements: no scan, a fixed number of round trips, hubs that are not expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from neo4j import AsyncManagedTransaction

from agentic_rag_backend.domain.graph import DocumentKnowledge
from agentic_rag_backend.stores.graph import neo4j, neo4j_writes
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_testing.stores import graph_samples as samples

Plan = Mapping[str, Any]
_WHOLE_TENANT = re.compile(r"(?<!Tenant)\(group_id\) WHERE")
"""A seek by the tenant alone is no better than a scan."""
_BY_GROUP = [
    "CREATE INDEX relation_group_id IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON (e.group_id)",
    "CREATE INDEX mention_group_id IF NOT EXISTS FOR ()-[e:MENTIONS]-() ON (e.group_id)",
]
"""Indexes of Graphiti that the planner would use instead of ours without a hint."""
_ROW = {"uuid": "x", "labels": ["Entity"], "leading": []}
_VALUES = {
    **dict.fromkeys(("tenant", "document", "document_uuid", "version_uuid", "title", "prefix", "after", "from", "to"), "x"),
    **{name: ["x"] for name in ("uuids", "names", "prefixes", "edges", "passages")},
    **dict.fromkeys(("version", "above", "limit", "generation", "hub_degree", "per_passage"), 1),
    "rows": [_ROW],
    "chunks": [_ROW],
    "documents": [{"id": "x", "prefix": "x"}],
    "relations": None,
    "level": None,
    "ids": None,
}


def _operators(plan: Plan) -> Iterator[tuple[str, str]]:
    yield plan["operatorType"].partition("@")[0], plan["args"].get("Details") or ""
    for child in plan.get("children", ()):
        yield from _operators(child)


def _hits(plan: Plan) -> int:
    return int(plan.get("dbHits", 0)) + sum(_hits(child) for child in plan.get("children", ()))


@pytest.mark.parametrize("written", [(), (samples.ONE, samples.TWO)], ids=["empty", "small"])
async def test_no_statement_looks_at_more_than_it_needs(store: Neo4jGraphStore, written: tuple[DocumentKnowledge, ...]) -> None:
    """Also without statistics: plans made for a small graph are kept while it grows."""
    for index in _BY_GROUP:
        await store._connections.define(index)
    for document in written:
        await store.write_document(samples.A, document)
    await store._connections.define("CALL db.clearQueryCaches()")
    wide, sorting = {}, set()
    for name, statement in neo4j_writes.CYPHER.items():
        async with store._connections._session(60) as session:
            summary = await (await session.run("EXPLAIN " + statement, _VALUES)).consume()
        operators = list(_operators(summary.plan or {}))
        scans = [kind for kind, _ in operators if kind.endswith("Scan")]
        whole_tenants = [what for kind, what in operators if _WHOLE_TENANT.search(what)]
        if name.endswith("_page") and not name.endswith("_of_documents_page") and "Top" in [kind for kind, _ in operators]:
            sorting.add(name)
        if scans or whole_tenants:
            wide[name] = [*scans, *whole_tenants]

    removed = {"delete_tenant_chunks", "delete_tenant_communities", "delete_tenant_entities", "delete_tenant_sagas"}
    assert set(wide) - removed == {"list_tenants"}
    assert not sorting, "each page reads all that is after it, to sort it"


async def test_round_trips_do_not_depend_on_how_much_a_document_says(
    store: Neo4jGraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    run = AsyncManagedTransaction.run

    async def counted(self: AsyncManagedTransaction, query: Any, *arguments: Any, **values: Any) -> Any:
        sent.append(query)
        return await run(self, query, *arguments, **values)

    monkeypatch.setattr(AsyncManagedTransaction, "run", counted)
    costs = []
    for size in (1, 10, 300):
        document = samples.knowledge(f"of {size}", [(f"S{number}", "made", f"T{number}") for number in range(size)])
        sent.clear()
        await store.write_document(samples.A, document)
        written = len(sent)
        sent.clear()
        await store.delete_document(samples.A, document.document_id, up_to_version=1)
        costs.append((written, len(sent)))

    assert len(set(costs)) == 1
    assert max(costs[0]) <= 13


async def test_a_hub_among_the_ends_is_not_expanded(store: Neo4jGraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand edges of a hub cost nothing if a few ends are requested. The facts on these edges are still found."""
    monkeypatch.setattr(neo4j, "_HUB_DEGREE", 50)
    around = [("Hub", "knows", f"N{number}") for number in range(1_000)]
    between = [("N1", "knows", "N2"), ("Hub", "knows", "Rim"), ("Rim", "knows", "Hub")]
    rim = [("Rim", "knows", f"M{number}") for number in range(100)]
    await store.write_document(samples.A, samples.knowledge("hub", [*around, *between, *rim]))
    ends = [samples.entity_id(name) for name in ("Hub", "Rim", "N1", "N2", "M3")]

    found = await store.relationships_of(samples.A, ends)

    expected = [("Hub", "N1"), ("Hub", "N2"), ("N1", "N2"), ("Hub", "Rim"), ("Rim", "Hub"), ("Rim", "M3")]
    ids = [(samples.entity_id(source), samples.entity_id(target)) for source, target in expected]
    assert sorted((each.source_id, each.target_id) for each in found) == sorted(ids)
    values = {"tenant": samples.A.value, "uuids": neo4j._uuid_list(samples.A, ends)}
    hits = []
    for degree in (50, 1_000_000):
        async with store._connections._session(60) as session:
            result = await session.run(
                "PROFILE " + neo4j_writes.CYPHER["relationships_between"], {**values, "hub_degree": degree}
            )
            summary = await result.consume()
        hits.append(_hits(summary.profile or {}))
    assert hits[0] < 500 < hits[1]
    hub = {"tenant": samples.A.value, "uuids": neo4j._uuid_list(samples.A, ends[:1]), "limit": 3, "relations": None}
    for side in ("edges_from", "edges_to"):
        async with store._connections._session(60) as session:
            summary = await (await session.run("PROFILE " + neo4j_writes.CYPHER[side], hub)).consume()
        assert _hits(summary.profile or {}) < 100, side


async def test_a_stream_holds_no_transaction_between_batches(
    store: Neo4jGraphStore, empty_neo4j: Neo4jAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neo4j, "_MENTIONS_PER_BATCH", 2)
    await store.write_document(samples.A, samples.ONE)
    batches = 0
    async for batch in store.all_mentions(samples.A):
        batches += 1
        async with store._connections._session(60) as session:
            # The requested one is the only one.
            open_ones = await (await session.run("SHOW TRANSACTIONS YIELD currentQuery RETURN currentQuery")).data()
        assert len(open_ones) == 1
        assert len(batch) <= 2

    assert batches == 2
