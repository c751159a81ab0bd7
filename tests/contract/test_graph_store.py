"""The graph store's contract on SQLite, on random sequences, and on stores with planted faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import DocumentKnowledge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_testing.stores import graph_replacement
from agentic_rag_testing.stores import graph_samples as samples
from agentic_rag_testing.stores import graph_store as contract


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteGraphStore]:
    opened = await SqliteGraphStore.open(tmp_path / "graph.db")
    yield opened
    await opened.close()


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(store: SqliteGraphStore, check: samples.Check) -> None:
    await check(store)


def _break(monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Plant a fault in one statement."""
    from agentic_rag_backend.stores.graph import knowledge_batches, sqlite

    statement = sqlite._SQL[name]
    assert old in statement
    for module in (knowledge_batches, sqlite):
        monkeypatch.setitem(module._SQL, name, statement.replace(old, new))  # type: ignore[arg-type]


FAULTS = [
    ("another_tenant_sees_nothing", "entities_by_id", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "entity_ids_by_name", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "mentions_page", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "relationships_by_id", "r.tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "fact_sentences", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "mention_counts", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "communities_of_generation", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_changes_nothing", "delete_mentions", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_changes_nothing", "delete_relationship_supports", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_changes_nothing", "delete_generations_below", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_changes_nothing", "delete_tenant_mentions", "tenant = :tenant", ":tenant <> ''"),
    (
        "writing_is_repeatable",
        "add_mention",
        "SET count = excluded.count, about = excluded.about\nWHERE count <> excluded.count OR",
        "SET count = count + 1 WHERE 1 OR",
    ),
    (
        "deletes_remove_everything",
        "delete_unsupported_entities",
        "DELETE FROM entities\nWHERE",
        "DELETE FROM entities\nWHERE 0 AND",
    ),
    ("deletes_remove_everything", "delete_unsupported_relationships", "WHERE tenant", "WHERE 0 AND tenant"),
    (
        "deletes_keep_facts_of_other_documents",
        "delete_relationship_supports",
        "AND document_id = :document",
        "AND :document <> ''",
    ),
    ("aliases_are_deleted_with_their_document", "delete_unsupported_names", "WHERE tenant", "WHERE 0 AND tenant"),
    ("late_deletes_keep_newer_versions", "delete_mentions", "AND version <= :version", "AND :version > 0"),
    ("late_deletes_keep_newer_versions", "delete_relationship_supports", "AND version <= :version", "AND :version > 0"),
    ("a_version_can_be_withdrawn", "delete_mentions", "AND version > :above", "AND :above >= 0"),
    ("a_version_can_be_withdrawn", "delete_relationship_supports", "AND version > :above", "AND :above >= 0"),
    ("generations_are_separate", "delete_generation", "AND generation = :generation", "AND :generation > 0"),
    ("generations_are_separate", "communities_of_generation", "entity_count DESC", "entity_count ASC"),
    ("another_tenant_sees_nothing", "names_page", "s.tenant = :tenant", ":tenant <> ''"),
    ("names_are_streamed_by_document", "names_page", "e.name, e.type", "s.name, e.type"),
    ("names_are_streamed_by_document", "names_of_document_page", "AND s.document_id = :document", "AND :document <> ''"),
    ("names_are_streamed_by_document", "names_of_document_page", "e.name, e.type", "s.name, e.type"),
    ("another_tenant_sees_nothing", "mention_batches_page", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "name_batches_page", "tenant = :tenant", ":tenant <> ''"),
    ("knowledge_batches_equal_mentions_and_names", "mention_batches_page", "group_concat(about, '')", "group_concat(0, '')"),
    (
        "knowledge_batches_equal_mentions_and_names",
        "mention_batches_of_document",
        "AND document_id = :document",
        "AND :document <> ''",
    ),
    (
        "knowledge_batches_equal_mentions_and_names",
        "name_batches_of_document",
        "AND document_id = :document",
        "AND :document <> ''",
    ),
    ("knowledge_batches_equal_mentions_and_names", "entity_labels_of_document", "id, name, type", "id, id, type"),
    ("knowledge_batches_equal_mentions_and_names", "entity_labels_page", "id, name, type", "id, type, name"),
    ("documents_are_selected", "mentions_of_document_page", "AND document_id = :document", "AND :document <> ''"),
    ("versions_are_listed", "record_version", "mentions WHERE tenant = :tenant AND document_id = :document", "mentions WHERE 1"),
    ("versions_are_listed", "documents_page", "UNION\nSELECT document_id FROM written", "EXCEPT SELECT document_id FROM written"),
    ("versions_are_listed", "delete_written_versions", "AND version <= :version", "AND :version > 0"),
    ("versions_are_listed", "held_versions", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "generations", "tenant = :tenant", ":tenant <> ''"),
    ("tenants_are_listed", "delete_written_versions", "WHERE tenant", "WHERE 0 AND tenant"),
    (
        "a_revision_identifies_one_state_of_knowledge",
        "renew_revision",
        "SET revision = excluded.revision",
        "SET revision = revision",
    ),
    ("a_revision_identifies_one_state_of_knowledge", "renew_revision", "hex(randomblob(16))", "'1'"),
    ("a_revision_identifies_one_state_of_knowledge", "change_revision", "WHERE tenant", "WHERE 0 AND tenant"),
    ("another_tenant_sees_nothing", "revision", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "edges_from", "tenant = :tenant", ":tenant <> ''"),
    ("another_tenant_sees_nothing", "edges_to", "tenant = :tenant", ":tenant <> ''"),
    ("the_heaviest_edges_of_an_entity_are_returned", "edges_from", "weight DESC", "weight ASC"),
    ("the_heaviest_edges_of_an_entity_are_returned", "edges_to", ":relations IS NULL", "1"),
    ("equal_weights_are_ordered_by_id", "edges_from", "id DESC", "id ASC"),
    ("the_weight_of_an_edge_follows_its_supports", "weigh_relationships", "SUM(r.weight)", "MAX(r.weight)"),
    ("the_weight_of_an_edge_follows_its_supports", "weigh_relationships", ", document_id\n", ", document_id, version\n"),
    ("the_weight_of_an_edge_follows_its_supports", "weigh_relationships", "relationships.weight <>", "relationships.weight <"),
    ("a_tenant_is_removed_completely", "delete_tenant_communities", "WHERE tenant", "WHERE 0 AND tenant"),
]


@pytest.mark.parametrize(
    ("check", "statement", "old", "new"), FAULTS, ids=[f"{number}-{fault[1]}" for number, fault in enumerate(FAULTS)]
)
async def test_faulty_statements_fail(
    store: SqliteGraphStore, monkeypatch: pytest.MonkeyPatch, check: str, statement: str, old: str, new: str
) -> None:
    _break(monkeypatch, statement, old, new)
    with pytest.raises((AssertionError, KeyError)):
        await contract.BY_NAME[check](store)


class _AnyScope(SqliteGraphStore):
    """Accepts any value as a tenant."""

    async def counts(self, tenant: TenantId) -> contract.GraphCounts:  # type: ignore[name-defined]
        return await super().counts(tenant if isinstance(tenant, TenantId) else samples.A)


class _HalfWrites(SqliteGraphStore):
    """Writes the entities in a separate transaction."""

    async def write_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> None:
        bare = DocumentKnowledge(
            document_id=knowledge.document_id,
            version=knowledge.version,
            title=knowledge.title,
            chunk_ids=(),
            entities=knowledge.entities,
        )
        await super().write_document(tenant, bare)
        await super().write_document(tenant, knowledge)


class _ReplacesInTwoSteps(SqliteGraphStore):
    """Deletes the old knowledge in a separate transaction."""

    async def replace_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> set[str]:
        gone = await self.delete_document(tenant, knowledge.document_id, up_to_version=knowledge.version)
        await asyncio.sleep(0.02)
        await self.write_document(tenant, knowledge)
        return set(gone.relationship_ids) - {each.id for each in knowledge.relationships}


class _EmptyMeansAll(SqliteGraphStore):
    """Treats an empty list of documents as no selection."""

    def all_mentions(self, tenant, document_ids=None):  # type: ignore[no-untyped-def]
        return super().all_mentions(tenant, document_ids or None)


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (_AnyScope, contract.every_method_requires_a_tenant),
        (_HalfWrites, contract.writes_are_atomic),
        (_ReplacesInTwoSteps, graph_replacement.readers_find_a_version_while_it_is_replaced),
        (_ReplacesInTwoSteps, graph_replacement.a_refused_replacement_changes_nothing),
        (_ReplacesInTwoSteps, graph_replacement.replacing_writes_a_version_that_is_missing),
        (_EmptyMeansAll, contract.empty_selections_return_nothing),
    ],
)
async def test_faulty_stores_fail(tmp_path: Path, faulty: type[SqliteGraphStore], check: samples.Check) -> None:
    store = await faulty.open(tmp_path / "graph.db")
    with pytest.raises(AssertionError):
        await check(store)
    await store.close()


class _Model:
    """The expected contents of the store: documents written and not deleted."""

    def __init__(self) -> None:
        self.written: dict[tuple[str, int], DocumentKnowledge] = {}

    def expected(self) -> dict[str, object]:
        documents = self.written.values()
        sentences = {sentence for document in documents for sentence in document.relationship_supports}
        return {
            "mentions": sorted({repr(mention) for document in documents for mention in document.mentions}),
            "sentences": sorted(map(repr, map(samples.stated, sentences))),
            "relationships": {sentence.relationship_id for sentence in sentences},
            "entities": {
                entity.id: (
                    entity.name,
                    {alias for other in documents for same in other.entities if same.id == entity.id for alias in same.aliases},
                )
                for document in documents
                for entity in document.entities
            },
        }


_names = st.sampled_from(["Ada", "Acme", "Bolt", "Nuts"])
_statements = st.lists(st.tuples(_names, st.sampled_from(["founded", "bought"]), _names), max_size=3, unique=True)
_aliases = st.dictionaries(_names, st.lists(st.sampled_from(["Alpha", "Beta"]), unique=True), max_size=2)
_documents = st.builds(
    lambda document, version, statements, aliases: samples.knowledge(document, statements, version=version, aliases=aliases),
    st.sampled_from(["one", "two"]),
    st.integers(1, 3),
    _statements,
    _aliases,
)
_deletes = st.tuples(st.sampled_from(["one", "two"]), st.integers(1, 3))
_steps = st.lists(st.tuples(st.sampled_from([samples.A, samples.B]), _documents | _deletes), max_size=10)


@settings(max_examples=60)
@given(steps=_steps)
def test_random_sequences_match_a_model(steps: list[tuple[TenantId, DocumentKnowledge | tuple[str, int]]]) -> None:
    asyncio.run(_follow(steps))


async def _follow(steps: list[tuple[TenantId, DocumentKnowledge | tuple[str, int]]]) -> None:
    models = {samples.A: _Model(), samples.B: _Model()}
    with TemporaryDirectory() as folder:
        store = await SqliteGraphStore.open(Path(folder) / "graph.db")
        for tenant, step in steps:
            written = models[tenant].written
            if isinstance(step, tuple):
                await store.delete_document(tenant, step[0], up_to_version=step[1])
                models[tenant].written = {
                    key: value for key, value in written.items() if not (key[0] == step[0] and key[1] <= step[1])
                }
            else:
                key = (step.document_id, step.version)
                await (store.replace_document if key in written else store.write_document)(tenant, step)
                written[key] = step
        for tenant, model in models.items():
            found = await samples.snapshot(store, tenant)
            expected = model.expected()
            assert found["mentions"] == expected["mentions"]
            assert found["sentences"] == expected["sentences"]
            assert set(found["relationships"]) == expected["relationships"]
            assert {key: (entity.name, set(entity.aliases)) for key, entity in found["entities"].items()} == expected["entities"]
            facts = " ".join(found["sentences"])
            assert all(relationship.fact in facts for relationship in found["relationships"].values())
        await store.close()
