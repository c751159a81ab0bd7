"""Paths lead over visible relationships, or over shared chunks if there is no such path."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from knowledge_worlds import Says
from related_worlds import RelatedWorld
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.knowledge.paths import path_finder
from agentic_rag_backend.knowledge.paths.base import EntityPath, PathOptions
from agentic_rag_backend.knowledge.paths.path_finder import PathFinder
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs


@pytest.fixture
def world() -> RelatedWorld:
    """Return a chain ada–engine–mill–london–thames, and a weaker way from ada to london."""
    world = RelatedWorld()
    world.tell(("ada", "made", "engine"), ("engine", "drives", "mill"), ("mill", "in", "london"), ("london", "at", "thames"))
    world.tell(("ada", "likes", "bridge"), ("bridge", "in", "london"), weight=0.4)
    return world


@pytest.fixture
def find(world: RelatedWorld, tenant: Tenant) -> Any:
    stores: Any = world
    paths = PathFinder(TenantGraphs(stores, stores, max_bytes=10**9), stores, stores, stores.facts)

    async def called(source: Any, target: Any = None, **options: Any) -> Any:
        wanted = PathOptions(**options)
        if target is None:
            return await paths.of_question(world.now(tenant), source, wanted)
        return await paths.between(
            world.now(tenant), *([each] if isinstance(each, str) else each for each in (source, target)), wanted
        )

    return called


def ways(found: Any) -> list[str]:
    return ["-".join(entity.id for entity in path.entities) for path in found.paths]


async def test_paths_are_scored_and_each_step_has_its_sentence(find: Any) -> None:
    found = await find("Ada", "london", max_hops=3)
    assert ways(found) == ["ada-bridge-london", "ada-engine-mill-london"]
    path: EntityPath = found.paths[1]
    assert [(step.source.id, step.fact.relation, step.target.id, step.chunk_id) for step in path.steps if step.fact] == [
        ("ada", "made", "engine", "ada-made-engine.c"),
        ("engine", "drives", "mill", "engine-drives-mill.c"),
        ("mill", "in", "london", "mill-in-london.c"),
    ]
    assert path.steps[0].fact is not None
    assert path.steps[0].fact.fact == "ada made engine, says ada-made-engine.1"
    assert 0 < path.score < found.paths[0].score < 1
    assert ways(await find("ada", "london")) == ["ada-bridge-london"]
    assert ways(await find("ada", "thames", max_hops=4)) == ["ada-bridge-london-thames", "ada-engine-mill-london-thames"]
    assert ways(await find("ada", "london", max_hops=3, limit=1)) == ["ada-bridge-london"]
    assert ways(await find("ada", "ada")) == []


async def test_types_weight_direction_and_time_select_steps(world: RelatedWorld, find: Any) -> None:
    assert ways(await find("ada", "london", max_hops=3, relations=("made", "drives", "in"))) == ["ada-engine-mill-london"]
    assert ways(await find("ada", "london", max_hops=3, min_weight=0.5)) == ["ada-engine-mill-london"]
    assert ways(await find("ada", "thames", max_hops=4, direction="out", min_weight=0.5)) == ["ada-engine-mill-london-thames"]
    assert ways(await find("thames", "ada", max_hops=4, direction="out")) == []
    back = await find("thames", "ada", max_hops=4, direction="in", min_weight=0.5)
    assert ways(back) == ["thames-london-mill-engine-ada"]
    assert [step.forward for step in back.paths[0].steps] == [False] * 4
    ended = datetime(1900, 1, 1, tzinfo=UTC)
    world.states("ada-likes-bridge", "ada", "likes", "bridge", weight=0.4, valid=(None, ended))
    assert ways(await find("ada", "bridge", mentions=False)) == []
    assert ways(await find("ada", "bridge", as_of=datetime(1899, 1, 1, tzinfo=UTC))) == ["ada-bridge"]


async def test_hidden_documents_carry_no_path(world: RelatedWorld, find: Any) -> None:
    world.hide("ada-likes-bridge")
    assert ways(await find("ada", "london", max_hops=3)) == ["ada-engine-mill-london"]
    world.says("engine-drives-mill", "engine", "mill", version=2)  # it still mentions both, and no longer states it
    assert ways(await find("ada", "london", max_hops=3, mentions=False)) == []
    world.hide("mill-in-london")
    world.hide("engine-drives-mill")
    with pytest.raises(NotFound, match="no entity 'mill'"):
        await find("ada", "mill")


async def test_shared_chunks_are_steps_only_if_no_relationship_leads_there(world: RelatedWorld, find: Any) -> None:
    world.says("letter", "ada", "byron")
    world.says("poem", "byron", "thames")
    found = await find("ada", "byron")
    assert ways(found) == ["ada-byron"]
    (step,) = found.paths[0].steps
    assert (step.fact, step.weight, step.chunk_id, step.document_id) == (None, 0.1, "letter.c", "letter")
    assert ways(await find("ada", "byron", mentions=False)) == []
    assert ways(await find("ada", "byron", relations=("made",))) == ways(await find("ada", "byron", direction="out")) == []
    mixed = await find("byron", "engine")
    assert [step.fact is None for step in mixed.paths[0].steps] == [True, False]
    # By relationships, ada reaches thames in three steps: shared chunks are not used.
    assert all(step.fact for path in (await find("ada", "thames", max_hops=3)).paths for step in path.steps)


async def test_parallel_relationships_are_one_path(world: RelatedWorld, find: Any) -> None:
    world.says("two", "ada", "engine")
    world.states("two", "ada", "designed", "engine", weight=3.0)
    world.states("two", "engine", "honours", "ada", weight=0.5)
    found = await find("ada", "engine", max_hops=1)
    assert ways(found) == ["ada-engine"]
    (step,) = found.paths[0].steps
    assert step.fact.relation == "designed"
    assert [other.relation for other in step.others] == ["made", "honours"]


async def test_a_name_of_several_entities_stands_for_all_of_them(world: RelatedWorld, find: Any) -> None:
    world.show("other", 1, Says("other.c", "ada2", "Ada"), Says("other.c", "mill", "Mill"))
    world.states("other", "ada2", "owns", "mill")
    found = await find("ada", "mill", max_hops=2)
    assert ways(found) == ["ada-engine-mill"], "an id is not ambiguous"
    found = await find("ADA", "mill", max_hops=2)
    assert ways(found) == ["ada2-mill", "ada-engine-mill"]
    assert [(each.name, {entity.id for entity in each.entities}) for each in found.ambiguous] == [("ADA", {"ada", "ada2"})]
    asked = await find("What has Ada to do with the Mill?", max_hops=2)
    assert sorted("-".join(sorted(way.split("-"))) for way in ways(asked)) == ["ada-engine-mill", "ada2-mill"]
    assert [each.name for each in asked.ambiguous] == ["Ada"]
    for number in range(25):
        world.show(f"n{number}", 1, Says(f"n{number}.c", f"n{number}", "Many"))
    with pytest.raises(InvalidRequest, match="at most 20 entities; they belong to 25"):
        await find("many", "ada")


async def test_a_question_gives_paths_among_the_entities_it_names(find: Any) -> None:
    found = await find("How is Ada connected with London?", max_hops=3)
    assert sorted(min(way, "-".join(reversed(way.split("-")))) for way in ways(found)) == [
        "ada-bridge-london",
        "ada-engine-mill-london",
    ]
    assert {entity.id for entity in found.sources} == {"ada", "london"}
    assert (await find("Who is Ada?")).paths == ()
    assert (await find("nothing is named")).sources == ()


async def test_a_hub_between_or_at_the_end_is_bounded(world: RelatedWorld, find: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_finder, "AT_AN_END", 5)
    monkeypatch.setattr(path_finder, "FURTHER", 3)
    world.tell(*((f"p{number:02}", "in", "hub") for number in range(40)), weight=5.0)
    world.tell(("x", "in", "hub"), ("y", "in", "hub"), ("w", "knows", "x"), ("v", "knows", "w"), weight=0.5)
    found = await find("x", "y")
    assert ways(found) == ["x-hub-y"]
    for start, way in (("x", "x-hub"), ("w", "w-x-hub"), ("v", "v-w-x-hub")):
        found = await find(start, "hub", max_hops=3)
        assert ways(found) == [way]
        assert found.bounded
        assert ways(await find("hub", start, max_hops=3)) == ["-".join(reversed(way.split("-")))]
