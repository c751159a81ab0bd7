"""Contract of every graph store: run `CHECKS` against an adapter, each on a new, empty store.

A check is an async function of the store that raises `AssertionError`. ``tests/contract/test_graph_store.py`` shows how to run
them, and that stores with planted faults fail them.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import (
    Community,
    DocumentKnowledge,
    Entity,
    KnowledgeBatch,
    Mention,
    Naming,
    Relationship,
    RelationshipSupport,
    Support,
    normalise_name,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, InvalidScope, StoreUnavailable
from agentic_rag_backend.stores.graph.base import CommunityStore, GraphCounts, GraphStore, HeldVersion, KnowledgeStore

T = TypeVar("T")
Check = Callable[[GraphStore], Awaitable[None]]
Statement = tuple[str, str, str]
"""Source name, relation, target name."""

A = TenantId("t_" + "a" * 32)
B = TenantId("t_" + "b" * 32)


def entity_id(name: str) -> str:
    """Return the sample id of a name. It is the same for every tenant, so that only the tenant separates them."""
    return stable_id("sample", ascii(name))


def knowledge(
    document_id: str, statements: Sequence[Statement], *, version: int = 1, aliases: Mapping[str, Sequence[str]] | None = None
) -> DocumentKnowledge:
    """Return the knowledge of a document with one statement per chunk. Versions share the chunks of equal statements."""
    entities, mentions, relationships, sentences, chunks = {}, [], [], [], []
    for source, relation, target in statements:
        support = Support(document_id, version, stable_id("chunk", document_id, ascii((source, relation, target))))
        chunks.append(support.chunk_id)
        for name in dict.fromkeys((source, target)):
            known = tuple((aliases or {}).get(name, ()))
            entities[name] = Entity(id=entity_id(name), name=name, type="thing", aliases=known)
            mentions.append(Mention(entity_id(name), support, 2, name == source))
        fact = f"{source} {relation} {target}, says {document_id} in version {version}."
        identifier = stable_id("relationship", ascii((source, relation, target)))
        relationships.append(
            Relationship(
                id=identifier,
                source_id=entity_id(source),
                target_id=entity_id(target),
                relation=relation,
                fact=fact,
                supports=(support,),
            )
        )
        sentences.append(
            RelationshipSupport(relationship_id=identifier, support=support, fact=fact, start_char=7, end_char=7 + len(fact))
        )
    return DocumentKnowledge(
        document_id=document_id,
        version=version,
        title=document_id,
        chunk_ids=tuple(chunks),
        entities=tuple(entities.values()),
        relationships=tuple(relationships),
        mentions=tuple(mentions),
        relationship_supports=tuple(sentences),
    )


def community(name: str, generation: int, members: Sequence[str], *, level: int = 0) -> Community:
    """Return a community of the entities with these names."""
    ids = tuple(entity_id(member) for member in members)
    return Community(
        id=stable_id("community", name, generation),
        generation=generation,
        level=level,
        parent_id=None,
        entity_ids=ids,
        fingerprint=stable_id(*sorted(ids)),
        entity_count=len(ids),
    )


ONE = knowledge("one", [("Ada", "founded", "Acme"), ("Acme", "bought", "Bolt")], aliases={"Acme": ["Acme Corporation"]})
TWO = knowledge("two", [("Ada", "founded", "Acme"), ("Bolt", "makes", "Nuts")], aliases={"Acme": ["ACM", "Acme Corporation"]})
RELATIONSHIPS = tuple(relationship.id for relationship in (*ONE.relationships, *TWO.relationships))
ENTITIES = tuple(entity_id(name) for name in ("Ada", "Acme", "Bolt", "Nuts"))
COMMUNITY = community("makers", 1, ["Ada", "Acme", "Bolt"])

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "write_document": lambda store, tenant: store.write_document(tenant, knowledge("three", [("Ada", "knows", "Eve")])),
    "delete_document": lambda store, tenant: store.delete_document(tenant, "one", up_to_version=9),
    "find_entities": lambda store, tenant: store.find_entities(tenant, ["ada", "acme", "acme corporation"]),
    "entities": lambda store, tenant: store.entities(tenant, ENTITIES),
    "relationships": lambda store, tenant: store.relationships(tenant, RELATIONSHIPS),
    "relationships_of": lambda store, tenant: store.relationships_of(tenant, ENTITIES),
    "fact_sentences": lambda store, tenant: store.fact_sentences(tenant, RELATIONSHIPS),
    "all_entities": lambda store, tenant: _everything(store.all_entities(tenant)),
    "all_mentions": lambda store, tenant: _everything(store.all_mentions(tenant)),
    "all_names": lambda store, tenant: _everything(store.all_names(tenant)),
    "stream_knowledge": lambda store, tenant: _batches(store.stream_knowledge(tenant)),
    "all_relationships": lambda store, tenant: _everything(store.all_relationships(tenant)),
    "all_versions": lambda store, tenant: _everything(store.all_versions(tenant)),
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

_WRITES = ("write_document", "delete_document", "write_communities", "delete_generations", "delete_tenant")


async def snapshot(store: GraphStore, tenant: TenantId) -> dict[str, Any]:
    """Return all data that a tenant can read, in a fixed order for comparisons."""
    relationships = await _everything(store.all_relationships(tenant))
    ids = [relationship.id for relationship in relationships]
    return {
        "entities": {entity.id: entity for entity in await _everything(store.all_entities(tenant))},
        "mentions": sorted(map(repr, await _everything(store.all_mentions(tenant)))),
        "relationships": {relationship.id: relationship for relationship in relationships},
        "sentences": sorted(map(repr, await store.fact_sentences(tenant, ids))),
        "versions": await _everything(store.all_versions(tenant)),
        "generations": await store.generations(tenant),
        "communities": [await store.communities(tenant, generation) for generation in (1, 2, 3)],
        "counts": await store.counts(tenant),
    }


async def every_method_wants_a_tenant(store: GraphStore) -> None:
    """None, text and the empty scope are refused by every method, without effect."""
    await _fill(store, A)
    before = await snapshot(store, A)
    for name in _tenant_methods():
        for scope in (None, "", str(A), 0):
            try:
                await OPERATIONS[name](store, scope)
            except InvalidScope:
                continue
            raise AssertionError(f"{name} accepted {scope!r} as a tenant")
    _equal(await snapshot(store, A), before)


async def another_tenant_sees_nothing(store: GraphStore) -> None:
    """With A's ids and names, B reads nothing."""
    await _fill(store, A)
    for name in _tenant_methods():
        if name not in _WRITES:
            found = await OPERATIONS[name](store, B)
            _true(not found or found == GraphCounts(), f"{name} shows another tenant {found!r}")
    _equal(await store.relationships(B, RELATIONSHIPS), {})


async def another_tenant_changes_nothing(store: GraphStore) -> None:
    """With A's ids, no write or delete of B changes A. Both tenants may use the same ids."""
    await _fill(store, A)
    before = await snapshot(store, A)
    for name in _WRITES:
        await _fill(store, B)
        await OPERATIONS[name](store, B)
        _equal(await snapshot(store, A), before)


async def another_tenant_is_not_referred_to(store: GraphStore) -> None:
    """A relationship or mention of an entity that only another tenant has is refused as a whole."""
    await _fill(store, A)
    before = await snapshot(store, B)
    whole = knowledge("three", [("Ada", "knows", "Acme")])
    for dangling in (replace(whole, entities=()), replace(whole, entities=whole.entities[:1], mentions=())):
        try:
            await store.write_document(B, dangling)
        except InvalidRequest:
            _equal(await snapshot(store, B), before)
            continue
        raise AssertionError("knowledge that refers to another tenant's entity was accepted")


async def writing_is_repeatable(store: GraphStore) -> None:
    """Writing the same knowledge and communities again changes nothing."""
    await _fill(store, A)
    before = await snapshot(store, A)
    _equal(before["counts"], GraphCounts(entities=4, relationships=3, mentions=8))
    await _fill(store, A)
    _equal(await snapshot(store, A), before)


async def what_was_written_is_read(store: GraphStore) -> None:
    """Every read returns the samples' data."""
    await _fill(store, A)
    acme = Entity(id=entity_id("Acme"), name="Acme", type="thing", aliases=("ACM", "Acme Corporation"))
    found = (await store.entities(A, [acme.id, "unknown"]))[acme.id]
    _equal(replace(found, aliases=tuple(sorted(found.aliases))), acme)
    founded = (await store.relationships(A, [RELATIONSHIPS[0], "unknown"]))[RELATIONSHIPS[0]]
    supports = {sentence.support for sentence in (*ONE.relationship_supports, *TWO.relationship_supports)}
    of_founded = {support for support in supports if support.chunk_id in {ONE.chunk_ids[0], TWO.chunk_ids[0]}}
    _equal(set(founded.supports), of_founded)
    _true(founded.fact in {ONE.relationships[0].fact, TWO.relationships[0].fact}, "a fact that no support says")
    said = await store.fact_sentences(A, [RELATIONSHIPS[1]])
    _equal(said, [ONE.relationship_supports[1]])
    between = await store.relationships_of(A, [entity_id("Ada"), entity_id("Acme")])
    _equal([relationship.id for relationship in between], [RELATIONSHIPS[0]])
    _equal(
        dict(await store.mention_counts(A, [entity_id("Ada"), entity_id("Nuts")])), {entity_id("Ada"): 2, entity_id("Nuts"): 1}
    )
    mentions = await _everything(store.all_mentions(A))
    _equal(sorted(map(repr, mentions)), sorted(map(repr, (*ONE.mentions, *TWO.mentions))))


async def names_find_entities(store: GraphStore) -> None:
    """Names and aliases are found under every spelling with the same normalised form. Two entities may have one name."""
    await _fill(store, A)
    other = replace(knowledge("other", [("Ada", "is", "Ada")]).entities[0], id="another-ada", type="ship")
    await store.write_document(A, replace(knowledge("other", []), entities=(other,)))
    found = await store.find_entities(A, ["The ADA", "acme corporation", "a.c.m.", "nobody"])
    _equal({entity.id for entity in found[normalise_name("Ada")]}, {entity_id("Ada"), "another-ada"})
    for name in ("Acme Corporation", "ACM"):
        _equal([entity.id for entity in found[normalise_name(name)]], [entity_id("Acme")])
    _true(not found.get("nobody"), "a name that nobody has was found")


async def nothing_asked_nothing_read(store: GraphStore) -> None:
    """Empty selections select nothing and never mean everything."""
    await _fill(store, A)
    _equal(await store.entities(A, []), {})
    _equal(await store.find_entities(A, []), {})
    _equal(await store.relationships(A, []), {})
    _equal(await store.relationships_of(A, []), [])
    _equal(await store.fact_sentences(A, []), [])
    _equal(dict(await store.mention_counts(A, [])), {})
    _equal(await store.communities(A, 1, ids=[]), [])
    _equal(await _everything(store.all_mentions(A, [])), [])
    _equal(await _everything(store.all_names(A, [])), [])
    _equal(await _batches(store.stream_knowledge(A, [])), [])
    _equal(await _everything(store.all_relationships(A, [])), [])
    _equal(await _everything(store.all_versions(A, [])), [])


async def documents_are_selected(store: GraphStore) -> None:
    """Streams of some documents contain their mentions, and their relationships with the supports of all documents."""
    await _fill(store, A)
    mentions = await _everything(store.all_mentions(A, ["two", "two", "unknown"]))
    _equal(sorted(map(repr, mentions)), sorted(map(repr, TWO.mentions)))
    relationships = await _everything(store.all_relationships(A, ["two"]))
    _equal({relationship.id for relationship in relationships}, {relationship.id for relationship in TWO.relationships})
    shared = next(relationship for relationship in relationships if relationship.id == RELATIONSHIPS[0])
    _equal({support.document_id for support in shared.supports}, {"one", "two"})


async def names_are_told_by_document(store: GraphStore) -> None:
    """Every name comes with each version that uses it and with its entity's stored name, optionally of some documents."""
    await _fill(store, A)
    newer = knowledge("one", [("Acme", "sells", "Bolt")], version=2, aliases={"Acme": ["The Company"]})
    await store.write_document(A, newer)
    expected = {document: _namings(document) for document in (ONE, TWO, newer)}
    found = await _everything(store.all_names(A))
    _equal(sorted(map(repr, found)), sorted(repr(name) for names in expected.values() for name in names))
    found = await _everything(store.all_names(A, ["two", "two", "unknown"]))
    _equal(sorted(map(repr, found)), sorted(map(repr, expected[TWO])))
    await store.delete_document(A, "one", up_to_version=1)
    found = await _everything(store.all_names(A, ["one"]))
    _equal(sorted(map(repr, found)), sorted(map(repr, expected[newer])))
    renamed = replace(newer, version=3, entities=(replace(newer.entities[0], name="Acme Holding", aliases=()),), mentions=())
    await store.write_document(A, replace(renamed, relationships=(), relationship_supports=()))
    (name,) = [name for name in await _everything(store.all_names(A, ["one"])) if name.version == 3]
    _equal((name.name, name.entity_name), ("Acme Holding", "Acme"))  # an entity keeps the name first seen


async def knowledge_batches_equal_mentions_and_names(store: GraphStore) -> None:
    """`stream_knowledge` returns the same as the streams of mentions and of names, for all and for some documents."""
    await _fill(store, A)
    await store.write_document(A, knowledge("one", [("Acme", "sells", "Bolt")], version=2, aliases={"Acme": ["The Company"]}))
    titled = replace(knowledge("four", [("Ada", "leads", "Acme")]).mentions[0], about=True)
    four = knowledge("four", [("Ada", "leads", "Acme")])
    await store.write_document(A, replace(four, mentions=(titled, *four.mentions[1:])))
    for documents in (None, ["two", "two", "unknown", "four"], ["one"]):
        mentions = await _everything(store.all_mentions(A, documents))
        expected = sorted(repr((each.support, each.entity_id, each.about)) for each in mentions)
        names = sorted(map(repr, await _everything(store.all_names(A, documents))))
        _equal(await _batches(store.stream_knowledge(A, documents)), expected + names)


async def _batches(stream: AsyncIterator[KnowledgeBatch]) -> list[str]:
    """Return the mentions and the names of a stream, in a fixed order."""
    batches = [batch async for batch in stream]
    labels = {each.entity_id: each for batch in batches for each in batch.labels}
    mentions = [
        (each.support, entity, about)
        for batch in batches
        for each in batch.mentions
        for entity, about in zip(each.entity_ids, each.about, strict=True)
    ]
    names = [
        Naming(
            document_id=each.document_id,
            version=each.version,
            entity_id=entity,
            name=name,
            entity_name=labels[entity].name,
            entity_type=labels[entity].type,
        )
        for batch in batches
        for each in batch.names
        for entity, name in zip(each.entity_ids, each.names, strict=True)
    ]
    return sorted(map(repr, mentions)) + sorted(map(repr, names))


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
    _equal(await _everything(store.all_versions(A)), whole)
    _equal(await _everything(store.all_versions(A, ["two", "one", "unknown"])), [whole[0], whole[1], whole[3]])
    await store.delete_document(A, "one", up_to_version=1)
    _equal(await _everything(store.all_versions(A)), whole[1:])
    await store.delete_document(B, "one", up_to_version=1)
    many = [knowledge(f"many-{number:03}", []) for number in range(450)]
    for document in many:
        await store.write_document(B, document)
    _equal([held.document_id for held in await _everything(store.all_versions(B))], [document.document_id for document in many])


async def tenants_are_listed(store: GraphStore) -> None:
    """Exactly the tenants with any data."""
    _equal(await store.tenants(), [])
    await store.write_communities(B, 1, [COMMUNITY])
    await store.write_document(A, ONE)
    _equal(await store.tenants(), [A, B])
    await store.delete_document(A, "one", up_to_version=1)
    _equal(await store.tenants(), [B])


async def deleting_leaves_nothing(store: GraphStore) -> None:
    """Deleting the last document removes everything, and the receipt counts it. Deleting again removes nothing."""
    await store.write_document(A, ONE)
    gone = await store.delete_document(A, "one", up_to_version=1)
    _equal(gone.as_counts(), {"entities": 3, "relationships": 2, "mentions": 4, "supports": 2})
    _equal(set(gone.entity_ids), {entity.id for entity in ONE.entities})
    _equal(set(gone.relationship_ids), {relationship.id for relationship in ONE.relationships})
    _equal(await snapshot(store, A), await snapshot(store, B))
    _equal(await store.find_entities(A, ["Ada", "Acme", "Acme Corporation"]), {})
    _equal((await store.delete_document(A, "one", up_to_version=1)).as_counts(), dict.fromkeys(gone.as_counts(), 0))
    _equal(await store.delete_tenant(A), 0)


async def deleting_keeps_what_others_say(store: GraphStore) -> None:
    """After writing two documents and deleting one, the store equals a store with only the other."""
    await store.write_document(B, TWO)
    expected = await snapshot(store, B)
    await store.write_document(A, ONE)
    await store.write_document(A, TWO)
    await store.delete_document(A, "one", up_to_version=1)
    _equal(await snapshot(store, A), expected)


async def aliases_go_with_their_document(store: GraphStore) -> None:
    """An alias that only a deleted document used is no longer found."""
    await store.write_document(A, ONE)
    await store.write_document(A, TWO)
    await store.delete_document(A, "two", up_to_version=1)
    _equal((await store.entities(A, [entity_id("Acme")]))[entity_id("Acme")].aliases, ("Acme Corporation",))
    _equal(await store.find_entities(A, ["ACM"]), {})


async def late_deletes_spare_newer_versions(store: GraphStore) -> None:
    """Deleting versions ≤ v keeps v + 1 complete, even if both make the same statement."""
    newer = knowledge("one", [("Ada", "founded", "Acme"), ("Ada", "left", "Acme")], version=2)
    await store.write_document(B, newer)
    expected = await snapshot(store, B)
    await store.write_document(A, ONE)
    await store.write_document(A, newer)
    await store.delete_document(A, "one", up_to_version=1)
    _equal(await snapshot(store, A), expected)


async def a_version_is_taken_back(store: GraphStore) -> None:
    """Deleting versions above v keeps the statements of v and older versions, even if both make the same one."""
    await store.write_document(B, ONE)
    expected = await snapshot(store, B)
    await store.write_document(A, ONE)
    await store.write_document(A, knowledge("one", [("Ada", "founded", "Acme"), ("Ada", "left", "Acme")], version=2))
    await store.delete_document(A, "one", up_to_version=2, above=1)
    _equal(await snapshot(store, A), expected)


async def order_does_not_matter(store: GraphStore) -> None:
    """Documents written in another order give the same graph."""
    for document in (ONE, TWO):
        await store.write_document(A, document)
    for document in (TWO, ONE):
        await store.write_document(B, document)
    _equal(await snapshot(store, A), await snapshot(store, B))


async def a_write_is_whole_or_not_at_all(store: GraphStore) -> None:
    """A document with one invalid row, or with a support in another document, leaves no data."""
    bad = replace(ONE, relationships=(*ONE.relationships, replace(ONE.relationships[0], id="bad", target_id="unknown")))
    stray = replace(ONE, mentions=(*ONE.mentions, Mention(entity_id("Ada"), Support("two", 1, "chunk"))))
    for wrong in (bad, stray):
        try:
            await store.write_document(A, wrong)
        except InvalidRequest:
            _equal(await snapshot(store, A), await snapshot(store, B))
            continue
        raise AssertionError("knowledge with a bad row was accepted")


async def a_revision_is_of_one_state_of_knowledge(store: GraphStore) -> None:
    """The revision changes with every document written or removed, and only then."""
    seen = [await store.revision(A)]
    _equal(seen, [""])
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
        _true(bool(seen[-1]) is (number != 4), "a revision where nothing is, or none where something is")
        await store.write_document(B, ONE)
        await store.write_communities(A, 1, [COMMUNITY])
        await store.delete_generations(A, below=9)
        _equal(await store.revision(A), seen[-1])
    _equal(len({each for each in seen if each}), 5)


async def generations_stand_side_by_side(store: GraphStore) -> None:
    """Writing a generation replaces only that generation. Old ones are deleted on request."""
    small, large = community("small", 1, ["Ada"]), community("large", 1, ["Acme", "Bolt"])
    deep = replace(community("deep", 1, ["Acme"], level=1), parent_id=large.id)
    second = community("large", 2, ["Bolt", "Acme", "Ada"])
    await store.write_communities(A, 1, [deep, small, large])
    await store.write_communities(A, 2, [second])
    _equal(await store.communities(A, 1), [large, small, deep])
    _equal(await store.communities(A, 1, level=1), [deep])
    _equal(await store.communities(A, 1, ids=[small.id, second.id]), [small])
    _equal(await store.communities(A, 2), [second])
    await store.write_communities(A, 1, [small])
    _equal(await store.communities(A, 1), [small])
    _equal(await store.delete_generations(A, below=2), 1)
    _equal([await store.communities(A, 1), await store.communities(A, 2)], [[], [second]])


async def a_tenant_is_removed_whole(store: GraphStore) -> None:
    """After `delete_tenant` no data is left, and the tenant can be written again."""
    await _fill(store, A)
    _true(await store.delete_tenant(A) > 0, "delete_tenant reports that nothing went")
    _equal(await snapshot(store, A), await snapshot(store, B))
    await _fill(store, A)
    _equal((await store.counts(A)).entities, 4)


async def strange_text_is_stored(store: GraphStore) -> None:
    """NUL, lone surrogates, right-to-left text and quotes in names and facts cause no errors and no damage."""
    names = ["N\0UL", "sur\ud800rogate", "'); DROP TABLE entities; --", "שלום", "\U0001f600", " "]
    await store.write_document(A, ONE)
    await store.write_document(A, knowledge("odd", [(name, "is", "Ada") for name in names], aliases={"Ada": names}))
    _equal((await store.counts(A)).entities, 3 + len(names))
    found = await store.find_entities(A, [*names, "שלום"])
    _true(entity_id("שלום") in {entity.id for entity in found[normalise_name("שלום")]}, "a name is not found")
    await store.delete_document(A, "odd", up_to_version=1)
    await store.write_document(B, ONE)
    _equal(await snapshot(store, A), await snapshot(store, B))


async def a_closed_store_says_so(store: GraphStore) -> None:
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
    every_method_wants_a_tenant,
    another_tenant_sees_nothing,
    another_tenant_changes_nothing,
    another_tenant_is_not_referred_to,
    writing_is_repeatable,
    what_was_written_is_read,
    names_find_entities,
    nothing_asked_nothing_read,
    documents_are_selected,
    names_are_told_by_document,
    versions_are_listed,
    tenants_are_listed,
    deleting_leaves_nothing,
    deleting_keeps_what_others_say,
    aliases_go_with_their_document,
    late_deletes_spare_newer_versions,
    a_version_is_taken_back,
    order_does_not_matter,
    a_write_is_whole_or_not_at_all,
    a_revision_is_of_one_state_of_knowledge,
    generations_stand_side_by_side,
    a_tenant_is_removed_whole,
    strange_text_is_stored,
    a_closed_store_says_so,
)


class _DeletesTenants(Protocol):
    async def delete_tenant(self, tenant: TenantId) -> int: ...


def _tenant_methods() -> list[str]:
    """Return the methods of the ports, to detect a method without a row in `OPERATIONS`."""
    ports = (KnowledgeStore, CommunityStore, _DeletesTenants)
    names = [name for port in ports for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")]
    _equal(sorted(names), sorted(OPERATIONS))
    return names


async def _fill(store: GraphStore, tenant: TenantId) -> None:
    await store.write_document(tenant, ONE)
    await store.write_document(tenant, TWO)
    await store.write_communities(tenant, 1, [COMMUNITY])


async def _everything(stream: AsyncIterator[list[T]]) -> list[T]:
    return [item async for batch in stream for item in batch]


def _equal(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"found {found!r}\nexpected {expected!r}")


def _true(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
