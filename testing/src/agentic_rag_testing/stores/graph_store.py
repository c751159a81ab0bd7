"""Contract of every graph store: run `CHECKS` against an adapter, each on a new, empty store.

A check is an async function of the store that raises `AssertionError`. ``tests/contract/test_graph_store.py`` shows how to run
them, and that stores with planted faults fail them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from agentic_rag_backend.domain.graph import (
    Entity,
    GraphDeletion,
    Mention,
    Support,
    normalise_name,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, InvalidScope, StoreUnavailable
from agentic_rag_backend.stores.graph.base import CommunityStore, GraphCounts, GraphStore, KnowledgeStore
from agentic_rag_testing.stores import graph_edges, graph_names, graph_replacement, graph_streams
from agentic_rag_testing.stores.graph_samples import (
    COMMUNITY,
    ENTITIES,
    ONE,
    RELATIONSHIPS,
    TWO,
    A,
    B,
    Check,
    batches,
    community,
    entity_id,
    equal,
    everything,
    fill,
    knowledge,
    snapshot,
    stated,
    true,
)

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "write_document": lambda store, tenant: store.write_document(tenant, knowledge("three", [("Ada", "knows", "Eve")])),
    "replace_document": lambda store, tenant: store.replace_document(tenant, knowledge("one", [("Ada", "knows", "Eve")])),
    "delete_document": lambda store, tenant: store.delete_document(tenant, "one", up_to_version=9),
    "find_entities": lambda store, tenant: store.find_entities(tenant, ["ada", "acme", "acme corporation"]),
    "documents_naming": lambda store, tenant: store.documents_naming(tenant, ["ada", "acme"]),
    "name_uses": lambda store, tenant: store.name_uses(tenant, ["ada", "acme"], "main", limit=9),
    "entities": lambda store, tenant: store.entities(tenant, ENTITIES),
    "relationships": lambda store, tenant: store.relationships(tenant, RELATIONSHIPS),
    "relationships_of": lambda store, tenant: store.relationships_of(tenant, ENTITIES),
    "edges_at": lambda store, tenant: store.edges_at(tenant, ENTITIES, limit=9),
    "fact_sentences": lambda store, tenant: store.fact_sentences(tenant, RELATIONSHIPS),
    "all_entities": lambda store, tenant: everything(store.all_entities(tenant)),
    "all_mentions": lambda store, tenant: everything(store.all_mentions(tenant)),
    "all_names": lambda store, tenant: everything(store.all_names(tenant)),
    "stream_knowledge": lambda store, tenant: batches(store.stream_knowledge(tenant)),
    "all_relationships": lambda store, tenant: everything(store.all_relationships(tenant)),
    "all_versions": lambda store, tenant: everything(store.all_versions(tenant)),
    "revision": lambda store, tenant: store.revision(tenant),
    "counts": lambda store, tenant: store.counts(tenant),
    "mention_counts": lambda store, tenant: store.mention_counts(tenant, ENTITIES),
    "write_communities": lambda store, tenant: store.write_communities(tenant, 1, [community("x", 1, ["Ada"])]),
    "communities": lambda store, tenant: store.communities(tenant, 1),
    "generations": lambda store, tenant: store.generations(tenant),
    "delete_generations": lambda store, tenant: store.delete_generations(tenant, below=99),
    "delete_tenant": lambda store, tenant: store.delete_tenant(tenant),
}
"""A call of every method that takes a tenant, with ids of the sample documents."""


_WRITES = ("write_document", "replace_document", "delete_document", "write_communities", "delete_generations", "delete_tenant")


async def every_method_requires_a_tenant(store: GraphStore) -> None:
    """None, text and the empty scope are refused by every method, without effect."""
    await fill(store, A)
    before = await snapshot(store, A)
    for name in _tenant_methods():
        for scope in (None, "", str(A), 0):
            try:
                await OPERATIONS[name](store, scope)
            except InvalidScope:
                continue
            raise AssertionError(f"{name} accepted {scope!r} as a tenant")
    equal(await snapshot(store, A), before)


async def another_tenant_sees_nothing(store: GraphStore) -> None:
    """With A's ids and names, B reads nothing."""
    await fill(store, A)
    for name in _tenant_methods():
        if name not in _WRITES:
            found = await OPERATIONS[name](store, B)
            true(not found or found == GraphCounts(), f"{name} shows another tenant {found!r}")
    equal(await store.relationships(B, RELATIONSHIPS), {})


async def another_tenant_changes_nothing(store: GraphStore) -> None:
    """With A's ids, no write or delete of B changes A. Both tenants may use the same ids."""
    await fill(store, A)
    before = await snapshot(store, A)
    for name in _WRITES:
        await fill(store, B)
        await OPERATIONS[name](store, B)
        equal(await snapshot(store, A), before)


async def references_to_another_tenant_are_refused(store: GraphStore) -> None:
    """A relationship or mention of an entity that only another tenant has is refused as a whole."""
    await fill(store, A)
    before = await snapshot(store, B)
    whole = knowledge("three", [("Ada", "knows", "Acme")])
    for dangling in (replace(whole, entities=()), replace(whole, entities=whole.entities[:1], mentions=())):
        try:
            await store.write_document(B, dangling)
        except InvalidRequest:
            equal(await snapshot(store, B), before)
            continue
        raise AssertionError("knowledge that refers to another tenant's entity was accepted")


async def writing_is_repeatable(store: GraphStore) -> None:
    """Writing the same knowledge and communities again changes nothing."""
    await fill(store, A)
    before = await snapshot(store, A)
    equal(before["counts"], GraphCounts(entities=4, relationships=3, mentions=8))
    await fill(store, A)
    equal(await snapshot(store, A), before)


async def reads_return_what_was_written(store: GraphStore) -> None:
    """Every read returns the samples' data."""
    await fill(store, A)
    acme = Entity(id=entity_id("Acme"), name="Acme", type="thing", aliases=("ACM", "Acme Corporation"))
    found = (await store.entities(A, [acme.id, "unknown"]))[acme.id]
    equal(replace(found, aliases=tuple(sorted(found.aliases))), acme)
    founded = (await store.relationships(A, [RELATIONSHIPS[0], "unknown"]))[RELATIONSHIPS[0]]
    supports = {sentence.support for sentence in (*ONE.relationship_supports, *TWO.relationship_supports)}
    of_founded = {support for support in supports if support.chunk_id in {ONE.chunk_ids[0], TWO.chunk_ids[0]}}
    equal(set(founded.supports), of_founded)
    true(founded.fact in {ONE.relationships[0].fact, TWO.relationships[0].fact}, "a fact that no support says")
    said = await store.fact_sentences(A, [RELATIONSHIPS[1]])
    equal(said, [stated(ONE.relationship_supports[1])])
    between = await store.relationships_of(A, [entity_id("Ada"), entity_id("Acme")])
    equal([relationship.id for relationship in between], [RELATIONSHIPS[0]])
    equal(dict(await store.mention_counts(A, [entity_id("Ada"), entity_id("Nuts")])), {entity_id("Ada"): 2, entity_id("Nuts"): 1})
    mentions = await everything(store.all_mentions(A))
    equal(sorted(map(repr, mentions)), sorted(map(repr, (*ONE.mentions, *TWO.mentions))))


async def entities_are_found_by_name(store: GraphStore) -> None:
    """Names and aliases are found under every spelling with the same normalised form. Two entities may have one name."""
    await fill(store, A)
    other = replace(knowledge("other", [("Ada", "is", "Ada")]).entities[0], id="another-ada", type="ship")
    await store.write_document(A, replace(knowledge("other", []), entities=(other,)))
    found = await store.find_entities(A, ["The ADA", "acme corporation", "a.c.m.", "nobody"])
    equal({entity.id for entity in found[normalise_name("Ada")]}, {entity_id("Ada"), "another-ada"})
    for name in ("Acme Corporation", "ACM"):
        equal([entity.id for entity in found[normalise_name(name)]], [entity_id("Acme")])
    true(not found.get("nobody"), "a name that nobody has was found")


async def empty_selections_return_nothing(store: GraphStore) -> None:
    """Empty selections select nothing and never mean everything."""
    await fill(store, A)
    equal(await store.entities(A, []), {})
    equal(await store.find_entities(A, []), {})
    equal(await store.relationships(A, []), {})
    equal(await store.relationships_of(A, []), [])
    equal(await store.edges_at(A, [], limit=9), {})
    equal(await store.fact_sentences(A, []), [])
    equal(dict(await store.mention_counts(A, [])), {})
    equal(await store.communities(A, 1, ids=[]), [])
    equal(await everything(store.all_mentions(A, [])), [])
    equal(await everything(store.all_names(A, [])), [])
    equal(await batches(store.stream_knowledge(A, [])), [])
    equal(await everything(store.all_relationships(A, [])), [])
    equal(await everything(store.all_versions(A, [])), [])


async def deletes_remove_everything(store: GraphStore) -> None:
    """Deleting the last document removes everything, and the receipt counts it. Deleting again removes nothing."""
    await store.write_document(A, ONE)
    gone = await store.delete_document(A, "one", up_to_version=1)
    equal((gone.entities, gone.relationships, gone.mentions, gone.supports), (3, 2, 4, 2))
    equal(set(gone.entity_ids), {entity.id for entity in ONE.entities})
    equal(set(gone.relationship_ids), {relationship.id for relationship in ONE.relationships})
    equal(await snapshot(store, A), await snapshot(store, B))
    equal(await store.find_entities(A, ["Ada", "Acme", "Acme Corporation"]), {})
    equal(await store.delete_document(A, "one", up_to_version=1), GraphDeletion())
    equal(await store.delete_tenant(A), 0)


async def deletes_keep_facts_of_other_documents(store: GraphStore) -> None:
    """After writing two documents and deleting one, the store equals a store with only the other."""
    await store.write_document(B, TWO)
    expected = await snapshot(store, B)
    await store.write_document(A, ONE)
    await store.write_document(A, TWO)
    await store.delete_document(A, "one", up_to_version=1)
    equal(await snapshot(store, A), expected)


async def aliases_are_deleted_with_their_document(store: GraphStore) -> None:
    """An alias that only a deleted document used is no longer found."""
    await store.write_document(A, ONE)
    await store.write_document(A, TWO)
    await store.delete_document(A, "two", up_to_version=1)
    equal((await store.entities(A, [entity_id("Acme")]))[entity_id("Acme")].aliases, ("Acme Corporation",))
    equal(await store.find_entities(A, ["ACM"]), {})


async def late_deletes_keep_newer_versions(store: GraphStore) -> None:
    """Deleting versions ≤ v keeps v + 1 complete, even if both make the same statement."""
    newer = knowledge("one", [("Ada", "founded", "Acme"), ("Ada", "left", "Acme")], version=2)
    await store.write_document(B, newer)
    expected = await snapshot(store, B)
    await store.write_document(A, ONE)
    await store.write_document(A, newer)
    await store.delete_document(A, "one", up_to_version=1)
    equal(await snapshot(store, A), expected)


async def a_version_can_be_withdrawn(store: GraphStore) -> None:
    """Deleting versions above v keeps the statements of v and older versions, even if both make the same one."""
    await store.write_document(B, ONE)
    expected = await snapshot(store, B)
    await store.write_document(A, ONE)
    await store.write_document(A, knowledge("one", [("Ada", "founded", "Acme"), ("Ada", "left", "Acme")], version=2))
    await store.delete_document(A, "one", up_to_version=2, above=1)
    equal(await snapshot(store, A), expected)


async def the_order_of_writes_does_not_matter(store: GraphStore) -> None:
    """Documents written in another order give the same graph."""
    for document in (ONE, TWO):
        await store.write_document(A, document)
    for document in (TWO, ONE):
        await store.write_document(B, document)
    equal(await snapshot(store, A), await snapshot(store, B))


async def writes_are_atomic(store: GraphStore) -> None:
    """A document with one invalid row, or with a support in another document, leaves no data."""
    bad = replace(ONE, relationships=(*ONE.relationships, replace(ONE.relationships[0], id="bad", target_id="unknown")))
    stray = replace(ONE, mentions=(*ONE.mentions, Mention(entity_id("Ada"), Support("two", 1, "chunk"))))
    for wrong in (bad, stray):
        try:
            await store.write_document(A, wrong)
        except InvalidRequest:
            equal(await snapshot(store, A), await snapshot(store, B))
            continue
        raise AssertionError("knowledge with a bad row was accepted")


async def a_revision_identifies_one_state_of_knowledge(store: GraphStore) -> None:
    """The revision changes with every document written or removed, and only then."""
    seen = [await store.revision(A)]
    equal(seen, [""])
    changes: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: store.write_document(A, ONE),
        lambda: store.write_document(A, TWO),
        lambda: store.delete_document(A, "two", up_to_version=1),
        lambda: store.write_document(A, TWO),
        lambda: store.delete_tenant(A),
        lambda: store.write_document(A, ONE),
    )
    for number, change in enumerate(changes):
        await change()
        seen.append(await store.revision(A))
        true(bool(seen[-1]) is (number != 4), "a revision where nothing is, or none where something is")
        await store.write_document(B, ONE)
        await store.write_communities(A, 1, [COMMUNITY])
        await store.delete_generations(A, below=9)
        equal(await store.revision(A), seen[-1])
    equal(len({each for each in seen if each}), 5)


async def generations_are_separate(store: GraphStore) -> None:
    """Writing a generation replaces only that generation. Old ones are deleted on request."""
    small, large = community("small", 1, ["Ada"]), community("large", 1, ["Acme", "Bolt"])
    deep = replace(community("deep", 1, ["Acme"], level=1), parent_id=large.id)
    second = community("large", 2, ["Bolt", "Acme", "Ada"])
    await store.write_communities(A, 1, [deep, small, large])
    await store.write_communities(A, 2, [second])
    equal(await store.communities(A, 1), [large, small, deep])
    equal(await store.communities(A, 1, level=1), [deep])
    equal(await store.communities(A, 1, members=False), [replace(each, entity_ids=()) for each in (large, small, deep)])
    equal(await store.communities(A, 1, ids=[small.id, second.id]), [small])
    equal(await store.communities(A, 2), [second])
    await store.write_communities(A, 1, [small])
    equal(await store.communities(A, 1), [small])
    equal(await store.delete_generations(A, below=2), 1)
    equal([await store.communities(A, 1), await store.communities(A, 2)], [[], [second]])


async def a_tenant_is_removed_completely(store: GraphStore) -> None:
    """After `delete_tenant` no data is left, and the tenant can be written again."""
    await fill(store, A)
    true(await store.delete_tenant(A) > 0, "delete_tenant reports that nothing went")
    equal(await snapshot(store, A), await snapshot(store, B))
    await fill(store, A)
    equal((await store.counts(A)).entities, 4)


async def unusual_text_is_stored(store: GraphStore) -> None:
    """NUL, lone surrogates, right-to-left text and quotes in names and facts cause no errors and no damage."""
    names = ["N\0UL", "sur\ud800rogate", "'); DROP TABLE entities; --", "שלום", "\U0001f600", " "]
    await store.write_document(A, ONE)
    await store.write_document(A, knowledge("odd", [(name, "is", "Ada") for name in names], aliases={"Ada": names}))
    equal((await store.counts(A)).entities, 3 + len(names))
    found = await store.find_entities(A, [*names, "שלום"])
    true(entity_id("שלום") in {entity.id for entity in found[normalise_name("שלום")]}, "a name is not found")
    await store.delete_document(A, "odd", up_to_version=1)
    await store.write_document(B, ONE)
    equal(await snapshot(store, A), await snapshot(store, B))


async def a_closed_store_raises_an_error(store: GraphStore) -> None:
    """`ping` answers while the store is open; after `close` calls raise `StoreUnavailable`."""
    await store.ping()
    await store.close()
    for call in (store.ping, lambda: store.counts(A)):
        try:
            await call()
        except StoreUnavailable:
            continue
        raise AssertionError("a closed store answered")


CHECKS: tuple[Check, ...] = (
    every_method_requires_a_tenant,
    another_tenant_sees_nothing,
    another_tenant_changes_nothing,
    references_to_another_tenant_are_refused,
    writing_is_repeatable,
    reads_return_what_was_written,
    entities_are_found_by_name,
    empty_selections_return_nothing,
    *graph_streams.CHECKS,
    *graph_edges.CHECKS,
    *graph_names.CHECKS,
    *graph_replacement.CHECKS,
    deletes_remove_everything,
    deletes_keep_facts_of_other_documents,
    aliases_are_deleted_with_their_document,
    late_deletes_keep_newer_versions,
    a_version_can_be_withdrawn,
    the_order_of_writes_does_not_matter,
    writes_are_atomic,
    a_revision_identifies_one_state_of_knowledge,
    generations_are_separate,
    a_tenant_is_removed_completely,
    unusual_text_is_stored,
    a_closed_store_raises_an_error,
)
BY_NAME: dict[str, Check] = {check.__name__: check for check in CHECKS}


class _DeletesTenants(Protocol):
    async def delete_tenant(self, tenant: TenantId) -> int: ...


def _tenant_methods() -> list[str]:
    """Return the methods of the ports, to detect a method without a row in `OPERATIONS`."""
    ports = (KnowledgeStore, CommunityStore, _DeletesTenants)
    names = [name for port in ports for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")]
    equal(sorted(names), sorted(OPERATIONS))
    return names
