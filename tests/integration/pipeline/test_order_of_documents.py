"""The same corpus gives the same knowledge, themes, trees and search results, in any order of upload and in both profiles."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sampling import budget
from tests.integration.pipeline.conftest import Application, Opens

from agentic_rag_backend.domain.document import Document
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions

CORPUS = Path(__file__).parents[3] / "examples" / "corpus"
QUESTIONS = (
    "Who is Rowan Teller?",
    "How did the Narrows Accord change fishing?",
    "Which themes connect the harbour and the turbines?",
)
STRATEGIES = ("auto", "hybrid", "graph", "community", "global", "drift", "raptor")
Contents = Mapping[str, Sequence[Any]]


async def ingest(application: Application, seed: int) -> TenantId:
    """Upload the corpus to a new tenant, in an order that ``seed`` decides, and build its themes. Ids are random."""
    container = application.container
    tenant = (await container.catalogue.tenants.create(f"order {seed}")).id
    paths = sorted(CORPUS.iterdir())
    random.Random(seed).shuffle(paths)
    jobs = []
    for path in paths:
        upload = Upload(content=path.read_bytes(), file_name=path.name, key=path.name)
        jobs.append((await container.ingestion.submit(tenant, upload)).job)
    jobs.append(await container.communities.request_rebuild(tenant, RebuildOptions(mode="full")))
    jobs.append(await container.raptor.request_build(tenant))
    for job in jobs:
        assert job is not None
        ended = await application.until(lambda id=job.id: container.catalogue.jobs.job(tenant, id), lambda held: held.state.ended)  # type: ignore[misc]
        assert ended.state == "succeeded", ended.error
        assert ended.result.get("names_settled", True)
    return tenant


async def contents(application: Application, tenant: TenantId) -> Contents:
    """Return what readers see of a tenant, without ids."""
    container = application.container
    keys = {document.id: document.key async for document in _documents(application, tenant)}
    entities = {each.id: each async for batch in container.graph.all_entities(tenant) for each in batch}
    facts = [each async for batch in container.graph.all_relationships(tenant) for each in batch]
    pointer = await container.catalogue.communities.pointer(tenant)
    communities = await container.graph.communities(tenant, pointer.generation)
    views = await container.communities.views(tenant, [each.id for each in communities])
    tree = (await container.raptor.list(tenant, limit=1000)).items
    return {
        "entities": sorted((each.name, each.type, each.aliases, each.description) for each in entities.values()),
        "names": sorted(
            [
                (keys[each.document_id], each.name, entities[each.entity_id].name)
                async for batch in container.graph.all_names(tenant)
                for each in batch
            ]
        ),
        "facts": sorted(
            (entities[each.source_id].name, each.relation, entities[each.target_id].name, each.fact, each.weight)
            for each in facts
        ),
        "members": sorted((each.level, sorted(entities[id].name for id in each.entity_ids)) for each in communities),
        "themes": sorted((view.level, view.name, view.summary, view.keywords, view.rating) for view in views.values()),
        "tree": sorted((node.level, node.summary) for node in tree),
        "results": [
            result
            for question in QUESTIONS
            for strategy in STRATEGIES
            for result in await _results(application, tenant, keys, question, strategy)
        ],
    }


async def _documents(application: Application, tenant: TenantId) -> AsyncIterator[Document]:
    cursor: str | None = None
    while True:
        page = await application.container.catalogue.documents.documents(tenant, limit=100, cursor=cursor)
        for document in page.items:
            yield document
        if (cursor := page.next_cursor) is None:
            return


async def _results(
    application: Application, tenant: TenantId, keys: Mapping[str, str | None], question: str, strategy: str
) -> list[tuple[Any, ...]]:
    asked = Query(tenant=await application.container.tenants.get(tenant), text=question, limit=10)
    found = await application.container.retrievers.get(strategy).retrieve(asked)
    hits = [
        (strategy, question, keys[hit.visible.chunk.document_id], hit.visible.chunk.ordinal, round(hit.score, 6))
        for hit in found.hits
    ]
    return hits + [(strategy, question, theme.name, round(theme.score, 6)) for theme in found.themes]


def compare(found: Contents, expected: Contents) -> None:
    for part, items in expected.items():
        missing = [item for item in items if item not in found[part]]
        extra = [item for item in found[part] if item not in items]
        assert (missing[:3], extra[:3]) == ([], []), part
        assert found[part] == items, part


@pytest.fixture
async def expected(opens: Opens) -> Contents:
    """Return the contents after uploads in one order, in the embedded profile."""
    async with opens() as application:
        return await contents(application, await ingest(application, 0))


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_order_of_uploads_does_not_matter(opens: Opens, expected: Contents) -> None:
    assert {len(items) > 10 for items in expected.values()} == {True}
    async with opens() as application:
        for seed in range(1, budget(gate=2, deep=12)):
            compare(await contents(application, await ingest(application, seed)), expected)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_profile_does_not_matter(
    opens: Opens, expected: Contents, empty_neo4j: Neo4jAddress, postgres_url: str
) -> None:
    address = {"neo4j_uri": empty_neo4j.uri, "neo4j_user": empty_neo4j.user, "neo4j_password": empty_neo4j.password}
    async with opens(graph_store="neo4j", database_url=postgres_url, **address) as application:
        compare(await contents(application, await ingest(application, 1)), expected)
