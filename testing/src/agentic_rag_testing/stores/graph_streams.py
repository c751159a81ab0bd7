"""Contract of every graph store for the streams of a tenant's knowledge, and for the lists of versions and tenants."""

from __future__ import annotations

from dataclasses import replace

from agentic_rag_backend.domain.graph import (
    DocumentKnowledge,
    Naming,
)
from agentic_rag_backend.stores.graph.base import GraphStore, HeldVersion
from agentic_rag_testing.stores.graph_samples import (
    COMMUNITY,
    ONE,
    RELATIONSHIPS,
    TWO,
    A,
    B,
    Check,
    batches,
    equal,
    everything,
    fill,
    knowledge,
)


async def documents_are_selected(store: GraphStore) -> None:
    """Streams of some documents contain their mentions, and their relationships with the supports of all documents."""
    await fill(store, A)
    mentions = await everything(store.all_mentions(A, ["two", "two", "unknown"]))
    equal(sorted(map(repr, mentions)), sorted(map(repr, TWO.mentions)))
    relationships = await everything(store.all_relationships(A, ["two"]))
    equal({relationship.id for relationship in relationships}, {relationship.id for relationship in TWO.relationships})
    shared = next(relationship for relationship in relationships if relationship.id == RELATIONSHIPS[0])
    equal({support.document_id for support in shared.supports}, {"one", "two"})


async def names_are_streamed_by_document(store: GraphStore) -> None:
    """Every name comes with each version that uses it and with its entity's stored name, optionally of some documents."""
    await fill(store, A)
    newer = knowledge("one", [("Acme", "sells", "Bolt")], version=2, aliases={"Acme": ["The Company"]})
    await store.write_document(A, newer)
    expected = {document: _namings(document) for document in (ONE, TWO, newer)}
    found = await everything(store.all_names(A))
    equal(sorted(map(repr, found)), sorted(repr(name) for names in expected.values() for name in names))
    found = await everything(store.all_names(A, ["two", "two", "unknown"]))
    equal(sorted(map(repr, found)), sorted(map(repr, expected[TWO])))
    await store.delete_document(A, "one", up_to_version=1)
    found = await everything(store.all_names(A, ["one"]))
    equal(sorted(map(repr, found)), sorted(map(repr, expected[newer])))
    renamed = replace(newer, version=3, entities=(replace(newer.entities[0], name="Acme Holding", aliases=()),), mentions=())
    await store.write_document(A, replace(renamed, relationships=(), relationship_supports=()))
    (name,) = [name for name in await everything(store.all_names(A, ["one"])) if name.version == 3]
    equal((name.name, name.entity_name), ("Acme Holding", "Acme"))  # an entity keeps the name first seen


async def knowledge_batches_equal_mentions_and_names(store: GraphStore) -> None:
    """`stream_knowledge` returns the same as the streams of mentions and of names, for all and for some documents."""
    await fill(store, A)
    await store.write_document(A, knowledge("one", [("Acme", "sells", "Bolt")], version=2, aliases={"Acme": ["The Company"]}))
    titled = replace(knowledge("four", [("Ada", "leads", "Acme")]).mentions[0], about=True)
    four = knowledge("four", [("Ada", "leads", "Acme")])
    await store.write_document(A, replace(four, mentions=(titled, *four.mentions[1:])))
    for documents in (None, ["two", "two", "unknown", "four"], ["one"]):
        mentions = await everything(store.all_mentions(A, documents))
        expected = sorted(repr((each.support, each.entity_id, each.about)) for each in mentions)
        names = sorted(map(repr, await everything(store.all_names(A, documents))))
        equal(await batches(store.stream_knowledge(A, documents)), expected + names)


def _namings(document: DocumentKnowledge) -> list[Naming]:
    """Return the names that a document of this module uses."""
    return [
        Naming(
            document_id=document.document_id,
            version=document.version,
            entity_id=entity.id,
            name=name,
            entity_name=entity.name,
            entity_type=entity.type,
        )
        for entity in document.entities
        for name in (entity.name, *entity.aliases)
    ]


async def versions_are_listed(store: GraphStore) -> None:
    """Every version that was written and not deleted, in order, including empty ones, optionally of some documents."""
    silent = knowledge("silent", [])
    later = knowledge("one", [("Ada", "left", "Acme")], version=2)
    for document in (TWO, silent, later, ONE, ONE):
        await store.write_document(A, document)
    await store.write_document(B, ONE)
    whole = [HeldVersion(*key, whole=True) for key in (("one", 1), ("one", 2), ("silent", 1), ("two", 1))]
    equal(await everything(store.all_versions(A)), whole)
    equal(await everything(store.all_versions(A, ["two", "one", "unknown"])), [whole[0], whole[1], whole[3]])
    await store.delete_document(A, "one", up_to_version=1)
    equal(await everything(store.all_versions(A)), whole[1:])
    await store.delete_document(B, "one", up_to_version=1)
    many = [knowledge(f"many-{number:03}", []) for number in range(450)]
    for document in many:
        await store.write_document(B, document)
    equal([held.document_id for held in await everything(store.all_versions(B))], [document.document_id for document in many])


async def tenants_are_listed(store: GraphStore) -> None:
    """Exactly the tenants with any data."""
    equal(await store.tenants(), [])
    await store.write_communities(B, 1, [COMMUNITY])
    await store.write_document(A, ONE)
    equal(await store.tenants(), [A, B])
    await store.delete_document(A, "one", up_to_version=1)
    equal(await store.tenants(), [B])


CHECKS: tuple[Check, ...] = (
    documents_are_selected,
    names_are_streamed_by_document,
    knowledge_batches_equal_mentions_and_names,
    versions_are_listed,
    tenants_are_listed,
)
