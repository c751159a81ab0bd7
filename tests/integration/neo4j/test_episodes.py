"""Extraction by Graphiti's ``add_episode`` on a real Neo4j, and other Graphiti clients in the group of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from graph_database import ask
from graphiti_core import Graphiti
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType, EpisodicNode
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF
from graphiti_worlds import WordEmbedder, World, world

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.plugins.graphiti.clients import GraphitiEmbedder, GraphitiReranker
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.nodes import graph_uuid
from agentic_rag_testing.models.server import ModelServer
from agentic_rag_testing.stores import graph_samples as samples
from agentic_rag_testing.stores.graph_samples import A, B, entity_id

OLD = "Ann Lee works at Acme Works since 2019. Ann Lee lives in Oslo."
NEWS = "Since 2021 Ann Lee works at Beta Labs and no longer at Acme Works."
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_FULLTEXT = ("episode_content", "node_name_and_summary", "community_name", "edge_name_and_fact")
_OF_GROUP = "MATCH (n {group_id: $group}) RETURN collect(properties(n)) AS found"
_FACTS_OF_GROUP = "MATCH ()-[r {group_id: $group}]->() RETURN collect(properties(r)) AS found"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@asynccontextmanager
async def product(address: Neo4jAddress, folder: Path, server: ModelServer) -> AsyncIterator[Container]:
    settings = Settings(
        data_dir=folder,
        graph_store="neo4j",
        neo4j_uri=address.uri,
        neo4j_user=address.user,
        neo4j_password=address.password,
        neo4j_timeout_s=60.0,
        llm="openai",
        llm_model="reader",
        openai_api_key="any",
        openai_base_url=server.base_url,
        embedder="openai",
        embedding_model="hashed",
        embedding_dimensions=64,
        extraction="graphiti",
        community_auto_rebuild=False,
        job_polling_interval_s=0.02,
        _env_file=None,
    )
    async with open_container(settings) as services:
        yield services


async def ended(services: Container, tenant: TenantId, job_id: str) -> dict[str, Any]:
    """Wait for a job, and return its result."""
    async with asyncio.timeout(120):
        while (job := await services.catalogue.jobs.job(tenant, job_id)).finished_at is None:
            await asyncio.sleep(0.02)
    assert job.state == "succeeded", job.error
    return dict(job.result or {})


async def upload(services: Container, tenant: TenantId, text: str, **named: Any) -> tuple[str, dict[str, Any]]:
    """Return a document's id and the result of its job."""
    submitted = await services.ingestion.submit(tenant, Upload(content=text.encode(), media_type="text/plain", **named))
    assert submitted.job is not None
    return submitted.document.id, await ended(services, tenant, submitted.job.id)


def asked(server: ModelServer) -> int:
    """Return the number of calls of the language model."""
    return server.stats().models["reader"].calls


async def facts(services: Container, tenant: TenantId) -> dict[tuple[str, str, str], set[tuple[str, str | None, str | None]]]:
    """Return the relationships of a tenant, each with the documents that state it and their times."""
    names = {each.id: each.name async for batch in services.graph.all_entities(tenant) for each in batch}
    edges = {each.id: each async for batch in services.graph.all_relationships(tenant) for each in batch}
    found: dict[tuple[str, str, str], set[tuple[str, str | None, str | None]]] = {}
    for each in await services.graph.fact_sentences(tenant, list(edges)):
        edge = edges[each.relationship_id]
        times = [None if moment is None else moment.date().isoformat() for moment in (each.valid_at, each.invalid_at)]
        ends = names[edge.source_id], edge.relation, names[edge.target_id]
        found.setdefault(ends, set()).add((each.support.document_id, times[0], times[1]))
    return found


async def times(address: Neo4jAddress, tenant: TenantId) -> dict[str, tuple[str | None, str | None]]:
    """Return when Ann Lee works where, as other Graphiti clients read it."""
    statement = (
        "MATCH ({name: 'Ann Lee'})-[r:RELATES_TO {group_id: $group, name: 'works_at'}]->(e) "
        "RETURN e.name AS name, toString(date(r.valid_at)) AS begin, toString(date(r.invalid_at)) AS end"
    )
    rows: Any = await ask(address, statement, group=tenant.value)
    return {row["name"]: (row["begin"], row["end"]) for row in rows}


async def held(address: Neo4jAddress, tenant: TenantId) -> str:
    """Return everything that Neo4j has in the group of a tenant, as text."""
    rows = [await ask(address, statement, group=tenant.value) for statement in (_OF_GROUP, _FACTS_OF_GROUP)]
    return repr([row["found"] for (row,) in rows])


async def test_a_document_brings_its_facts_and_takes_them_along(
    empty_neo4j: Neo4jAddress, tmp_path: Path, server: ModelServer
) -> None:
    async with product(empty_neo4j, tmp_path, server) as services:
        one, other = [(await services.tenants.create(name)).id for name in ("one", "other")]
        await upload(services, other, NEWS)
        before = await held(empty_neo4j, other)
        server.reset()
        old, _ = await upload(services, one, OLD, title="Staff")
        news, result = await upload(services, one, NEWS, title="News")

        stated = await facts(services, one)
        assert stated["Ann Lee", "works_at", "Acme Works"] == {(old, "2019-01-01", None), (news, None, "2021-01-01")}
        assert stated["Ann Lee", "works_at", "Beta Labs"] == {(news, "2021-01-01", None)}
        assert await times(empty_neo4j, one) == {"Acme Works": ("2019-01-01", "2021-01-01"), "Beta Labs": ("2021-01-01", None)}
        paid = await services.catalogue.model_results.usage(one, news, 1)
        assert result["model_calls"] == paid.calls
        assert asked(server) == paid.calls + (await services.catalogue.model_results.usage(one, old, 1)).calls
        assert "fact_embedding" not in await held(empty_neo4j, one)

        calls = asked(server)
        again, result = await upload(services, one, f"{NEWS}\n\nBob Ray lives in Rome.", key="again")
        assert (again != news, asked(server)) == (True, calls + result["model_calls"])

        for document in (news, again):
            job = await services.ingestion.delete(one, document)
            await ended(services, one, job.id)
        assert await facts(services, one) == {
            ("Ann Lee", "works_at", "Acme Works"): {(old, "2019-01-01", None)},
            ("Ann Lee", "lives_in", "Oslo"): {(old, None, None)},
        }
        assert await times(empty_neo4j, one) == {"Acme Works": ("2019-01-01", None)}, "without the news, she works there again"
        left = await held(empty_neo4j, one)
        assert not [word for word in ("Beta", "News", "2021-01", "Bob", news, again) if word in left]
        assert await held(empty_neo4j, other) == before


@asynccontextmanager
async def stock(address: Neo4jAddress, server: ModelServer) -> AsyncIterator[Graphiti]:
    """Open a Graphiti client of its own, with its own driver, statements and indexes."""
    driver = Neo4jDriver(address.uri, address.user, address.password, address.database)
    embedder = WordEmbedder()
    config = LLMConfig(api_key="any", base_url=server.base_url, model="reader", small_model="reader")
    model = OpenAIGenericClient(config)
    client = Graphiti(
        graph_driver=driver,
        llm_client=model,
        embedder=GraphitiEmbedder(embedder),
        cross_encoder=GraphitiReranker(embedder),
    )
    try:
        await driver.build_indices_and_constraints()
        await driver.execute_query("CALL db.awaitIndexes(60)")
        yield client
    finally:
        for name in _FULLTEXT:
            await driver.execute_query(f"DROP INDEX {name} IF EXISTS")
        await model.client.close()
        await driver.close()


async def add(client: Graphiti, tenant: TenantId, text: str) -> Any:
    return await client.add_episode(
        name="foreign",
        episode_body=text,
        source_description="chat",
        reference_time=NOW,
        source=EpisodeType.text,
        group_id=tenant.value,
        saga="talk",
    )


@pytest.fixture
async def opened(empty_neo4j: Neo4jAddress, tmp_path: Path) -> AsyncIterator[World]:
    async with world(empty_neo4j, tmp_path) as found:
        yield found


FOREIGN = "Ada founded Zed Labs in 2020. Ada met Eve Moss."


async def test_an_episode_of_another_client_is_no_knowledge_of_ours(
    opened: World, empty_neo4j: Neo4jAddress, server: ModelServer
) -> None:
    for tenant in (A, B):
        await opened.add(tenant, samples.ONE)
        await opened.add(tenant, samples.TWO)
    before = {tenant: await samples.snapshot(opened.graph, tenant) for tenant in (A, B)}
    whole, question = await held(empty_neo4j, B), "Whom did Ada found Acme for?"
    found = await opened.find(A, question, moment=NOW)

    async with stock(empty_neo4j, server) as client:
        added = await add(client, A, FOREIGN)

        assert {node.name for node in added.nodes} == {"Ada", "Zed Labs", "Eve Moss"}
        (ada,) = [node for node in added.nodes if node.name == "Ada"]
        assert ada.uuid == graph_uuid(A, entity_id("Ada")), "Graphiti's own client found the entity that we wrote"
        config = COMBINED_HYBRID_SEARCH_RRF.model_copy(deep=True)
        read = await client.search_("Ada founded Acme", config=config, group_ids=[A.value])
        assert {edge.group_id for edge in read.edges} == {A.value}
        assert {edge.uuid for edge in read.edges} >= {
            graph_uuid(A, samples.ONE.relationships[0].id),
            *(e.uuid for e in added.edges),
        }
        assert {node.name for node in read.nodes} >= {"Ada", "Acme", "Zed Labs"}
        (edge,) = await EntityEdge.get_by_uuids(client.driver, [graph_uuid(A, samples.ONE.relationships[0].id)])
        assert set(edge.episodes) >= {graph_uuid(A, samples.ONE.chunk_ids[0])}
        assert (await EpisodicNode.get_by_uuid(client.driver, edge.episodes[0])).group_id == A.value

    assert {tenant: await samples.snapshot(opened.graph, tenant) for tenant in (A, B)} == before
    assert await opened.find(A, question, moment=NOW) == found
    assert await held(empty_neo4j, B) == whole
    assert await opened.graph.mention_counts(A, [entity_id("Ada")]) == await opened.graph.mention_counts(B, [entity_id("Ada")])


async def test_what_a_client_attached_does_not_keep_an_entity_of_a_deleted_document(
    opened: World, empty_neo4j: Neo4jAddress, server: ModelServer
) -> None:
    await opened.add(A, samples.ONE)
    async with stock(empty_neo4j, server) as client:
        await add(client, A, FOREIGN)
        gone = await opened.graph.delete_document(A, samples.ONE.document_id, up_to_version=1)

        assert set(gone.entity_ids) == {each.id for each in samples.ONE.entities}
        assert "Acme" not in await held(empty_neo4j, A)
        (left,) = await ask(empty_neo4j, "MATCH (e:Entity {group_id: $group}) RETURN collect(e.name) AS names", group=A.value)
        names: Any = left["names"]
        assert sorted(names) == ["Eve Moss", "Zed Labs"], "what only the client wrote is its own"

        await opened.add(A, samples.ONE)
        assert await samples.snapshot(opened.graph, A)
    await opened.graph.delete_tenant(A)
    assert await held(empty_neo4j, A) == "[[], []]"
