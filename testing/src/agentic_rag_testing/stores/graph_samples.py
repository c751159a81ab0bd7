"""Building blocks of the checks of graph stores: sample documents, snapshots of a tenant, and comparisons."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

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
    StatedFact,
    Support,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.base import GraphStore

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


def stated(sentence: RelationshipSupport, weight: float = 1.0) -> StatedFact:
    """Return a sentence as a store returns it."""
    return StatedFact(**{field.name: getattr(sentence, field.name) for field in fields(sentence)}, weight=weight)


async def snapshot(store: GraphStore, tenant: TenantId) -> dict[str, Any]:
    """Return all data that a tenant can read, in a fixed order for comparisons."""
    relationships = await everything(store.all_relationships(tenant))
    ids = [relationship.id for relationship in relationships]
    return {
        "entities": {entity.id: entity for entity in await everything(store.all_entities(tenant))},
        "mentions": sorted(map(repr, await everything(store.all_mentions(tenant)))),
        "relationships": {relationship.id: relationship for relationship in relationships},
        "sentences": sorted(map(repr, await store.fact_sentences(tenant, ids))),
        "versions": await everything(store.all_versions(tenant)),
        "generations": await store.generations(tenant),
        "communities": [await store.communities(tenant, generation) for generation in (1, 2, 3)],
        "counts": await store.counts(tenant),
    }


async def batches(stream: AsyncIterator[KnowledgeBatch]) -> list[str]:
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


async def fill(store: GraphStore, tenant: TenantId) -> None:
    """Write both sample documents and the sample community."""
    await store.write_document(tenant, ONE)
    await store.write_document(tenant, TWO)
    await store.write_communities(tenant, 1, [COMMUNITY])


async def everything(stream: AsyncIterator[list[T]]) -> list[T]:
    """Return the items of all batches as one list."""
    return [item async for batch in stream for item in batch]


def equal(found: object, expected: object) -> None:
    """Raise `AssertionError` with both values unless they are equal."""
    if found != expected:
        raise AssertionError(f"found {found!r}\nexpected {expected!r}")


def true(condition: bool, message: str) -> None:
    """Raise `AssertionError` with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)
