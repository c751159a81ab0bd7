"""Checks of graph stores: the names and types of entities, and the uses of names."""

from __future__ import annotations

from dataclasses import replace

from agentic_rag_backend.domain.graph import DocumentKnowledge, Entity, NameUse, OtherName
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_testing.stores.graph_samples import A, B, Check, entity_id, equal, knowledge, true

_ID = entity_id("Teller")


def _naming(document: str, name: str, type: str, *, aliases: tuple[str, ...] = (), description: str = "") -> DocumentKnowledge:
    entity = Entity(id=_ID, name=name, type=type, aliases=aliases, description=description)
    return DocumentKnowledge(document_id=document, version=1, title=document, chunk_ids=(), entities=(entity,))


DOCUMENTS = (
    _naming("a", "Teller Sound", "other"),
    _naming("b", "Teller Sound", "place", aliases=("The Sound",)),
    _naming("c", "Sound of Teller", "place", aliases=("Teller Sound",), description="strait"),
    _naming("d", "Teller Sound", "work"),
)


async def labels_do_not_depend_on_the_order_of_writes(store: GraphStore) -> None:
    """An entity has the main name and the type that most documents give it. Undecided types and aliases do not count."""
    for documents in (DOCUMENTS, DOCUMENTS[::-1]):
        for document in documents:
            await store.write_document(A, document)
        entity = (await store.entities(A, [_ID]))[_ID]
        equal((entity.name, entity.type), ("Sound of Teller", "place"))
        equal(set(entity.aliases), {"The Sound", "Teller Sound"})
        await store.delete_tenant(A)


async def labels_follow_deletions(store: GraphStore) -> None:
    """After deletions, the remaining documents decide."""
    for document in DOCUMENTS:
        await store.write_document(A, document)
    await store.delete_document(A, "b", up_to_version=1)
    await store.delete_document(A, "a", up_to_version=1)
    entity = (await store.entities(A, [_ID]))[_ID]
    equal((entity.name, entity.type, entity.description), ("Sound of Teller", "place", "strait"))
    await store.delete_document(A, "c", up_to_version=1)
    entity = (await store.entities(A, [_ID]))[_ID]
    equal((entity.name, entity.type, entity.aliases, entity.description), ("Teller Sound", "work", (), ""))


async def names_are_returned_as_documents_say_them(store: GraphStore) -> None:
    """A name has the document's type and description of it, or the name of which the document gives it as an alias."""
    own = OtherName("Sound", type="place", description="strait")
    entity = Entity(id=_ID, name="Teller Sound", type="other", aliases=("TS", "Sound"), other_names=(own,))
    await store.write_document(A, DocumentKnowledge(document_id="a", version=1, title="a", chunk_ids=(), entities=(entity,)))
    found = {naming.name: naming.said for batch in [b async for b in store.all_names(A)] for naming in batch}
    expected = {"Teller Sound": OtherName("Teller Sound", type="other"), "TS": OtherName("TS", full="Teller Sound"), "Sound": own}
    equal(found, expected)
    equal([use.main for use in (await store.name_uses(A, ["ts"], "alias", limit=9))["ts"]], ["Teller Sound"])
    equal([use.type for use in (await store.name_uses(A, ["sound"], "described", limit=9))["sound"]], ["place"])


async def uses_of_names_are_found(store: GraphStore) -> None:
    """Main names, aliases and described names are separate kinds of use. A limit applies to each spelling of an entity."""
    for document in DOCUMENTS:
        await store.write_document(A, document)
    main = await store.name_uses(A, ["teller sound", "the unknown"], "main", limit=9)
    equal({name: [use.document_id for use in uses] for name, uses in main.items()}, {"teller sound": ["a", "b", "d"]})
    use = NameUse(
        document_id="b", version=1, entity_id=_ID, name="Teller Sound", main="Teller Sound", type="place", assigned_id=_ID
    )
    equal(main["teller sound"][1], use)
    aliases = await store.name_uses(A, ["teller sound", "sound"], "alias", limit=9)
    equal([use.main for use in aliases["teller sound"]], ["Sound of Teller"])
    equal([(use.document_id, use.main) for use in aliases["sound"]], [("b", "Teller Sound")])
    described = await store.name_uses(A, ["teller sound", "sound of teller"], "described", limit=9)
    equal({name: [use.description for use in uses] for name, uses in described.items()}, {"sound of teller": ["strait"]})
    equal(len((await store.name_uses(A, ["teller sound"], "main", limit=2))["teller sound"]), 2)
    equal(await store.name_uses(A, [], "main", limit=9), {})
    true(not await store.name_uses(B, ["teller sound"], "main", limit=9), "another tenant's names")


async def edits_of_names_are_kept(store: GraphStore) -> None:
    """An editor's name labels the entity and is none of the document's. The entity without edits stands with each name."""
    label, merged = OtherName("Sound A", mark="label"), OtherName("Inlet", type="place", assigned="other")
    entity = Entity(
        id=_ID,
        name="Teller Sound",
        type="place",
        aliases=("Inlet", "Sound A", "TS"),
        other_names=(merged, label, OtherName("TS", full="Inlet", assigned="other")),
        assigned=_ID,
    )
    await store.write_document(A, DocumentKnowledge(document_id="a", version=1, title="a", chunk_ids=(), entities=(entity,)))
    shown = (await store.entities(A, [_ID]))[_ID]
    equal((shown.name, shown.aliases), ("Sound A", ("Inlet", "TS", "Teller Sound")))
    main = await store.name_uses(A, ["teller sound", "inlet", "sound a"], "main", limit=9)
    equal({name: [use.assigned_id for use in uses] for name, uses in main.items()}, {"teller sound": [_ID], "inlet": ["other"]})
    aliases = await store.name_uses(A, ["sound a", "ts"], "alias", limit=9)
    equal([(name, use.main, use.assigned_id) for name, uses in aliases.items() for use in uses], [("ts", "Inlet", "other")])
    found = {naming.name: naming.said for batch in [b async for b in store.all_names(A)] for naming in batch}
    equal((found["Inlet"], found["Sound A"]), (merged, label))
    equal(await store.documents_naming(A, [_ID, "other"]), ["a"])
    equal(await store.documents_naming(B, [_ID]), [])
    await store.delete_document(A, "a", up_to_version=1)
    await store.write_document(A, _document("a", Entity(id=_ID, name="Teller Sound", type="place")))
    equal((await store.entities(A, [_ID]))[_ID].name, "Teller Sound")


async def deleted_entities_keep_their_names(store: GraphStore) -> None:
    """An entity that an editor deleted has names, which tell its documents. The graph in memory does not read them."""
    gone = Entity(id=_ID, name="Teller Sound", type="place", aliases=("TS",), mark="deleted")
    await store.write_document(A, _document("a", gone))
    equal(await store.documents_naming(A, [_ID]), ["a"])
    for documents in (None, ["a"]):
        batches = [batch async for batch in store.stream_knowledge(A, documents)]
        equal([name for batch in batches for held in batch.names for name in held.names], [])
    equal([use.name for use in (await store.name_uses(A, ["teller sound"], "main", limit=9))["teller sound"]], ["Teller Sound"])


def _document(id: str, *entities: Entity) -> DocumentKnowledge:
    return DocumentKnowledge(document_id=id, version=1, title=id, chunk_ids=(), entities=entities)


async def what_is_shown_does_not_depend_on_ids(store: GraphStore) -> None:
    """Ids of documents and chunks are random: the texts decide which description and which sentence is shown."""
    sentences = ("Ada built the mill.", "The mill was built by Ada.")
    for ids in (("a", "b"), ("b", "a")):
        for document, description, sentence in zip(ids, ("nurse", "oceanographer; female"), sentences, strict=True):
            await store.write_document(A, _naming(document, "Teller Sound", "place", description=description))
            stated = knowledge(document, [("Ada", "built", "Mill")])
            facts = tuple(replace(each, fact=sentence) for each in stated.relationships)
            supports = tuple(replace(each, fact=sentence) for each in stated.relationship_supports)
            await store.write_document(A, replace(stated, relationships=facts, relationship_supports=supports))
        equal((await store.entities(A, [_ID]))[_ID].description, "oceanographer; female")
        (built,) = [each async for batch in store.all_relationships(A) for each in batch]
        equal(built.fact, sentences[0])
        await store.delete_tenant(A)


CHECKS: tuple[Check, ...] = (
    what_is_shown_does_not_depend_on_ids,
    labels_do_not_depend_on_the_order_of_writes,
    labels_follow_deletions,
    names_are_returned_as_documents_say_them,
    uses_of_names_are_found,
    edits_of_names_are_kept,
    deleted_entities_keep_their_names,
)
