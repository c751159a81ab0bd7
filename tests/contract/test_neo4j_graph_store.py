"""The graph store's contract on Neo4j, on statements with planted faults, and compared with SQLite on random sequences."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.domain.graph import DocumentKnowledge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph import neo4j_writes
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress, Transaction
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_testing.stores import graph_samples as samples
from agentic_rag_testing.stores import graph_store as contract


@pytest.fixture
async def store(empty_neo4j: Neo4jAddress) -> AsyncIterator[Neo4jGraphStore]:
    opened = await Neo4jGraphStore.open(empty_neo4j)
    yield opened
    await opened.close()


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_neo4j(store: Neo4jGraphStore, check: samples.Check) -> None:
    await check(store)


_ANY = "<> $tenant + '!'"

FAULTS = [
    ("another_tenant_sees_nothing", "entities_by_name", "{group_id: $tenant, normalised: wanted}", "{normalised: wanted}"),
    ("another_tenant_sees_nothing", "mentions_page", "m.group_id = $tenant", f"m.group_id {_ANY}"),
    ("another_tenant_sees_nothing", "names_page", "c.group_id = $tenant", f"c.group_id {_ANY}"),
    ("another_tenant_sees_nothing", "relationships_page", "group_id = $tenant", f"group_id {_ANY}"),
    ("another_tenant_sees_nothing", "communities_of_generation", "group_id: $tenant, ", ""),
    ("another_tenant_sees_nothing", "counts", "m.group_id = $tenant", f"m.group_id {_ANY}"),
    ("another_tenant_changes_nothing", "delete_mentions", "m.group_id = $tenant", f"m.group_id {_ANY}"),
    ("another_tenant_changes_nothing", "delete_tenant_mentions", "m.group_id = $tenant", f"m.group_id {_ANY}"),
    ("another_tenant_changes_nothing", "delete_generations_below", "k.group_id = $tenant", f"k.group_id {_ANY}"),
    ("writing_is_repeatable", "add_mentions", "SET m.count = row.count", "SET m.count = coalesce(m.count, 0) + row.count"),
    ("writing_is_repeatable", "add_statements", "{uuid: row.uuid, group_id", "{uuid: randomUUID(), group_id"),
    (
        "deletes_remove_everything",
        "delete_unsupported_entities",
        "NOT EXISTS { (e)<-[m:MENTIONS]-() WHERE m.position IS NOT NULL }",
        "false",
    ),
    ("deletes_remove_everything", "delete_unsupported_relationships", "WHERE r.group_id", "WHERE false AND r.group_id"),
    ("deletes_keep_facts_of_other_documents", "delete_statements", "AND s.position >= $from AND s.position < $to", ""),
    ("aliases_are_deleted_with_their_document", "delete_unsupported_names", "WHERE n.name", "WHERE false AND n.name"),
    ("late_deletes_keep_newer_versions", "delete_mentions", "AND m.position < $to", ""),
    ("a_version_can_be_withdrawn", "delete_mentions", "m.position >= $from AND", ""),
    ("a_version_can_be_withdrawn", "delete_versions", "v.version > $above AND", ""),
    ("generations_are_separate", "delete_generation", ", generation: $generation", ""),
    ("generations_are_separate", "communities_of_generation", "count DESC", "count ASC"),
    ("names_are_streamed_by_document", "names_page", "e.name AS name", "n.name AS name"),
    ("documents_are_selected", "mentions_of_documents_page", "m.position STARTS WITH prefix AND", ""),
    ("versions_are_listed", "record_version", "SET v.names = COUNT { (v)-[:CALLS]->() }", "SET v.names = 7"),
    ("versions_are_listed", "delete_versions", "DETACH DELETE v", "RETURN v"),
    ("tenants_are_listed", "list_tenants", "WHERE EXISTS", "WHERE true OR EXISTS"),
    ("a_revision_identifies_one_state_of_knowledge", "lock_knowledge", ", t.revision = randomUUID()", ""),
    ("a_revision_identifies_one_state_of_knowledge", "knowledge_of_versions", ", t.revision = randomUUID()", ""),
    ("another_tenant_sees_nothing", "revision", "{group_id: $tenant}", ""),
    ("the_heaviest_edges_of_an_entity_are_returned", "edges_from", "r.weight DESC, r.id DESC", "r.weight ASC, r.id ASC"),
    ("the_heaviest_edges_of_an_entity_are_returned", "edges_to", "$relations IS NULL", "true"),
    ("equal_weights_are_ordered_by_id", "edges_from", "r.id DESC", "r.id ASC"),
    ("the_weight_of_an_edge_follows_its_supports", "refresh_relationships", "max(s.weight)", "min(s.weight)"),
    ("a_tenant_is_removed_completely", "delete_tenant_theme_records", "k.group_id = $tenant", "k.group_id = $tenant AND false"),
]


@pytest.mark.parametrize(("check", "statement", "old", "new"), FAULTS, ids=[f"{fault[1]}-{fault[0]}" for fault in FAULTS])
async def test_faulty_statements_fail(
    store: Neo4jGraphStore, monkeypatch: pytest.MonkeyPatch, check: str, statement: str, old: str, new: str
) -> None:
    # Hints name the predicates that a fault removes.
    text = re.sub(r" USING INDEX SEEK \w+:\w+\([^)]*\)", "", neo4j_writes.CYPHER[statement])
    assert old in text
    monkeypatch.setitem(neo4j_writes.CYPHER, statement, text.replace(old, new))  # type: ignore[arg-type]
    with pytest.raises((AssertionError, KeyError)):
        await contract.BY_NAME[check](store)


@pytest.mark.parametrize("check", [contract.writes_are_atomic, contract.references_to_another_tenant_are_refused])
async def test_a_store_that_leaves_out_what_does_not_fit_fails(
    store: Neo4jGraphStore, monkeypatch: pytest.MonkeyPatch, check: samples.Check
) -> None:
    async def careless(transaction: Transaction, name: str, values: Mapping[str, Any]) -> None:
        await transaction.run(neo4j_writes.CYPHER[name], values)

    monkeypatch.setattr(neo4j_writes, "add_rows", careless)
    with pytest.raises(AssertionError):
        await check(store)


_names = st.sampled_from(["Ada", "Acme", "acme", "Zoë", "\ufffdx", "\U0001f600x", "The Acme"])
_statements = st.lists(st.tuples(_names, st.sampled_from(["founded", "bought"]), _names), max_size=4, unique=True)
_aliases = st.dictionaries(_names, st.lists(st.sampled_from(["Alpha", "Beta", "ACME"]), unique=True), max_size=2)
_times = st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive


@st.composite
def _documents(draw: st.DrawFn) -> DocumentKnowledge:
    """Return knowledge of documents that differ in every respect in which documents can differ."""
    whole = samples.knowledge(
        draw(st.sampled_from(["one", "one-b", "two"])),
        draw(_statements),
        version=draw(st.integers(1, 3)),
        aliases=draw(_aliases),
    )
    types, descriptions = st.sampled_from(["thing", "document"]), st.sampled_from(["", "", "a maker", "a town"])
    called = st.none() | _names  # an entity may have another name in every document
    entities = [
        replace(entity, description=draw(descriptions), type=draw(types), name=draw(called) or entity.name)
        for entity in whole.entities
    ]
    relationships = [
        replace(each, weight=draw(st.sampled_from([0.5, 1.0, 2.5])), valid_at=draw(_times), invalid_at=draw(_times))
        for each in whole.relationships
    ]
    sentences = whole.relationship_supports if draw(st.booleans()) else ()
    return replace(
        whole, entities=tuple(entities), relationships=tuple(relationships), relationship_supports=sentences, title=draw(_names)
    )


_deletes = st.tuples(st.sampled_from(["one", "one-b", "two"]), st.integers(1, 3), st.integers(0, 2))
_steps = st.lists(st.tuples(st.integers(0, 1), _documents() | _deletes), max_size=7)


def _named(document: str, *names: str) -> DocumentKnowledge:
    """Return a document that uses these names for one entity. The first is its own name."""
    whole = samples.knowledge(document, [("Ada", "knows", "Ada")])
    return replace(whole, entities=(replace(whole.entities[0], name=names[0], aliases=names[1:]),))


# The remaining name is the first by code point, which differs from the order of UTF-16.
@example(steps=[(0, _named("one", "Zoë")), (0, _named("two", "\U0001f600x", "\ufffdx")), (0, ("one", 3, 0))])
@sampled(gate=6, deep=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps)
def test_both_adapters_hold_the_same(empty_neo4j: Neo4jAddress, steps: list[tuple[int, Any]]) -> None:
    asyncio.run(_compare(empty_neo4j, steps))


async def _compare(address: Neo4jAddress, steps: list[tuple[int, Any]]) -> None:
    tenants = [TenantId.new(), TenantId.new()]
    with TemporaryDirectory() as folder:
        stores: list[GraphStore] = [await SqliteGraphStore.open(Path(folder) / "graph.db"), await Neo4jGraphStore.open(address)]
        for which, step in steps:
            results = [await _apply(store, tenants[which], step) for store in stores]
            assert results[0] == results[1]
        for tenant in tenants:
            found = [await _everything(store, tenant) for store in stores]
            assert found[0] == found[1]
            assert await stores[1].delete_tenant(tenant) >= 0
        for store in stores:
            await store.close()


async def _apply(store: GraphStore, tenant: TenantId, step: Any) -> Any:
    if isinstance(step, DocumentKnowledge):
        return await store.write_document(tenant, step)
    document, up_to, above = step
    return await store.delete_document(tenant, document, up_to_version=up_to, above=above)


async def _everything(store: GraphStore, tenant: TenantId) -> dict[str, Any]:
    """Return everything that a tenant can read, in the order of reading."""
    entities = [entity async for batch in store.all_entities(tenant) for entity in batch]
    relationships = [each async for batch in store.all_relationships(tenant) for each in batch]
    ids = [entity.id for entity in entities]
    edges = [relationship.id for relationship in relationships]
    some = ["two", "one"]
    return {
        "entities": entities,
        "relationships": relationships,
        "mentions": [mention async for batch in store.all_mentions(tenant) for mention in batch],
        "names": [name async for batch in store.all_names(tenant) for name in batch],
        "versions": [version async for batch in store.all_versions(tenant) for version in batch],
        "some": [
            [mention async for batch in store.all_mentions(tenant, some) for mention in batch],
            [name async for batch in store.all_names(tenant, some) for name in batch],
            [each async for batch in store.all_relationships(tenant, some) for each in batch],
            [version async for batch in store.all_versions(tenant, some) for version in batch],
        ],
        "found": await store.find_entities(tenant, ["acme", "ALPHA", "zoë", "nobody"]),
        "by id": [await store.entities(tenant, ids), await store.relationships(tenant, edges[::-1])],
        "between": await store.relationships_of(tenant, ids[1:]),
        "edges": await store.edges_at(tenant, ids, limit=3),
        "sentences": await store.fact_sentences(tenant, edges[::-1]),
        "counts": [await store.counts(tenant), dict(await store.mention_counts(tenant, ids))],
    }
