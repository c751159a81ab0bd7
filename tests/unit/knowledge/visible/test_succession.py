"""A newer fact of an exclusive relation retires an older one, whatever the order of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from related_worlds import RelatedWorld
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.graph import StatedFact, Support
from agentic_rag_backend.domain.ontology import EntityType, Ontology, RelationType
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.relation_types import ExclusiveRelations
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entity_reader import EntityReader
from agentic_rag_backend.knowledge.visible.facts import VisibleFact, excludes, in_succession, speaks_of_past, stated_at

ONTOLOGY = Ontology(
    (EntityType("person"),),
    (RelationType("heads", inverse_functional=True), RelationType("lives in", functional=True), RelationType("knows")),
)
EXCLUSIVE = ExclusiveRelations.of(ONTOLOGY)


def day(year: int, month: int = 1, number: int = 1) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def period(year: int) -> tuple[datetime, datetime]:
    return day(year), day(year + 1)


def fact(
    source: str,
    relation: str,
    target: str,
    *,
    dated: int | None = None,
    valid: tuple[datetime | None, datetime | None] = (None, None),
    sentence: str | None = None,
    types: tuple[str, str] = ("person", "organisation"),
) -> VisibleFact:
    id = f"{source} {relation} {target}"
    chunk = f"{id} {dated}" if sentence is None else sentence
    stated = StatedFact(
        relationship_id=id,
        support=Support(chunk, 1, chunk),
        fact=sentence or id,
        start_char=0,
        end_char=1,
        valid_at=valid[0],
        invalid_at=valid[1],
    )
    return VisibleFact(
        id=id,
        source=EntityRef(source, source, types[0]),
        target=EntityRef(target, target, types[1]),
        relation=relation,
        weight=stated.weight,
        passages=(stated,),
        dates=(None if dated is None else period(dated),),
        created_at=day(2030),
    )


def placed(*facts: VisibleFact) -> Mapping[str, VisibleFact]:
    return in_succession({each.id: each for each in facts}, (), EXCLUSIVE)


def holding(year: int, *facts: VisibleFact) -> list[str]:
    return [each.source.name for each in placed(*facts).values() if each.holds(day(year, 6))]


ANN, BOB = fact("Ann", "heads", "Acme", dated=2010), fact("Bob", "heads", "Acme", dated=2015)


def test_a_newer_fact_retires_an_older_one() -> None:
    assert [holding(year, ANN, BOB) for year in (2009, 2014, 2015, 2020)] == [["Ann"], ["Ann"], ["Bob"], ["Bob"]]
    retired = placed(ANN, BOB)[ANN.id]
    assert (retired.valid_at, retired.invalid_at, retired.expired_at) == (None, day(2015), day(2030))
    assert retired.retirement is not None
    assert retired.retirement.by == BOB.id
    assert (placed(ANN, BOB)[BOB.id].valid_at, placed(ANN, BOB)[BOB.id].expired_at) == (day(2015), None)
    assert placed(BOB)[BOB.id].valid_at is None, "alone, its beginning is unknown"


def test_own_times_come_before_the_dates_of_documents() -> None:
    since = fact("Bob", "heads", "Acme", dated=2005, valid=(day(2012, 3, 4), None))
    assert placed(ANN, since)[ANN.id].invalid_at == day(2012, 3, 4)
    until = fact("Ann", "heads", "Acme", valid=(day(2001), day(2011)))
    assert placed(until, since)[until.id].invalid_at == day(2011), "an end that the passage gives stays"


def test_nothing_is_retired_without_a_certain_order() -> None:
    for one, other, why in [
        (ANN, fact("Bob", "heads", "Acme"), "the time of one is unknown"),
        (ANN, fact("Bob", "heads", "Acme", dated=2010), "the same year"),
        (ANN, fact("Bob", "heads", "Acme", valid=(day(2010, 5, 2), None)), "a day in the same year"),
        (ANN, fact("Bob", "heads", "Apex", dated=2015), "another target"),
        (ANN, fact("Ann Lee", "heads", "Acme", dated=2015), "a longer form of the name"),
        (ANN, fact("Bob", "heads", "Acme", dated=2015, sentence="Bob, who was the head of Acme"), "a sentence about the past"),
        (fact("Ann", "knows", "Acme", dated=2010), fact("Bob", "knows", "Acme", dated=2015), "no exclusive relation"),
        (fact("Ann", "born_in", "Rome", dated=2010), fact("Ann", "born_in", "Oslo", dated=2015), "a permanent relation"),
        (
            fact("Ann", "heads", "Acme", dated=2010, sentence="Ann and Bob head Acme"),
            fact("Bob", "heads", "Acme", dated=2010, sentence="Ann and Bob head Acme"),
            "one sentence states both",
        ),
    ]:
        assert all(each.retirement is None for each in placed(one, other).values()), why


def test_an_end_of_another_kind_excludes_nothing() -> None:
    lives = [
        fact("Ann", "lives_in", name, types=("person", type))
        for name, type in (("Oslo", "place"), ("4 May 1950", "date"), ("1950", "date"), ("1951", "date"), ("Rome", "other"))
    ]
    found = {(one.target.name, other.target.name) for one in lives for other in lives if excludes(one, other, "source")}
    assert {("Oslo", "Rome"), ("4 May 1950", "1951"), ("1950", "1951")} <= found
    assert not {("Oslo", "1951"), ("4 May 1950", "1950"), ("Rome", "1951")} & found


def test_sentences_about_the_past() -> None:
    assert [speaks_of_past(each) for each in ("Ann, the former head", "Ann was head", "Ann heads Acme", "Ann was appointed")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert stated_at(fact("Ann", "heads", "Acme", dated=2010, sentence="Ann, the former head of Acme")) is None


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(2000, 2008)), unique_by=lambda each: each[0], max_size=5), st.data()
)
def test_at_most_one_certainly_ordered_fact_holds_at_a_time(heads: list[tuple[str, int]], data: Any) -> None:
    facts = [fact(f"P{name}", "heads", "Acme", dated=year) for name, year in heads]
    shuffled = data.draw(st.permutations(facts))
    assert {id: (each.valid_at, each.invalid_at) for id, each in placed(*facts).items()} == {
        id: (each.valid_at, each.invalid_at) for id, each in placed(*shuffled).items()
    }
    for year in range(1999, 2010):
        held = {
            placed(*facts)[each.id].passages[0].support.chunk_id[-4:]
            for each in facts
            if placed(*facts)[each.id].holds(day(year, 6))
        }
        assert len(held) <= 1, "those that hold are of one year"
    if facts:
        gone = facts[0]
        rest = placed(*facts[1:])
        assert all(each.retirement is None or each.retirement.by != gone.id for each in rest.values())


@pytest.mark.parametrize("order", list(permutations(("d1", "d2"))), ids="-".join)
async def test_the_deletion_of_the_newer_document_restores_the_older_fact(tenant: Tenant, order: tuple[str, ...]) -> None:
    world = RelatedWorld()
    world.own_ontology = ONTOLOGY
    stores: Any = world
    world.dates = {"d1": "2010-05-01", "d2": "2015"}
    heads = {"d1": "ann", "d2": "bob"}
    world.types = dict.fromkeys(heads.values(), "person")
    for document in order:
        world.says(document, heads[document], "acme")
        world.states(document, heads[document], "heads", "acme")
    reader = EntityReader(TenantGraphs(stores, stores, max_bytes=10**9), stores, stores, world.facts)

    async def held(id: str, year: int | None = None) -> list[str]:
        as_of = None if year is None else day(year)
        found = await reader.entity(world.now(tenant), id, as_of=as_of)
        return [each.source.id for each in found.relationships]

    assert (await held("acme"), await held("acme", 2012)) == (["bob"], ["ann"])
    assert (await held("ann"), await held("ann", 2012)) == ([], ["ann"]), "the rival is read, although Ann has no part in it"
    world.hide("d2")
    assert await held("ann") == ["ann"]
