"""Contradictions between visible facts, in bounded pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from related_worlds import RelatedWorld
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.ontology import EntityType, Ontology, RelationType
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.knowledge.contradictions import finder as finding
from agentic_rag_backend.knowledge.contradictions.finder import ContradictionFilter, ContradictionFinder
from agentic_rag_backend.knowledge.extraction.model.inquiries import DEFAULT_ONTOLOGY
from agentic_rag_backend.knowledge.ontologies import Ontologies
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs

ONTOLOGY = Ontology(
    (EntityType("person"),),
    (RelationType("heads", inverse_functional=True), RelationType("hails from", functional=True, permanent=True)),
)
PEOPLE = ("ann", "bob", "eve")


@pytest.fixture
def world() -> RelatedWorld:
    world = RelatedWorld()
    world.own_ontology = ONTOLOGY
    world.types = dict.fromkeys(PEOPLE, "person") | dict.fromkeys(("oslo", "rome"), "place")
    return world


@pytest.fixture
def page(world: RelatedWorld, tenant: Tenant) -> Any:
    stores: Any = world
    graphs = TenantGraphs(stores, stores, max_bytes=10**9)
    finder = ContradictionFinder(graphs, stores, stores, world.facts, Ontologies(stores, DEFAULT_ONTOLOGY))

    async def called(wanted: ContradictionFilter | None = None, **given: Any) -> Any:
        return await finder.page(world.now(tenant), wanted, **given)

    called.touching = lambda ids: finder.touching(world.now(tenant), ids)  # type: ignore[attr-defined]
    return called


def day(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


def say(world: RelatedWorld, document: str, source: str, relation: str, target: str, **given: Any) -> None:
    world.says(document, source, target)
    world.states(document, source, relation, target, **given)


def kinds(found: tuple[Contradiction, ...]) -> list[tuple[str, str]]:
    return [(each.kind, each.subject) for each in found]


async def test_a_denial_contradicts_what_it_denies(world: RelatedWorld, page: Any) -> None:
    say(world, "d1", "ann", "founded", "acme")
    say(world, "d2", "ann", "not_founded", "acme")
    say(world, "d3", "bob", "not_founded", "acme")
    (found,) = (await page()).items
    assert (found.kind, found.subject, found.entity_b.name) == ("denial", "Ann – founded – Acme", "Acme")
    assert [(side.document_id, side.value, side.title) for side in (found.a, found.b)] == [
        ("d1", "founded", "D1"), ("d2", "not founded", "D2"),
    ]  # fmt: skip
    world.hide("d2")
    assert (await page()).items == ()


async def test_exclusive_facts_contradict_each_other_while_both_hold(world: RelatedWorld, page: Any) -> None:
    say(world, "d1", "ann", "heads", "acme", valid=(day(2001), day(2010)))
    say(world, "d2", "bob", "heads", "acme", valid=(day(2005), day(2012)))
    say(world, "d3", "eve", "heads", "acme", valid=(day(2012), None))
    (found,) = (await page()).items
    assert (found.kind, found.subject, {found.entity_a.name, found.entity_b.name}) == (
        "exclusive", "heads – Acme", {"Ann", "Bob"},
    )  # fmt: skip
    assert (found.a.valid_at, found.a.invalid_at) == (day(2001), day(2010))


async def test_a_successor_contradicts_nothing_and_an_unknown_time_is_unlikely(world: RelatedWorld, page: Any) -> None:
    world.dates = {"d1": "2010", "d2": "2015"}
    say(world, "d1", "ann", "heads", "acme")
    say(world, "d2", "bob", "heads", "acme")
    assert (await page(ContradictionFilter(min_confidence=0))).items == ()
    world.dates = {"d1": "2010-05-02", "d2": "2010-05-02"}
    assert kinds((await page()).items) == [("exclusive", "heads – Acme")]
    world.dates = {}
    assert (await page()).items == ()
    assert len((await page(ContradictionFilter(min_confidence=0))).items) == 1
    world.dates = {"d1": "2010", "d2": "2015"}
    say(world, "d3", "eve", "heads", "acme")
    (found,) = (await page(ContradictionFilter(min_confidence=0))).items
    assert {found.entity_a.name, found.entity_b.name} == {"Bob", "Eve"}, "Ann is retired"


async def test_what_never_changes_has_one_value(world: RelatedWorld, page: Any) -> None:
    world.dates = {"d1": "2010", "d2": "2015"}
    say(world, "d1", "ann", "hails_from", "oslo")
    say(world, "d2", "ann", "hails_from", "rome")
    assert kinds((await page()).items) == [("exclusive", "Ann – hails from")]
    world.says("d3", "oslo", "rome")
    assert (await page()).items == (), "a passage names both places: one may lie in the other"


async def test_filters(world: RelatedWorld, page: Any) -> None:
    say(world, "d1", "ann", "hails_from", "oslo")
    say(world, "d2", "ann", "hails_from", "rome")
    say(world, "d3", "bob", "founded", "acme")
    say(world, "d4", "bob", "not_founded", "acme")
    assert len((await page()).items) == 2
    for name in ("oslo", "Oslo", "ann", "ROME"):
        assert kinds((await page(ContradictionFilter(entity=name))).items) == [("exclusive", "Ann – hails from")]
    assert kinds((await page(ContradictionFilter(kind="denial"))).items) == [("denial", "Bob – founded – Acme")]
    assert kinds((await page(ContradictionFilter(entity="ann", kind="denial"))).items) == []
    with pytest.raises(NotFound, match="no entity 'nobody'"):
        await page(ContradictionFilter(entity="nobody"))
    assert [each.kind for each in await page.touching(["d1.c"])] == ["exclusive"]
    assert await page.touching(["d9.c"]) == []


async def test_pages_continue_where_the_last_one_ended(world: RelatedWorld, page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        world.types[f"p{number}"] = "person"
        say(world, f"a{number}", f"p{number}", "hails_from", "oslo")
        say(world, f"b{number}", f"p{number}", "hails_from", "rome")
    whole = (await page(limit=100)).items
    assert len(whole) == 30
    for number in range(4):
        world.types[f"q{number}"] = "person"
        say(world, f"c{number}", f"q{number}", "heads", "acme", valid=(day(2000), None))
    whole = (await page(limit=100)).items
    assert len(whole) == 36, "acme has six"
    for limit, chunks in ((1, 600), (7, 600), (100, 1)):
        monkeypatch.setattr(finding, "CHUNKS_PER_PAGE", chunks)
        seen: list[Contradiction] = []
        cursor, pages = None, 0
        while True:
            got = await page(limit=limit, cursor=cursor)
            seen += got.items
            pages, cursor = pages + 1, got.next_cursor
            if cursor is None:
                break
        assert [each.id for each in seen] == [each.id for each in whole]
        assert pages > 1
    with pytest.raises(InvalidRequest, match="cursor"):
        await page(cursor="none")
