"""The graph's schema for Graphiti and other clients, and its migration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graph_database import ask

from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.stores.graph import neo4j_schema
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress, Neo4jConnections
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_backend.stores.graph.nodes import graph_uuid
from agentic_rag_testing.stores import graph_samples as samples

_GRAPHITI = [
    "CREATE INDEX entity_uuid IF NOT EXISTS FOR (n:Entity) ON (n.uuid)",
    "CREATE INDEX episode_uuid IF NOT EXISTS FOR (n:Episodic) ON (n.uuid)",
    "CREATE INDEX community_uuid IF NOT EXISTS FOR (n:Community) ON (n.uuid)",
    "CREATE INDEX relation_uuid IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON (e.uuid)",
    "CREATE INDEX mention_uuid IF NOT EXISTS FOR ()-[e:MENTIONS]-() ON (e.uuid)",
    "CREATE INDEX has_member_uuid IF NOT EXISTS FOR ()-[e:HAS_MEMBER]-() ON (e.uuid)",
    "CREATE INDEX entity_group_id IF NOT EXISTS FOR (n:Entity) ON (n.group_id)",
]
"""Indexes of graphiti-core 0.31.1, as `build_indices_and_constraints` creates them at its start."""
_FORGET = "MATCH (n:SchemaVersion) DETACH DELETE n"


async def _define(address: Neo4jAddress, *statements: str) -> None:
    connections = Neo4jConnections.open(address)
    for statement in statements:
        await connections.define(statement)
    await connections.close()


async def _constraints(address: Neo4jAddress) -> set[str]:
    return {str(row["name"]) for row in await ask(address, "SHOW CONSTRAINTS YIELD name RETURN name")}


async def test_graphitis_indexes_may_come_before_or_after_and_an_interrupted_migration_goes_on(empty_neo4j: Neo4jAddress) -> None:
    await (await Neo4jGraphStore.open(empty_neo4j)).close()
    expected = await _constraints(empty_neo4j)
    await _define(empty_neo4j, *_GRAPHITI)  # after ours: skipped, because the constraints exist
    indexes = await ask(empty_neo4j, "SHOW INDEXES YIELD name WHERE name = 'entity_uuid' RETURN name")
    assert indexes == []
    # before ours, with half of ours: the rest of a killed run
    gone = ["unique_entity", "unique_episode", "unique_mention", "unique_statement"]
    await _define(empty_neo4j, _FORGET, *(f"DROP CONSTRAINT {name}" for name in gone), *_GRAPHITI)

    await (await Neo4jGraphStore.open(empty_neo4j)).close()

    assert await _constraints(empty_neo4j) == expected
    (version,) = await ask(empty_neo4j, "MATCH (n:SchemaVersion) RETURN n.version AS version")
    assert version["version"] == len(neo4j_schema.STEPS)


async def test_a_wait_that_another_process_cuts_off_is_repeated(
    empty_neo4j: Neo4jAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It drops an index that the wait is for: Neo.ClientError.Procedure.ProcedureCallFailed."""
    cut_off, define = 3, Neo4jConnections.define

    async def defined(self: Neo4jConnections, statement: str) -> None:
        nonlocal cut_off
        if "awaitIndexes" in statement and cut_off:
            cut_off -= 1
            raise StoreUnavailable("Neo4j does not answer (Neo.ClientError.Procedure.ProcedureCallFailed)")
        await define(self, statement)

    await _define(empty_neo4j, _FORGET)
    monkeypatch.setattr(neo4j_schema, "_PAUSE_S", 0.01)
    monkeypatch.setattr(Neo4jConnections, "define", defined)
    await (await Neo4jGraphStore.open(empty_neo4j)).close()
    assert cut_off == 0
    monkeypatch.setattr(neo4j_schema, "_MAX_WAITS", 2)
    cut_off = 3
    await _define(empty_neo4j, _FORGET)
    with pytest.raises(StoreUnavailable, match="ProcedureCallFailed"):
        await Neo4jGraphStore.open(empty_neo4j)
    cut_off = 0
    await (await Neo4jGraphStore.open(empty_neo4j)).close()


async def test_a_newer_schema_is_refused(empty_neo4j: Neo4jAddress) -> None:
    await (await Neo4jGraphStore.open(empty_neo4j)).close()
    await _define(empty_neo4j, "MATCH (n:SchemaVersion) SET n.version = 99")
    try:
        with pytest.raises(ConfigurationError, match="99"):
            await Neo4jGraphStore.open(empty_neo4j)
    finally:
        await _define(empty_neo4j, f"MATCH (n:SchemaVersion) SET n.version = {len(neo4j_schema.STEPS)}")


async def test_nodes_and_edges_have_what_graphiti_reads(store: Neo4jGraphStore, empty_neo4j: Neo4jAddress) -> None:
    typed = replace(samples.ONE.entities[0], type="legal person", description="who founded it")
    document = replace(samples.ONE, entities=(typed, *samples.ONE.entities[1:]))
    await store.write_document(samples.A, document)
    await store.write_communities(samples.A, 1, [samples.COMMUNITY])

    (entity,) = await ask(
        empty_neo4j, "MATCH (e:Entity {name: 'Ada'}) RETURN properties(e) AS held, labels(e) AS labels, e.created_at AS at"
    )
    assert set(entity["labels"]) == {"Entity", "LegalPerson"}  # type: ignore[call-overload]
    held = dict(entity["held"])  # type: ignore[call-overload]
    assert held["uuid"] == graph_uuid(samples.A, samples.entity_id("Ada"))
    assert (held["group_id"], held["summary"], held["labels"]) == (str(samples.A), "who founded it", ["Entity", "LegalPerson"])
    (edge,) = await ask(
        empty_neo4j,
        "MATCH (a)-[r:RELATES_TO {name: 'founded'}]->(b) RETURN a.name AS source, b.name AS target, r.fact AS fact,"
        " r.group_id AS group, r.created_at IS NOT NULL AS dated, r.valid_at AS valid, r.expired_at AS expired,"
        " [uuid IN r.episodes WHERE EXISTS { MATCH (c:Episodic:Chunk {uuid: uuid})-[:MENTIONS]->(a) }] AS episodes",
    )
    assert (edge["source"], edge["target"], edge["fact"]) == ("Ada", "Acme", samples.ONE.relationships[0].fact)
    assert edge["group"] == str(samples.A)
    assert edge["dated"] is True
    assert edge["valid"] is None
    assert edge["episodes"] == [graph_uuid(samples.A, samples.ONE.chunk_ids[0])]
    (chunk,) = await ask(
        empty_neo4j,
        "MATCH (:Document {name: 'one'})-[:HAS_CHUNK]->(c:Chunk) WHERE 'text' = c.source AND c.content IS NOT NULL"
        " AND c.valid_at IS NOT NULL AND c.source_description IS NOT NULL RETURN count(c) AS chunks,"
        " sum(size(c.entity_edges)) AS edges",
    )
    assert chunk == {"chunks": 2, "edges": 2}
    (theme,) = await ask(
        empty_neo4j,
        "MATCH (c:Community:Theme)-[m:HAS_MEMBER]->(e:Entity) WHERE m.uuid IS NOT NULL AND m.group_id = c.group_id"
        " RETURN c.name AS name, c.summary AS summary, count(e) AS members",
    )
    assert theme == {"name": "Ada, Acme, Bolt", "summary": "", "members": 3}


async def test_what_graphiti_saves_over_ours_leaves_ours(store: Neo4jGraphStore, empty_neo4j: Neo4jAddress) -> None:
    """Its saves replace all properties of episodes and communities."""
    await store.write_document(samples.A, samples.ONE)
    await store.write_communities(samples.A, 1, [samples.COMMUNITY])
    before = await samples.snapshot(store, samples.A)
    for label in ("Episodic", "Community"):
        await _define(
            empty_neo4j,
            f"MATCH (n:{label}) SET n = {{uuid: n.uuid, name: 'its own', group_id: n.group_id, created_at: datetime()}}",
        )

    assert await samples.snapshot(store, samples.A) == before
    gone = await store.delete_document(samples.A, "one", up_to_version=1)
    assert gone.entities == 3
    left = await ask(empty_neo4j, "MATCH (n) WHERE NOT n:SchemaVersion RETURN DISTINCT labels(n)[0] AS label ORDER BY label")
    assert [row["label"] for row in left] == ["Community", "Tenant", "ThemeRecord"]


async def test_types_do_not_become_labels_of_ours(store: Neo4jGraphStore, empty_neo4j: Neo4jAddress) -> None:
    kinds = ["document", "Chunk", "tenant", "entity name", "x`) DETACH DELETE (n", "", "9lives", "théme", "a" * 100]
    entities = tuple(
        replace(samples.ONE.entities[0], id=f"e-{number}", name=f"Name {number}", type=kind) for number, kind in enumerate(kinds)
    )
    await store.write_document(samples.A, replace(samples.knowledge("one", []), entities=entities))

    (found,) = await ask(empty_neo4j, "MATCH (e:Entity) UNWIND labels(e) AS label RETURN collect(DISTINCT label) AS labels")
    assert found["labels"] == ["Entity"]
    assert {entity.type for entity in (await store.entities(samples.A, [each.id for each in entities])).values()} == set(kinds)


def test_an_id_leads_elsewhere_for_every_tenant() -> None:
    identifier = samples.entity_id("Ada")

    assert graph_uuid(samples.A, identifier) != graph_uuid(samples.B, identifier) != identifier
    assert graph_uuid(samples.A, graph_uuid(samples.A, identifier)) == identifier
    assert graph_uuid(samples.A, "no uuid") != graph_uuid(samples.B, "no uuid")
    assert graph_uuid(samples.A, identifier.upper()) != graph_uuid(samples.A, identifier)
