"""Entities are listed, found by name, and shown with what visible documents say about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from knowledge_worlds import Says
from related_worlds import RelatedWorld, passage
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entity_reader import EntityReader


@pytest.fixture
def world() -> RelatedWorld:
    """Return three documents: ada–engine, engine–mill, mill–london."""
    world = RelatedWorld()
    world.says("d1", "ada", "engine")
    world.says("d2", "engine", "mill")
    world.says("d3", "mill", "london")
    world.states("d1", "ada", "made", "engine")
    world.states("d2", "ada", "made", "engine", weight=2.0)
    world.states("d2", "engine", "drives", "mill", weight=0.5)
    return world


@pytest.fixture
def read(world: RelatedWorld, tenant: Tenant) -> Any:
    """Return a function that calls a method of the reader for the tenant as it is now."""
    stores: Any = world
    reader = EntityReader(TenantGraphs(stores, stores, max_bytes=10**9), stores, stores, stores.facts)

    async def called(method: str, *given: object, **named: object) -> Any:
        return await getattr(reader, method)(world.now(tenant), *given, **named)

    return called


async def test_an_entity_has_visible_chunks_and_facts_only(world: RelatedWorld, read: Any) -> None:
    found = await read("entity", "engine")
    assert (found.entity.name, found.names, found.mention_count) == ("Engine", ("Engine",), 2)
    assert {each.chunk.id for each in found.chunks} == {"d1.c", "d2.c"}
    assert [(fact.relation, fact.weight, fact.fact) for fact in found.relationships] == [
        ("made", 3.0, "ada made engine, says d2.1"),
        ("drives", 0.5, "engine drives mill, says d2.1"),
    ]
    assert [each.support.document_id for each in found.relationships[0].passages] == ["d2", "d1"]
    assert not found.more_relationships
    one = await read("entity", "engine", limit=1)
    assert (len(one.chunks), len(one.relationships), one.more_relationships) == (1, 1, True)
    assert [fact.relation for fact in (await read("entity", "engine", relations=["drives"])).relationships] == ["drives"]

    world.hide("d2")
    found = await read("entity", "engine")
    # The weight of the hidden document is left out with its sentence.
    assert [(fact.relation, fact.weight) for fact in found.relationships] == [("made", 1.0)]
    assert [each.chunk.id for each in found.chunks] == ["d1.c"]
    world.hide("d1")
    with pytest.raises(NotFound, match="no entity 'engine'"):
        await read("entity", "engine")


async def test_a_fact_that_only_another_version_states_is_not_shown(world: RelatedWorld, read: Any) -> None:
    world.write("d1", 2, Says("d1.c", "ada", "Ada"), Says("d1.c", "engine", "Engine"))
    world.states("d1", "ada", "sold", "engine", version=2)
    world.states("d1", "ada", "made", "engine", version=2, weight=9.0)
    made = (await read("entity", "ada")).relationships
    assert [(fact.relation, fact.weight) for fact in made] == [("made", 3.0)], "version 2 is not visible yet"
    world.hide("d2")
    world.publish("d1", 2)
    found = (await read("entity", "ada")).relationships
    assert sorted((fact.relation, fact.weight) for fact in found) == [("made", 9.0), ("sold", 1.0)]


async def test_names_are_those_of_visible_documents(world: RelatedWorld, read: Any) -> None:
    for number in (1, 2):
        world.show(f"e{number}", 1, Says(f"e{number}.c", "ada", "Countess of Lovelace"))
    world.show("e3", 1, Says("e3.c", "ada", "A. Lovelace"))
    assert (await read("entity", "ada")).names == ("Ada", "Countess of Lovelace", "A. Lovelace")
    world.hide("e3")
    world.hide("d1")
    found = await read("entity", "ada")
    assert (found.entity.name, found.names) == ("Countess of Lovelace", ("Countess of Lovelace",))


async def test_facts_are_shown_at_the_time_they_hold(world: RelatedWorld, read: Any) -> None:
    def day(year: int) -> datetime:
        return datetime(year, 1, 1, tzinfo=UTC)

    world.states("d3", "mill", "in", "london", valid=(day(1830), day(1840)))
    assert (await read("entity", "london")).relationships == ()
    assert (await read("entity", "london", as_of=day(1829))).relationships == ()
    assert (await read("entity", "london", as_of=day(1840))).relationships == ()
    (fact,) = (await read("entity", "london", as_of=day(1830))).relationships
    assert (fact.valid_at, fact.invalid_at) == (day(1830), day(1840))
    world.says("d4", "mill", "london")
    world.states("d4", "mill", "in", "london")
    (fact,) = (await read("entity", "london")).relationships
    assert (fact.valid_at, fact.invalid_at) == (day(1830), None), "one passage knows no end"


async def test_a_list_is_ordered_by_mentions_and_read_in_pages(world: RelatedWorld, read: Any) -> None:
    whole = await read("page")
    assert [(each.entity.id, each.mention_count) for each in whole.items[:2]] in (
        [("engine", 2), ("mill", 2)],
        [("mill", 2), ("engine", 2)],
    )
    assert (len(whole.items), whole.next_cursor) == (4, None)
    seen, cursor = [], None
    while True:
        page = await read("page", limit=1, cursor=cursor)
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert tuple(seen) == whole.items
    for wrong in ("none", f"{(await read('page', limit=1)).next_cursor}x"):
        with pytest.raises(InvalidRequest, match="cursor"):
            await read("page", cursor=wrong)
    with pytest.raises(InvalidRequest, match="limit"):
        await read("page", limit=0)


async def test_a_list_is_searched_by_name_alias_and_type(world: RelatedWorld, read: Any) -> None:
    world.show("e1", 1, Says("e1.c", "voss", "Mira Voss"), Says("e1.c", "vosburg", "Vosburg"), Says("e1.c", "vos", "Vos"))
    world.show("e2", 1, Says("e2.c", "voss", "Director"), Says("e2.c", "vosburg", "Vosburg"))

    async def ids(**wanted: Any) -> list[str]:
        return [each.entity.id for each in (await read("page", **wanted)).items]

    assert await ids(name="VOS") == ["vos", "vosburg", "voss"], "the whole name, its beginning, a later word"
    assert await ids(name="the director") == ["voss"]
    assert await ids(name="oss") == await ids(name="'") == []
    assert await ids(name="vos", type="Type of Vosburg") == ["vosburg"]
    assert await ids(type="no such type") == []
    first = await read("page", name="vos", limit=2)
    assert [each.entity.id for each in (await read("page", name="vos", cursor=first.next_cursor)).items] == ["voss"]
    world.hide("e2")
    assert await ids(name="director") == []
    assert (
        [each.id for each in await read("resolve_entities", "mira voss")]
        == [each.id for each in await read("resolve_entities", "voss")]
        == ["voss"]
    )
    assert await read("resolve_entities", "mira") == []


async def test_a_chunk_has_its_entities_and_the_facts_it_states(world: RelatedWorld, read: Any) -> None:
    known = await read("of_chunk", passage("d2", 1))
    assert {entity.id for entity in known.entities} == {"engine", "mill"}
    assert [fact.relation for fact in known.relationships] == ["drives"], "ada is not mentioned in d2"
    world.says("d2", "engine", "mill", version=2)
    known = await read("of_chunk", passage("d2", 2))
    assert (len(known.entities), known.relationships) == (2, ())
    assert (await read("of_chunk", passage("unknown", 1))).entities == ()
