"""Two deployments on the same servers: neither sees, changes or removes the other's data."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from graph_database import ask
from qdrant_client import AsyncQdrantClient
from qdrant_server import qdrant_process

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.container.reindexing import open_reindexing
from agentic_rag_backend.domain.graph import DocumentKnowledge, Entity
from agentic_rag_backend.domain.tenant import Deployment, TenantId
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_backend.stores.ownership import Owner
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint
from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore
from agentic_rag_backend.stores.vector.qdrant.server import connect

POINTS = [
    VectorPoint(id=f"00000000-0000-0000-0000-{n:012}", kind=NodeKind.CHUNK, text=f"tide {n}", document_id="d", version=1)
    for n in range(3)
]
KNOWLEDGE = DocumentKnowledge(
    document_id="d", version=1, title="", chunk_ids=(), entities=(Entity(id="e", name="Tide", type="thing"),)
)
A, B, C = (TenantId(f"t_{each * 32}") for each in "abc")


@pytest.fixture
def qdrant() -> Iterator[dict[str, Any]]:
    with qdrant_process() as url:
        yield {"vector_store": "qdrant", "qdrant_url": url}


@dataclass(frozen=True)
class Site:
    """A deployment: its folder and settings."""

    folder: Path
    named: dict[str, Any]

    def settings(self, **other: Any) -> Settings:
        return Settings(data_dir=self.folder, _env_file=None, **{**self.named, **other})

    @asynccontextmanager
    async def open(self, **other: Any) -> AsyncIterator[Container]:
        async with open_container(self.settings(**other), work=False) as container:
            yield container

    @property
    def id(self) -> str:
        with sqlite3.connect(self.folder / "catalogue.db") as connection:
            return str(connection.execute("SELECT deployment_id FROM deployments").fetchone()[0])

    async def filled(self, count: int = 1) -> list[TenantId]:
        """Write points, knowledge and an original of new tenants."""
        async with self.open() as container:
            tenants = [(await container.catalogue.tenants.create(f"tenant {n}")).id for n in range(count)]
            for tenant in tenants:
                await container.vectors.upsert(tenant, Collection.CHUNKS, POINTS)
                await container.graph.write_document(tenant, KNOWLEDGE)
                await container.blobs.put(tenant, "d/1", b"x")
            return tenants

    async def compared(self) -> tuple[list[TenantId], ...]:
        """Run a comparison with repair. Return the tenants of each store."""
        async with self.open() as container:
            await container.reconciler.run_tenants(repair=True)
            return tuple([await store.tenants() for store in (container.vectors, container.graph, container.blobs)])


def sites(tmp_path: Path, shared: dict[str, Any]) -> tuple[Site, Site]:
    return Site(tmp_path / "first", shared), Site(tmp_path / "second", shared)


async def refusal(site: Site, **other: Any) -> str:
    with pytest.raises(ConfigurationError) as refused:
        async with site.open(**other):
            pass
    return refused.value.message


async def test_a_second_deployment_under_the_same_name_is_refused(tmp_path: Path, qdrant: dict[str, Any]) -> None:
    first, second = sites(tmp_path, qdrant)
    tenants = await first.filled(5)

    told = await refusal(second)

    assert all(site.id in told for site in (first, second)), told
    assert all(str(site.folder) in told for site in (first, second)), told
    assert "DEPLOYMENT" in told
    assert await first.compared() == (sorted(tenants),) * 3


async def test_a_second_embedder_does_not_take_the_first_ones_collections_for_old_vectors(
    tmp_path: Path, qdrant: dict[str, Any]
) -> None:
    first, second = sites(tmp_path, qdrant)
    tenants = await first.filled()
    other = {"embedder": "openai", "openai_base_url": "http://127.0.0.1:9/v1", "embedding_dimensions": 8}
    assert first.id in await refusal(second, **other)
    with pytest.raises(ConfigurationError, match="another deployment"):
        async with open_reindexing(second.settings(**other)):
            pass
    assert (await first.compared())[0] == tenants


async def test_deployments_of_two_names_share_a_server(tmp_path: Path, qdrant: dict[str, Any]) -> None:
    first, second = sites(tmp_path, qdrant)
    named = Site(second.folder, {**qdrant, "deployment": "staging"})
    ours, theirs = await first.filled(3), await named.filled(2)
    assert await first.compared() == (sorted(ours),) * 3
    assert await named.compared() == (sorted(theirs),) * 3


async def test_another_name_needs_a_reindexing(tmp_path: Path, qdrant: dict[str, Any]) -> None:
    site, _ = sites(tmp_path, qdrant)
    await site.filled()
    told = await refusal(site, deployment="renamed")
    assert "DEPLOYMENT=agentic_rag" in told
    assert "agentic-rag reindex" in told

    async def quiet(stage: str, done: int, total: int) -> None: ...

    async with open_reindexing(site.settings(deployment="renamed")) as reindexing:
        await reindexing.reindexer.run(quiet)
        await reindexing.finish()
    async with site.open(deployment="renamed"):
        pass
    assert "DEPLOYMENT=renamed" in await refusal(site)
    # Without a server, the name has no effect.
    async with Site(tmp_path / "embedded", {}).open():
        pass
    async with Site(tmp_path / "embedded", {"deployment": "renamed"}).open():
        pass


async def unmarked(qdrant: dict[str, Any], *tenants: TenantId) -> QdrantVectorStore:
    """Create collections in the form of an earlier release."""
    embedder = BundledEmbedder(model_path=None, threads=1)
    about = {"dimensions": embedder.dimensions, "embedder_fingerprint": embedder.fingerprint}
    store = await QdrantVectorStore.open(connect(qdrant["qdrant_url"]), **about)
    for tenant in tenants:
        await store.upsert(tenant, Collection.CHUNKS, POINTS)
    await embedder.close()
    return store


async def test_collections_of_an_earlier_release_are_adopted_by_whose_tenants_they_hold(
    tmp_path: Path, qdrant: dict[str, Any]
) -> None:
    first, second = sites(tmp_path, qdrant)
    store = await unmarked(qdrant, A, B)
    async with Site(first.folder, {}).open() as container:
        await container.catalogue.tenants.create("a", tenant_id=A)

    told = await refusal(second)
    assert "none of which is in the catalogue" in told
    assert second.id in told

    # B may belong to another deployment that used the same collections, so it is not changed.
    assert (await first.compared())[0] == [A, B]
    assert [await store.count(each, Collection.CHUNKS) for each in (A, B)] == [3, 3]
    assert first.id in await refusal(second)
    await store.close()


async def test_empty_collections_of_an_earlier_release_go_to_the_first_that_comes(tmp_path: Path, qdrant: dict[str, Any]) -> None:
    first, second = sites(tmp_path, qdrant)
    await (await unmarked(qdrant)).close()
    await first.filled()
    assert first.id in await refusal(second)


async def test_a_mark_that_was_overwritten_stops_the_listing_of_tenants(tmp_path: Path, qdrant: dict[str, Any]) -> None:
    """A deployment may remove the tenants it lists. It lists none on a server that now belongs to another deployment."""
    site, _ = sites(tmp_path, qdrant)
    client = AsyncQdrantClient(url=qdrant["qdrant_url"], check_compatibility=False)
    async with site.open() as container:
        for found in (await client.get_collections()).collections:
            held = (await client.get_collection(found.name)).config.metadata or {}
            await client.update_collection(found.name, metadata={**held, "deployment": "d_" + "0" * 32})
        with pytest.raises(ConfigurationError, match="d_0000"):
            await container.reconciler.run_tenants(repair=True)
    await client.close()


async def test_one_folder_of_originals_has_one_deployment(tmp_path: Path) -> None:
    shared = {"blob_url": (tmp_path / "originals").as_uri()}
    first, second = sites(tmp_path, shared)
    tenants = await first.filled()
    told = await refusal(second)
    assert all(site.id in told for site in (first, second)), told
    assert "BLOB_URL" in told
    assert (await first.compared())[2] == tenants
    apart = Site(second.folder, {"blob_url": (tmp_path / "originals" / "second").as_uri()})
    theirs = await apart.filled()
    assert ((await first.compared())[2], (await apart.compared())[2]) == (tenants, theirs)


async def test_originals_of_an_earlier_release_are_adopted_by_whose_tenants_they_are(tmp_path: Path) -> None:
    shared = {"blob_url": (tmp_path / "originals").as_uri()}
    first, second = sites(tmp_path, shared)
    for tenant in (A, B):
        await BlobStore(shared["blob_url"]).put(tenant, "d/1", b"x")
    async with Site(first.folder, {}).open() as container:
        await container.catalogue.tenants.create("a", tenant_id=A)
    told = await refusal(second)
    assert "none of which is in the catalogue" in told
    assert (await first.compared())[2] == [A, B]
    # As the message says: an operator who replaces a removed deployment writes its own mark.
    mark = json.loads(told[told.index("{") : told.index("}") + 1])
    (tmp_path / "originals" / ".deployment.json").write_text(json.dumps(mark))
    assert (await second.compared())[2] == [A, B]
    (tmp_path / "originals" / ".deployment.json").write_text("{")
    told = await refusal(second)
    assert ".deployment.json" in told
    assert "damaged" in told


def owner(name: str, number: int, *known: TenantId) -> Owner:
    async def known_tenants(asked: Any) -> frozenset[TenantId]:
        return frozenset(known) & frozenset(asked)

    return Owner(deployment=Deployment(id=f"d_{number:032}", name=name, described=f"host-{number}"), known_tenants=known_tenants)


async def test_two_deployments_share_a_neo4j(empty_neo4j: Neo4jAddress) -> None:
    earlier = await Neo4jGraphStore.open(empty_neo4j)
    for tenant in (A, B):
        await earlier.write_document(tenant, KNOWLEDGE)
    first = await Neo4jGraphStore.open(empty_neo4j, owner=owner("one", 1, A))
    second = await Neo4jGraphStore.open(empty_neo4j, owner=owner("two", 2))
    await second.write_document(C, KNOWLEDGE)

    assert await first.tenants() == [A]
    assert await second.tenants() == [C]
    assert await earlier.tenants() == [A, B, C]
    with pytest.raises(ConfigurationError) as refused:
        await Neo4jGraphStore.open(empty_neo4j, owner=owner("one", 3))
    assert all(part in refused.value.message for part in ("host-1", "host-3", "DEPLOYMENT", f"d_{3:032}"))
    # An import writes communities before any knowledge.
    await second.write_communities(B, 1, [])
    again = await Neo4jGraphStore.open(empty_neo4j, owner=owner("two", 2, B))
    assert await again.tenants() == [B, C]
    held = await ask(empty_neo4j, "MATCH (t:Tenant) RETURN t.group_id AS tenant, t.deployment AS owner ORDER BY tenant")
    assert [(row["tenant"], row["owner"]) for row in held] == [
        (A.value, f"d_{1:032}"),
        (B.value, f"d_{2:032}"),
        (C.value, f"d_{2:032}"),
    ]
    for store in (earlier, first, second, again):
        await store.close()
