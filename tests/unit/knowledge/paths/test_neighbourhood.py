"""A neighbourhood holds the nearest entities and visible connections, bounded at hubs."""

from __future__ import annotations

from typing import Any

import pytest
from related_worlds import RelatedWorld
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.knowledge.paths.neighbourhood import NeighbourhoodOptions, NeighbourhoodReader
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs


@pytest.fixture
def world() -> RelatedWorld:
    world = RelatedWorld()
    world.tell(("ada", "made", "engine"), ("engine", "drives", "mill"), ("mill", "in", "london"), weight=1.0)
    world.tell(("ada", "likes", "mill"), weight=0.5)
    world.says("letter", "ada", "byron")
    world.says("poem", "byron", "keats")
    return world


@pytest.fixture
def around(world: RelatedWorld, tenant: Tenant) -> Any:
    stores: Any = world
    reader = NeighbourhoodReader(TenantGraphs(stores, stores, max_bytes=10**9), stores, stores, stores.facts)

    async def called(id: str, **options: Any) -> Any:
        return await reader.around(world.now(tenant), id, NeighbourhoodOptions(**options))

    return called


def nodes(found: Any) -> dict[str, int]:
    return {node.entity.id: node.hops for node in found.nodes}


def edges(found: Any) -> list[str]:
    return [f"{edge.source.id}-{edge.fact.relation if edge.fact else '?'}-{edge.target.id}" for edge in found.edges]


async def test_hops_types_and_limit(around: Any) -> None:
    near = await around("ada")
    assert nodes(near) == {"ada": 0, "engine": 1, "mill": 1}
    assert edges(near) == ["ada-made-engine", "ada-likes-mill"]
    assert near.edges[0].chunk_id == "ada-made-engine.c"
    assert not near.bounded
    further = await around("ada", hops=2)
    assert nodes(further) == {"ada": 0, "engine": 1, "mill": 1, "london": 2}
    assert edges(further) == ["ada-made-engine", "engine-drives-mill", "mill-in-london", "ada-likes-mill"]
    assert nodes(await around("ada", hops=4, relations=("made", "drives"))) == {"ada": 0, "engine": 1, "mill": 2}
    few = await around("ada", hops=4, limit=1)
    assert nodes(few) == {"ada": 0, "engine": 1}
    assert few.bounded


async def test_entities_without_relationships_have_those_that_share_their_chunks(world: RelatedWorld, around: Any) -> None:
    found = await around("byron")
    assert nodes(found) == {"byron": 0, "ada": 1, "keats": 1}
    assert sorted((edge.fact, edge.weight, edge.chunk_id) for edge in found.edges) == [
        (None, 0.1, "letter.c"),
        (None, 0.1, "poem.c"),
    ]
    assert nodes(await around("byron", mentions=False)) == nodes(await around("byron", relations=("made",))) == {"byron": 0}
    world.hide("poem")
    assert nodes(await around("byron")) == {"byron": 0, "ada": 1}


async def test_what_only_hidden_documents_connect_is_absent(world: RelatedWorld, around: Any) -> None:
    world.hide("engine-drives-mill")
    world.hide("ada-likes-mill")
    assert nodes(await around("ada", hops=3)) == {"ada": 0, "engine": 1}
    world.hide("ada-made-engine")
    world.hide("letter")
    with pytest.raises(NotFound):
        await around("ada")


async def test_a_hub_is_bounded(world: RelatedWorld, around: Any) -> None:
    world.tell(*((f"p{number:02}", "in", "hub") for number in range(90)), weight=0.1)
    world.tell(("ada", "in", "hub"), weight=0.9)
    found = await around("hub", limit=7)
    assert len(found.nodes) == 8
    assert found.bounded
    assert edges(found)[0] == "ada-in-hub"
    assert len((await around("ada", hops=2, limit=200)).nodes) == 4 + 60, "of the hub, as many as are read of an entity"
