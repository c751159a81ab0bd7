"""Filters by entity, type and community select the same passages in every strategy, within one tenant."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.retrieval.conftest import Corpus

from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.requests.search_requests import SearchRequest

pytestmark = pytest.mark.asyncio(loop_scope="module")

OF_PASSAGES = ("dense", "sparse", "hybrid", "graph", "raptor", "auto", "drift")
QUESTION = "Osric Lindqvist wrote about the seals of Carrow Bay"


async def ask(
    corpus: Corpus, tenant: TenantId, filters: dict[str, Any], strategy: str = "hybrid", **options: Any
) -> tuple[Retrieval, tuple[str, ...]]:
    caller = await corpus.container.authenticator.local_principal(tenant)
    values = {"query": QUESTION, "strategy": strategy, "filters": filters, "options": options, "limit": 50}
    built = await corpus.container.queries.build(caller, SearchRequest.model_validate(values))
    return await corpus.container.retrievers.get(strategy).retrieve(built.query), built.warnings


def titles(found: Retrieval) -> set[str]:
    return {hit.visible.document_title for hit in found.hits}


async def test_every_strategy_finds_passages_that_mention_the_entity_and_no_other(corpus: Corpus) -> None:
    tenant = await corpus.tenant("entities")
    expected = {"Carrow Bay Report", "Seals of Carrow Bay"}
    for strategy in OF_PASSAGES:
        found, warnings = await ask(corpus, tenant, {"entity": "osric lindqvist"}, strategy)
        assert titles(found) == expected, strategy
        assert all("Osric Lindqvist" in {entity.name for entity in hit.entities} for hit in found.hits), strategy
        assert warnings == ()
    found, _ = await ask(corpus, tenant, {"entity": "Osric Lindqvist"})
    (osric,) = {entity.id for hit in found.hits for entity in hit.entities if entity.name == "Osric Lindqvist"}
    by_id, _ = await ask(corpus, tenant, {"entity": [osric, "Nobody At All"]})
    assert titles(by_id) == expected


async def test_operators_of_entities_follow_those_of_lists(corpus: Corpus) -> None:
    tenant = await corpus.tenant("operators")
    everything = titles((await ask(corpus, tenant, {"title": {"exists": True}}))[0])
    osric = titles((await ask(corpus, tenant, {"entity": "Osric Lindqvist"}))[0])
    linked = titles((await ask(corpus, tenant, {"entity": {"exists": True}}))[0])
    assert osric < linked
    assert titles((await ask(corpus, tenant, {"not": {"entity": "Osric Lindqvist"}}))[0]) == everything - osric
    assert titles((await ask(corpus, tenant, {"entity": {"ne": "Osric Lindqvist"}}))[0]) == linked - osric
    assert titles((await ask(corpus, tenant, {"entity": {"missing": True}}))[0]) == everything - linked
    both = {"entity": "Osric Lindqvist", "year": 2018}
    assert titles((await ask(corpus, tenant, both))[0]) == {"Seals of Carrow Bay"}


async def test_types_and_communities_are_those_of_the_mentioned_entities(corpus: Corpus) -> None:
    tenant = await corpus.tenant("types")
    people, _ = await ask(corpus, tenant, {"entity_type": "PERSON"})
    assert people.hits
    assert all("person" in {entity.type.casefold() for entity in hit.entities} for hit in people.hits)
    pointer = await corpus.container.catalogue.communities.pointer(tenant)
    for community in await corpus.container.graph.communities(tenant, pointer.generation):
        found, _ = await ask(corpus, tenant, {"community": community.id})
        members = set(community.entity_ids)
        assert found.hits
        assert all(members & {entity.id for entity in hit.entities} for hit in found.hits)


async def test_unknown_values_match_nothing_and_are_named(corpus: Corpus) -> None:
    tenant = await corpus.tenant("unknown")
    for strategy in (*OF_PASSAGES, "community", "global"):
        found, warnings = await ask(corpus, tenant, {"entity": "Nobody At All"}, strategy)
        assert not found.hits, strategy
        assert warnings == ("filters: no visible passage has the entity 'Nobody At All'",)
    assert not (await ask(corpus, tenant, {"community": "nothing"}))[0].hits
    _, warnings = await ask(corpus, tenant, {"entity": [f"Nobody {number}" for number in range(100)]})
    assert len(warnings) == 11
    assert warnings[-1] == "filters: no visible passage has 90 more values"


async def test_entities_of_another_tenant_and_of_deleted_documents_are_unknown(corpus: Corpus) -> None:
    tenant = await corpus.tenant("own", ["bread"])
    other = await corpus.tenant("other", ["seals", "report"])
    named, _ = await ask(corpus, other, {"entity": "Osric Lindqvist"})
    (osric,) = {entity.id for hit in named.hits for entity in hit.entities if entity.name == "Osric Lindqvist"}
    pointer = await corpus.container.catalogue.communities.pointer(other)
    communities = await corpus.container.graph.communities(other, pointer.generation)
    for filters in ({"entity": "Osric Lindqvist"}, {"entity": osric}, {"community": communities[0].id}):
        assert not (await ask(corpus, tenant, filters))[0].hits
    await corpus.tombstone(other, "seals")
    await corpus.tombstone(other, "report")
    found, warnings = await ask(corpus, other, {"entity": osric})
    assert not found.hits
    assert warnings


async def test_a_graph_that_does_not_answer_refuses_the_request(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = await corpus.tenant("away", ["bread"])

    async def away(*_: object) -> None:
        raise StoreUnavailable("the graph store is away")

    monkeypatch.setattr(corpus.container.graphs, "graph", away)
    with pytest.raises(StoreUnavailable):
        await ask(corpus, tenant, {"entity": "Osric Lindqvist"})
    assert (await ask(corpus, tenant, {"title": "Bread"}, "dense"))[0].hits


async def test_communities_of_named_entities(corpus: Corpus) -> None:
    tenant = await corpus.tenant("communities")
    every, _ = await ask(corpus, tenant, {}, "community")
    found, _ = await ask(corpus, tenant, {}, "community", entities=["Osric Lindqvist", "Nobody At All"])
    assert found.trace.warnings == ("options.entities: the graph knows no 'Nobody At All'",)
    pointer = await corpus.container.catalogue.communities.pointer(tenant)
    members = {each.id: each.entity_ids for each in await corpus.container.graph.communities(tenant, pointer.generation)}
    graph = await corpus.container.graphs.graph(await corpus.container.catalogue.tenants.tenant(tenant))
    osric = {graph.entity(number).id for number in graph.names["osric lindqvist"]}
    assert found.themes
    assert all(osric & set(members[theme.id]) for theme in found.themes)
    assert {theme.id for theme in every.themes} > {theme.id for theme in found.themes}
    nothing, _ = await ask(corpus, tenant, {}, "community", entities=["Nobody At All"])
    assert not nothing.themes
