"""Paths lead outwards over visible relationships, and none leads through an entity at which paths begin."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from knowledge_worlds import Says
from related_worlds import RelatedWorld
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.paths.base import PathOptions
from agentic_rag_backend.knowledge.paths.outward import Breadth, Outward, Shown
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs

NOW = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.fixture
def world() -> RelatedWorld:
    """Return two ways from ada to london, of three and of two weaker relationships, and one relationship on from there."""
    world = RelatedWorld()
    world.tell(
        ("ada", "made", "engine"),
        ("engine", "drives", "mill"),
        ("mill", "in", "london"),
        ("london", "at", "thames"),
    )
    world.tell(("ada", "likes", "bridge"), ("bridge", "in", "london"), weight=0.4)
    return world


async def ways(world: RelatedWorld, tenant: Tenant, *starts: str, length: int, **fields: Any) -> list[str]:
    """Return the visible paths from ``starts``, best first."""
    stores: Any = world
    graph = await TenantGraphs(stores, stores, max_bytes=10**9).graph(world.now(tenant))
    shown = Shown(moment=fields.pop("moment", NOW), known={}, passes=fields.pop("passes", None))
    to, breadth = fields.pop("to", None), fields.pop("breadth", None)
    outward = Outward(tenant.id, stores, graph, starts, PathOptions(**fields), breadth)
    for _ in range(length):
        await outward.extend()
    trails = outward.best(100, to=to)
    held = await outward.read(world.facts, trails, shown)
    for nodes, path in held.items():
        assert tuple(entity.id for entity in path.entities) == nodes
        assert len(set(nodes)) == len(nodes)
        assert all(step.fact is not None and step.chunk_id.removesuffix(".c") in world.visible for step in path.steps)
        assert 0 < path.score < 1
    return ["-".join(trail.nodes) for trail in trails if trail.nodes in held]


async def test_paths_grow_by_one_relationship_at_a_time(world: RelatedWorld, tenant: Tenant) -> None:
    assert set(await ways(world, tenant, "ada", length=1)) == {
        "ada-engine",
        "ada-bridge",
    }
    two = await ways(world, tenant, "ada", length=2)
    assert set(two) == {
        "ada-engine",
        "ada-bridge",
        "ada-engine-mill",
        "ada-bridge-london",
    }
    assert two.index("ada-engine") < two.index("ada-bridge")
    assert await ways(world, tenant, "ada", length=4, to=frozenset({"thames"})) == [
        "ada-bridge-london-thames",
        "ada-engine-mill-london-thames",
    ]


async def test_a_path_may_end_at_a_beginning_and_leads_through_none(world: RelatedWorld, tenant: Tenant) -> None:
    found = await ways(world, tenant, "ada", "london", length=3)
    assert "ada-bridge-london" in found
    assert not [way for way in found if "-london-" in way or "-ada-" in way]


async def test_direction_types_weights_and_time_select_relationships(world: RelatedWorld, tenant: Tenant) -> None:
    assert await ways(world, tenant, "mill", length=2, direction="out") == [
        "mill-london",
        "mill-london-thames",
    ]
    assert await ways(world, tenant, "mill", length=2, direction="in") == [
        "mill-engine",
        "mill-engine-ada",
    ]
    assert await ways(world, tenant, "ada", length=2, relations=("likes", "in")) == [
        "ada-bridge",
        "ada-bridge-london",
    ]
    assert await ways(world, tenant, "ada", length=1, min_weight=0.5) == ["ada-engine"]
    world.states(
        "ada-likes-bridge",
        "ada",
        "likes",
        "bridge",
        weight=0.4,
        valid=(None, datetime(1900, 1, 1, tzinfo=UTC)),
    )
    assert await ways(world, tenant, "ada", length=1) == ["ada-engine"]
    assert len(await ways(world, tenant, "ada", length=1, moment=datetime(1899, 1, 1, tzinfo=UTC))) == 2


async def test_hidden_and_filtered_passages_state_nothing(world: RelatedWorld, tenant: Tenant) -> None:
    both = await ways(
        world,
        tenant,
        "ada",
        length=1,
        passes=lambda chunk: chunk.chunk.document_id != "ada-made-engine",
    )
    assert both == ["ada-bridge"]
    world.says("engine-drives-mill", "engine", "mill", version=2)
    assert "ada-engine-mill" not in await ways(world, tenant, "ada", length=2)
    world.hide("ada-likes-bridge")
    assert await ways(world, tenant, "ada", length=3) == ["ada-engine"]


async def test_a_hub_costs_no_more_than_its_bound(world: RelatedWorld, tenant: Tenant) -> None:
    for number in range(50):
        world.show(
            f"t{number}",
            1,
            Says(f"t{number}.c", "ada", "Ada"),
            Says(f"t{number}.c", f"e{number}", f"E{number}"),
        )
        world.states(f"t{number}", "ada", "knows", f"e{number}", weight=0.2)
    found = await ways(world, tenant, "ada", length=1, breadth=Breadth(at_start=3))
    assert len(found) == 3
    assert found[0] == "ada-engine"
