from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.knowledge.conftest import MakeChunks

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import Alias, DocumentKnowledge, Entity, EntityMention, ExtractedRelationship, Extraction
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution.groups import is_local
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore

TENANT = TenantId("t_" + "a" * 32)
OTHER_TENANT = TenantId("t_" + "b" * 32)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteGraphStore]:
    opened = await SqliteGraphStore.open(tmp_path / "graph.db")
    yield opened
    await opened.close()


def said(*names: tuple[str, str], chunk: str = "c1", aliases: tuple[Alias, ...] = (), about: bool = False) -> Extraction:
    mentions = tuple(EntityMention(name=name, type=type_, start_char=0, end_char=0, about=about) for name, type_ in names)
    return Extraction(chunk_id=chunk, mentions=mentions, aliases=aliases)


async def resolve(
    store: SqliteGraphStore, document: str, *extractions: Extraction, tenant: TenantId = TENANT, write: bool = True
) -> DocumentKnowledge:
    knowledge = await Resolver(store).resolve(tenant, document, 1, document.title(), extractions)
    if write:
        await store.write_document(tenant, knowledge)
    return knowledge


def only(knowledge: DocumentKnowledge) -> Entity:
    (entity,) = knowledge.entities
    return entity


async def test_the_same_name_is_the_same_entity_across_documents(store: SqliteGraphStore) -> None:
    first = await resolve(store, "d1", said(("Northwind Institute", "organisation")))
    second = await resolve(store, "d2", said(("the Northwind  Institute's", "other")))
    assert only(first).id == only(second).id == stable_id("entity", TENANT, "northwind institute")


async def test_tenants_do_not_share_entities(store: SqliteGraphStore) -> None:
    first = await resolve(store, "d1", said(("Oslo", "place")))
    second = await resolve(store, "d1", said(("Oslo", "place")), tenant=OTHER_TENANT)
    assert only(first).id != only(second).id


async def test_a_scope_is_required(store: SqliteGraphStore) -> None:
    with pytest.raises(InvalidScope):
        await Resolver(store).resolve(None, "d1", 1, "", [])  # type: ignore[arg-type]


async def test_types_alone_do_not_divide_a_name(store: SqliteGraphStore) -> None:
    place = await resolve(store, "d1", said(("Rome", "place")))
    work = await resolve(store, "d2", said(("Rome", "work")))
    date = await resolve(store, "d3", said(("Rome", "date")))
    assert only(place).id == only(work).id != only(date).id


async def test_an_undecided_mention_keeps_to_the_entity_that_is_there(store: SqliteGraphStore) -> None:
    place = await resolve(store, "d1", said(("Halden", "place")))
    assert only(await resolve(store, "d2", said(("Halden", "other")))).id == only(place).id


async def test_the_majority_decides_a_type_and_undecided_mentions_do_not_vote(store: SqliteGraphStore) -> None:
    mixed = said(
        ("Halden", "other"),
        ("Halden", "other"),
        ("Halden", "other"),
        ("Halden", "place"),
        ("Halden", "place"),
        ("Halden", "person"),
    )
    assert only(await resolve(store, "d1", mixed)).type == "place"


async def test_repeating_a_document_gives_the_same_ids_and_changes_nothing(store: SqliteGraphStore) -> None:
    extraction = said(
        ("Maria Keller", "person"), ("Oslo", "place"), aliases=(Alias(name="Maria Keller", alias="MK", type="person"),)
    )
    first = await resolve(store, "d1", extraction)
    counts = await store.counts(TENANT)
    assert await resolve(store, "d1", extraction) == first
    assert await store.counts(TENANT) == counts


async def test_an_acronym_joins_the_entity_of_its_expansion_in_both_orders(store: SqliteGraphStore) -> None:
    spelled = Alias(name="Borealis Polar Institute", alias="BPI", type="organisation")
    long = await resolve(
        store, "d1", said(("Borealis Polar Institute", "organisation"), ("BPI", "organisation"), aliases=(spelled,))
    )
    assert only(long).aliases == ("BPI",)
    assert only(await resolve(store, "d2", said(("BPI", "other")))).id == only(long).id

    await resolve(store, "d3", said(("NMO", "organisation")))
    whole = Alias(name="Northern Mapping Office", alias="NMO", type="organisation")
    later = await resolve(store, "d4", said(("Northern Mapping Office", "organisation"), aliases=(whole,)))
    assert later.unsettled == {"nmo"}
    assert await Resolver(store).identities.find_outdated_documents(TENANT, "nmo") == ["d3"]
    await store.delete_document(TENANT, "d3", up_to_version=1)
    assert only(await resolve(store, "d3", said(("NMO", "organisation")))).id == only(later).id
    assert await Resolver(store).identities.find_outdated_documents(TENANT, "nmo") == []


async def test_an_alias_of_two_entities_is_neither(store: SqliteGraphStore) -> None:
    for number, name in enumerate(("Borealis Polar Institute", "Bergen Port Inspectorate")):
        alias = Alias(name=name, alias="BPI", type="organisation")
        await resolve(store, f"d{number}", said((name, "organisation"), aliases=(alias,)))
    found = only(await resolve(store, "d9", said(("BPI", "organisation"))))
    assert found.id == stable_id("entity", TENANT, "bpi")


async def test_a_surname_holds_in_its_own_document_only(store: SqliteGraphStore) -> None:
    surname = Alias(name="Maria Keller", alias="Keller", type="person")
    full = await resolve(store, "d1", said(("Maria Keller", "person"), ("Keller", "person"), aliases=(surname,)))
    assert only(full).aliases == ()
    (mention,) = full.mentions
    assert mention.count == 2
    assert only(await resolve(store, "d2", said(("Keller", "person")))).id != only(full).id


async def test_a_single_word_without_its_disambiguator_is_no_alias_elsewhere(store: SqliteGraphStore) -> None:
    alias = Alias(name="Rome (film)", alias="Rome", type="work")
    film = await resolve(store, "d1", said(("Rome (film)", "work"), ("Rome", "work"), aliases=(alias,), about=True))
    assert only(film).aliases == ("Rome",)
    assert only(await resolve(store, "d2", said(("Rome", "work")))).id != only(film).id


async def test_circular_aliases_end(store: SqliteGraphStore) -> None:
    circle = (
        Alias(name="A B", alias="C D", type="other"),
        Alias(name="C D", alias="A B", type="other"),
        Alias(name="C D", alias="C D", type="other"),
    )
    assert only(await resolve(store, "d1", said(("A B", "other"), ("C D", "other"), aliases=circle))).aliases == ("C D",)


async def test_mentions_are_counted_by_chunk_and_about_is_kept(store: SqliteGraphStore) -> None:
    knowledge = await resolve(
        store, "d1", said(("Oslo", "place"), about=True), said(("Oslo", "place"), ("OSLO", "place"), chunk="c2"), said(chunk="c3")
    )
    assert knowledge.chunk_ids == ("c1", "c2", "c3")
    assert [(mention.support.chunk_id, mention.count, mention.about) for mention in knowledge.mentions] == [
        ("c1", 1, True),
        ("c2", 2, False),
    ]


def _fact(source: str, target: str, start: int = 0, confidence: float = 0.5) -> ExtractedRelationship:
    return ExtractedRelationship(
        source=source, source_type="person", target=target, target_type="place", relation="lives_in",
        fact="a sentence", fact_start=start, fact_end=start + 10, confidence=confidence,
    )  # fmt: skip


async def test_relationships_carry_weight_supports_and_sentences(store: SqliteGraphStore) -> None:
    first = Extraction(
        chunk_id="c1", relationships=(_fact("Keller", "Oslo"), _fact("Keller", "Oslo", 20, 1.0), _fact("Keller", "keller"))
    )
    again = Extraction(chunk_id="c2", relationships=(_fact("Keller", "Oslo"), _fact("Keller", "Oslo")))
    knowledge = await resolve(store, "d1", first, again)
    (relationship,) = knowledge.relationships
    assert relationship.weight == 2.0
    assert [support.chunk_id for support in relationship.supports] == ["c1", "c2"]
    assert [(one.support.chunk_id, one.start_char) for one in knowledge.relationship_supports] == [
        ("c1", 0),
        ("c1", 20),
        ("c2", 0),
    ]
    assert {entity.name for entity in knowledge.entities} == {"Keller", "Oslo"}


async def test_names_without_letters_are_dropped(store: SqliteGraphStore) -> None:
    assert (await resolve(store, "d1", said(("...", "other"), ("«»", "person")))).entities == ()


async def test_extraction_and_resolution_of_two_documents_meet_in_the_graph(store: SqliteGraphStore, chunks: MakeChunks) -> None:
    extractor = RuleExtractor()
    texts = {
        "d1": (
            "Borealis Institute",
            "The Borealis Institute for Polar Research (BIPR) was founded by Maria Keller. Keller lives in Oslo.",
        ),
        "d2": ("Harbour report", "Maria Keller left BIPR in 2004."),
    }
    for document, (title, text) in texts.items():
        extractions = await extractor.extract(title, chunks(text, document=document))
        await store.write_document(TENANT, await Resolver(store).resolve(TENANT, document, 1, title, extractions))
    found = await store.find_entities(TENANT, ["bipr", "maria keller", "keller"])
    assert "keller" not in found
    (institute,), (person,) = found["bipr"], found["maria keller"]
    assert (institute.name, institute.type, person.type) == ("Borealis Institute for Polar Research", "organisation", "person")
    counts = await store.mention_counts(TENANT, [institute.id, person.id])
    assert counts == {institute.id: 2, person.id: 2}
    facts = {relationship.fact for relationship in await store.relationships_of(TENANT, [institute.id, person.id])}
    assert "Maria Keller left BIPR in 2004." in facts


def test_which_aliases_hold_in_their_document_only() -> None:
    for name, alias, expected in [
        ("Maria Keller", "Keller", True),
        ("Rome (film)", "Rome", False),
        ("Northern Mapping Office", "NMO", False),
    ]:
        assert is_local(name, alias) is expected
