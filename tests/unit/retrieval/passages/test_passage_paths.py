"""The path to a result begins at an entity of the question, and each of its steps is visible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, cast

import pytest
from related_worlds import RelatedWorld
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.query import FactHit, GraphStep, Query
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION, Calibrator
from agentic_rag_backend.retrieval.base import QueryEncoder, Stores
from agentic_rag_backend.retrieval.hops import Hop, HopLink
from agentic_rag_backend.retrieval.passages.passage_paths import (
    PassagePaths,
    PathsOfPassages,
    ResultChunks,
)

AS_OF = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.fixture
def world() -> RelatedWorld:
    """Return ada–engine–mill by relationships, and documents that only mention entities."""
    world = RelatedWorld()
    world.tell(("ada", "made", "engine"), ("engine", "drives", "mill"))
    world.says("of-ada", "ada", "lake")
    world.says("of-engine", "engine")
    world.says("of-mill", "mill")
    world.says("of-lake", "lake")
    world.says("alone", "nobody")
    return world


async def traced(
    world: RelatedWorld,
    tenant: Tenant,
    *documents: str,
    named: tuple[str, ...] = ("ada",),
    hops: Mapping[str, tuple[str, str]] | None = None,
    facts: tuple[FactHit, ...] = (),
) -> PathsOfPassages:
    """Return the paths to the only chunks of documents. ``hops`` are source document and entity by document."""
    stores: Any = world
    graph = await TenantGraphs(stores, stores, max_bytes=10**9).graph(world.now(tenant))
    chunks = {
        document: Hop(
            HopLink(
                graph.chunk_index[f"{source}.c"],
                graph.chunk_index[f"{document}.c"],
                3.0,
                graph.entity_index[over],
            ),
            1,
        )
        for document, (source, over) in (hops or {}).items()
    }
    read = await world.hydrate(
        tenant.id,
        [f"{each}.c" for each in (*documents, *(source for source, _ in (hops or {}).values()))],
    )
    found = ResultChunks(
        ids=[f"{each}.c" for each in documents],
        linked={graph.entity_index[each]: 1.0 for each in named},
        hops={f"{document}.c": hop for document, hop in chunks.items()},
        visible=read,
        facts=facts,
    )
    nothing = cast("Any", None)
    kept = Stores(
        nothing,
        nothing,
        nothing,
        stores,
        nothing,
        QueryEncoder(nothing),
        trees=nothing,
        questions=nothing,
        facts=stores.facts,
        calibrator=Calibrator(nothing, calibration=BUNDLED_CALIBRATION),
    )
    query = Query(tenant=world.now(tenant), text="of ada", as_of=AS_OF)
    paths = await PassagePaths(kept).of(query, graph, found)
    for id, steps in paths.steps.items():
        holds(world, id, steps)
    return paths


def holds(world: RelatedWorld, id: str, steps: tuple[GraphStep, ...]) -> None:
    """Check that a path ends at its chunk, that its steps join, that none comes twice, and that visible chunks state them."""
    assert steps[-1].relation == "mentioned_in"
    assert steps[-1].document_id == id.removesuffix(".c")
    assert all(str(step.chunk_id).removesuffix(".c") in world.visible for step in steps)
    walked = [step if step.forward else replace(step, source_id=step.target_id, target_id=step.source_id) for step in steps]
    assert all(one.target_id == other.source_id for one, other in pairwise(walked))
    ends = [walked[0].source_id or steps[0].source, *(step.target_id for step in walked)]
    assert len(set(ends)) == len(ends)


def written(paths: PathsOfPassages, document: str) -> list[str]:
    steps = paths.steps.get(f"{document}.c", ())
    return [f"{step.source} {step.relation} {step.target}" for step in steps]


async def test_a_chunk_that_names_an_entity_of_the_question(world: RelatedWorld, tenant: Tenant) -> None:
    paths = await traced(world, tenant, "of-ada", "alone")
    assert written(paths, "of-ada") == ["Ada mentioned_in Of-Ada"]
    assert written(paths, "alone") == []


async def test_relationships_lead_to_a_chunk_that_names_none(world: RelatedWorld, tenant: Tenant) -> None:
    paths = await traced(world, tenant, "of-mill", "of-engine", "of-lake")
    assert written(paths, "of-engine") == [
        "Ada made Engine",
        "Engine mentioned_in Of-Engine",
    ]
    assert written(paths, "of-mill") == [
        "Ada made Engine",
        "Engine drives Mill",
        "Mill mentioned_in Of-Mill",
    ]
    assert written(paths, "of-lake") == []
    first = paths.steps["of-mill.c"][0]
    assert (first.kind, first.fact, first.chunk_id) == (
        "relationship",
        "ada made engine, says ada-made-engine.1",
        "ada-made-engine.c",
    )
    back = await traced(world, tenant, "of-ada", named=("engine",))
    assert [step.forward for step in back.steps["of-ada.c"]] == [False, True]


async def test_no_path_leads_over_what_is_hidden(world: RelatedWorld, tenant: Tenant) -> None:
    world.hide("engine-drives-mill")
    assert written(await traced(world, tenant, "of-mill"), "of-mill") == []


async def test_the_second_hop_is_a_shared_mention(world: RelatedWorld, tenant: Tenant) -> None:
    paths = await traced(world, tenant, "of-lake", hops={"of-lake": ("of-ada", "lake")})
    assert written(paths, "of-lake") == [
        "Ada mentioned_with Lake",
        "Lake mentioned_in Of-Lake",
    ]
    unnamed = await traced(world, tenant, "of-lake", named=(), hops={"of-lake": ("of-ada", "lake")})
    assert written(unnamed, "of-lake") == [
        "Of-Ada mentions Lake",
        "Lake mentioned_in Of-Lake",
    ]


async def test_a_document_does_not_lead_to_itself(world: RelatedWorld, tenant: Tenant) -> None:
    paths = await traced(world, tenant, "of-lake", named=(), hops={"of-lake": ("of-lake", "lake")})
    assert written(paths, "of-lake") == []


async def test_the_fact_of_the_question_that_the_chunk_states_comes_first(world: RelatedWorld, tenant: Tenant) -> None:
    stores: Any = world
    graph = await TenantGraphs(stores, stores, max_bytes=10**9).graph(world.now(tenant))
    ada, engine = (graph.entity(graph.entity_index[id]) for id in ("ada", "engine"))
    made: dict[str, Any] = {
        "relation": "made",
        "fact": "Ada made it",
        "document_id": "ada-made-engine",
        "score": 1.0,
    }
    fact = FactHit(id="f", source=ada, target=engine, chunk_id="ada-made-engine.c", **made)
    assert written(await traced(world, tenant, "ada-made-engine", facts=(fact,)), "ada-made-engine") == [
        "Ada made Engine",
        "Engine mentioned_in Ada-Made-Engine",
    ]
    world.says("of-both", "ada", "engine")
    assert written(await traced(world, tenant, "of-both", facts=(fact,)), "of-both") == ["Ada mentioned_in Of-Both"]


async def test_without_the_graph_store_mentions_are_left(
    world: RelatedWorld, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> object:
        raise StoreUnavailable("the graph store is away")

    monkeypatch.setattr(world, "edges_at", away)
    paths = await traced(world, tenant, "of-ada", "of-mill")
    assert written(paths, "of-ada") == ["Ada mentioned_in Of-Ada"]
    assert written(paths, "of-mill") == []
    assert paths.failure == "relationships are left out of graph_path: store_unavailable"
