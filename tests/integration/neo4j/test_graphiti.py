"""Graphiti's search on a real Neo4j finds our data, of one tenant, at one time, using indexes only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from graphiti_core import Graphiti
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import EdgeNotFoundError, NodeNotFoundError
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode
from graphiti_core.search.search_config import EpisodeSearchConfig, EpisodeSearchMethod
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF
from graphiti_core.search.search_filters import PropertyFilter, SearchFilters
from graphiti_worlds import WordEmbedder, World, question, vector, world
from neo4j import AsyncManagedTransaction

from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.graph import DocumentKnowledge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, InvalidScope, StoreUnavailable
from agentic_rag_backend.models.embedding.calibration import PASSAGE_OF_FACT
from agentic_rag_backend.models.llm.base import ExtractiveModel
from agentic_rag_backend.plugins.graphiti.clients import GraphitiEmbedder, GraphitiLanguageModel, GraphitiReranker
from agentic_rag_backend.plugins.graphiti.driver import GraphReader, TenantDriver
from agentic_rag_backend.plugins.graphiti.interface import TenantSearch
from agentic_rag_backend.plugins.graphiti.search import recipe
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.nodes import graph_uuid
from agentic_rag_testing.stores import graph_samples as samples
from agentic_rag_testing.stores.graph_samples import A, B, entity_id

ADA = "Whom did Ada found Acme for?"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def held(empty_neo4j: Neo4jAddress, tmp_path: Path) -> AsyncIterator[World]:
    async with world(empty_neo4j, tmp_path) as opened:
        yield opened


def scoped(held: World, tenant: TenantId, *, moment: datetime = NOW) -> TenantDriver:
    reader = GraphReader(held.graph.connections, tenant)
    return held.search._driver.within(reader, TenantSearch(reader=reader, vectors=held.vectors, moment=moment))


def fact(document: DocumentKnowledge, number: int = 0) -> str:
    return document.relationships[number].id


async def test_a_search_without_a_filter_leaves_out_what_has_ended(held: World) -> None:
    """The filter that Graphiti passes on may be empty. The time still applies."""
    ended = replace(samples.ONE.relationships[0], invalid_at=NOW - timedelta(days=9))
    await held.add(A, replace(samples.ONE, relationships=(ended, *samples.ONE.relationships[1:])))

    found = await held.search._graphiti.search_(
        ADA,
        config=recipe(20, PASSAGE_OF_FACT),
        group_ids=[A.value],
        search_filter=SearchFilters(),
        driver=scoped(held, A),
        query_vector=vector("Ada founded Acme bought Bolt says one").tolist(),
    )

    assert {edge.attributes["id"] for edge in found.edges} == {fact(samples.ONE, 1)}


async def test_what_a_graphiti_client_took_back_is_not_found(held: World) -> None:
    await held.add(A, samples.ONE)
    edge = f"{{id: '{fact(samples.ONE)}'}}"
    await held.graph.connections.define(f"MATCH ()-[r:RELATES_TO {edge}]->() SET r.expired_at = datetime('2025-01-01T00:00:00Z')")

    assert fact(samples.ONE) not in {item.id for item in (await held.find(A, ADA, moment=NOW)).relationships}
    assert fact(samples.ONE) in {item.id for item in (await held.find(A, ADA, moment=NOW - timedelta(days=999))).relationships}


async def test_a_fact_ends_only_where_everything_that_states_it_says_so(held: World) -> None:
    """One document states an end, the other does not: the fact still holds."""
    ended = replace(samples.ONE.relationships[0], invalid_at=NOW - timedelta(days=9))
    await held.add(A, replace(samples.ONE, relationships=(ended, *samples.ONE.relationships[1:])))
    assert fact(samples.ONE) not in {item.id for item in (await held.find(A, ADA, moment=NOW)).relationships}
    await held.add(A, samples.TWO)

    assert fact(samples.ONE) in {item.id for item in (await held.find(A, ADA, moment=NOW)).relationships}


async def test_more_is_looked_at_where_much_has_ended(held: World) -> None:
    stated = [(f"S{number}", "met", f"T{number}") for number in range(12)]
    document = samples.knowledge("one", stated)
    over = [replace(each, invalid_at=NOW - timedelta(days=1)) for each in document.relationships[1:]]
    document = replace(document, relationships=(document.relationships[0], *over))
    await held.add(A, document)

    found = await held.find(A, "who met whom, says one in version 1", moment=NOW, limit=2)

    assert [item.id for item in found.relationships] == [fact(document)]


async def test_filters_say_through_which_passages(held: World) -> None:
    await held.add(A, samples.knowledge("one", [("Ada", "met", "Bob")]))
    await held.add(A, samples.knowledge("two", [("Cleo", "met", "Dan")]))
    only = Comparison("source", "eq", "two")

    found = await held.find(A, "unheard words met", filter=only)

    assert {item.id for item in found.entities} >= {entity_id("Cleo"), entity_id("Dan")}
    names = {item.id for item in (await held.find(A, "unheard words", filter=only)).entities}
    assert names <= {entity_id("Cleo"), entity_id("Dan")}


@pytest.mark.parametrize("groups", [None, [], [""], [B.value], [A.value, B.value], [A.value[:-1]], [A.value.upper()]])
async def test_a_search_names_its_tenant_in_full_and_no_other(held: World, groups: list[str] | None) -> None:
    await held.add(A, samples.ONE)
    with pytest.raises(InvalidScope):
        await held.search._graphiti.search_(
            ADA, config=recipe(5, PASSAGE_OF_FACT), group_ids=groups, driver=scoped(held, A), query_vector=vector(ADA).tolist()
        )


async def test_without_a_tenant_nothing_of_graphitis_reaches_the_graph(held: World) -> None:
    await held.add(A, samples.ONE)
    graphiti: Graphiti = held.search._graphiti
    uuid = graph_uuid(A, entity_id("Ada"))
    calls = [
        lambda: graphiti.search_(ADA, config=recipe(5, PASSAGE_OF_FACT), group_ids=[A.value], query_vector=vector(ADA).tolist()),
        lambda: EntityNode.get_by_uuid(graphiti.driver, uuid),
        lambda: EntityNode.get_by_group_ids(graphiti.driver, [A.value]),
        lambda: EntityNode.delete_by_group_id(graphiti.driver, A.value),
        lambda: graphiti.get_nodes_and_edges_by_episode([uuid]),
        lambda: graphiti.retrieve_episodes(NOW, group_ids=[A.value]),
    ]
    for call in calls:
        with pytest.raises(InvalidScope):
            await call()  # type: ignore[no-untyped-call]
    with pytest.raises(NotImplementedError):
        await graphiti.nodes.entity.get_by_uuid(uuid)


async def test_reads_by_uuid_stay_in_the_tenant(held: World) -> None:
    for tenant in (A, B):
        await held.add(tenant, samples.ONE)
    own, other = (scoped(held, tenant) for tenant in (A, B))
    node, edge = graph_uuid(A, entity_id("Ada")), graph_uuid(A, fact(samples.ONE))
    episode = graph_uuid(A, samples.ONE.chunk_ids[0])

    assert (await EntityNode.get_by_uuid(own, node)).name == "Ada"
    assert (await EntityEdge.get_by_uuid(own, edge)).fact == samples.ONE.relationships[0].fact
    assert (await EpisodicNode.get_by_uuid(own, episode)).name == "one"
    for found in (
        await EntityNode.get_by_uuids(own, [node], group_id=A.value),
        await EntityEdge.get_by_uuids(own, [edge]),
        await EpisodicNode.get_by_uuids(own, [episode]),
    ):
        assert [each.group_id for each in found] == [A.value]
    for kind, uuid, missing in (
        (EntityNode, node, NodeNotFoundError),
        (EntityEdge, edge, EdgeNotFoundError),
        (EpisodicNode, episode, NodeNotFoundError),
    ):
        with pytest.raises(missing):
            await kind.get_by_uuid(other, uuid)
        assert await kind.get_by_uuids(other, [uuid]) == []
    with pytest.raises(InvalidScope):
        await EntityNode.get_by_uuids(own, [node], group_id=B.value)


async def test_nothing_is_deleted_through_graphiti(held: World) -> None:
    """Neither of another tenant nor of the same tenant: a document's knowledge is removed with the document."""
    await held.add(A, samples.ONE)
    before = await samples.snapshot(held.graph, A)
    own, other = (scoped(held, tenant) for tenant in (A, B))
    node = await EntityNode.get_by_uuid(own, graph_uuid(A, entity_id("Ada")))
    edge = await EntityEdge.get_by_uuid(own, graph_uuid(A, fact(samples.ONE)))
    for driver in (own, other):
        for call in (
            lambda driver=driver: node.delete(driver),
            lambda driver=driver: edge.delete(driver),
            lambda driver=driver: EntityNode.delete_by_uuids(driver, [node.uuid]),
            lambda driver=driver: EntityNode.delete_by_group_id(driver, A.value),
            lambda driver=driver: EntityEdge.delete_by_uuids(driver, [edge.uuid]),
        ):
            with pytest.raises(InvalidScope):
                await call()

    assert await samples.snapshot(held.graph, A) == before


async def test_graphitis_filters_are_applied(held: World) -> None:
    typed = tuple(replace(each, type="person" if each.name == "Ada" else "firm") for each in samples.ONE.entities)
    await held.add(A, replace(samples.ONE, entities=typed))
    ada = graph_uuid(A, entity_id("Ada"))

    async def names(**named: Any) -> tuple[set[str], set[str]]:
        found = await held.search._graphiti.search_(
            "Ada founded Acme bought Bolt says one",
            config=recipe(20, PASSAGE_OF_FACT),
            group_ids=[A.value],
            search_filter=SearchFilters(**named),
            driver=scoped(held, A),
            query_vector=vector("Ada Acme Bolt").tolist(),
        )
        return {edge.name for edge in found.edges}, {node.name for node in found.nodes}

    assert await names() == ({"founded", "bought"}, {"Ada", "Acme", "Bolt"})
    assert (await names(edge_types=["bought"]))[0] == {"bought"}
    assert (await names(edge_source_node_uuids=[ada]))[0] == {"founded"}
    assert (await names(edge_target_node_uuids=[ada]))[0] == set()
    assert await names(node_labels=["Person"]) == (set(), {"Ada"})
    assert (await names(node_labels=["Firm"]))[0] == {"bought"}
    with pytest.raises(InvalidRequest):
        await names(property_filters=[PropertyFilter(property_name="x", property_value=1, comparison_operator="=")])


async def test_the_whole_recipe_with_passages_is_answered_too(held: World) -> None:
    await held.add(A, samples.ONE)
    config = recipe(5, PASSAGE_OF_FACT)
    config.episode_config = EpisodeSearchConfig(search_methods=[EpisodeSearchMethod.bm25])

    found = await held.search.results(A, question(ADA), config)

    assert [episode.uuid for episode in found.episodes][:1] == [graph_uuid(A, samples.ONE.chunk_ids[0])]
    assert found.communities == []


async def test_the_recipes_of_graphiti_stay_as_they_are(held: World) -> None:
    before = COMBINED_HYBRID_SEARCH_RRF.model_dump()
    await held.add(A, samples.ONE)
    await held.find(A, ADA, limit=3)

    assert COMBINED_HYBRID_SEARCH_RRF.model_dump() == before


async def test_four_statements_whatever_the_tenant_holds_and_no_vector_in_them(
    held: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, dict[str, Any]]] = []
    run = AsyncManagedTransaction.run

    async def counted(self: AsyncManagedTransaction, query: Any, parameters: Any = None, **values: Any) -> Any:
        sent.append((query, {**(parameters or {}), **values}))
        return await run(self, query, parameters, **values)

    monkeypatch.setattr(AsyncManagedTransaction, "run", counted)
    for size in (1, 40):
        await held.add(A, samples.knowledge(f"of {size}", [(f"S{n}", "founded", f"T{n}") for n in range(size)]))
        sent.clear()
        await held.find(A, "S0 founded T0, says who")
        assert len(sent) == 4
        for _, values in sent:
            assert not [
                value for value in values.values() if isinstance(value, list) and any(isinstance(x, float) for x in value)
            ]


async def test_a_store_that_does_not_answer_is_an_error_of_ours(held: World) -> None:
    await held.add(A, samples.ONE)
    await held.graph.close()
    with pytest.raises(StoreUnavailable):
        await held.find(A, ADA)


async def test_a_stock_graphiti_reads_what_we_wrote(held: World, empty_neo4j: Neo4jAddress) -> None:
    """Any client of that release can, with its own statements and indexes, within the requested group."""
    for tenant in (A, B):
        await held.add(tenant, samples.ONE)
    await held.graph.write_communities(A, 1, [samples.COMMUNITY])
    embedder = WordEmbedder()
    driver = Neo4jDriver(empty_neo4j.uri, empty_neo4j.user, empty_neo4j.password, empty_neo4j.database)
    stock = Graphiti(
        graph_driver=driver,
        llm_client=GraphitiLanguageModel(ExtractiveModel()),
        embedder=GraphitiEmbedder(embedder),
        cross_encoder=GraphitiReranker(embedder),
    )
    try:
        await driver.build_indices_and_constraints()
        await driver.execute_query("CALL db.awaitIndexes(60)")
        config = COMBINED_HYBRID_SEARCH_RRF.model_copy(deep=True)

        found = await stock.search_("Ada founded Acme", config=config, group_ids=[A.value])

        assert {edge.group_id for edge in found.edges} == {A.value}
        assert found.edges[0].uuid == graph_uuid(A, fact(samples.ONE))
        assert {node.name for node in found.nodes} >= {"Ada", "Acme"}
        (edge,) = await EntityEdge.get_by_uuids(driver, [graph_uuid(A, fact(samples.ONE))])
        assert (edge.name, edge.episodes) == ("founded", [graph_uuid(A, samples.ONE.chunk_ids[0])])
        (episode,) = await EpisodicNode.get_by_uuids(driver, edge.episodes)
        assert edge.uuid in episode.entity_edges
        (community,) = await CommunityNode.get_by_group_ids(driver, [A.value])
        assert community.name == "Ada, Acme, Bolt"
    finally:
        for name in ("episode_content", "node_name_and_summary", "community_name", "edge_name_and_fact"):
            await driver.execute_query(f"DROP INDEX {name} IF EXISTS")
        await driver.close()
