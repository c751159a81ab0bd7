"""Files of the graph hold what is visible, a batch at a time, and are valid whatever documents say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from knowledge_worlds import Says
from related_worlds import RelatedWorld
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge import graph_files
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs

_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
HOSTILE = "]]></data><!-- & \"'<b>\x00\x01\x1b[31m\ufffe\u202e\r\n\ud800 end"


@pytest.fixture
def world() -> RelatedWorld:
    world = RelatedWorld()
    world.tell(("ada", "made", "engine"), ("engine", "drives", "mill"))
    return world


@pytest.fixture
def stream(world: RelatedWorld, tenant: Tenant) -> Any:
    stores: Any = world
    exporter = graph_files.GraphExport(TenantGraphs(stores, stores, max_bytes=10**9), stores, stores.facts)
    return lambda format, **options: exporter.stream(world.now(tenant), format, **options)


async def whole(parts: Any) -> str:
    return "".join([part async for part in parts])


async def test_both_formats_hold_the_visible_graph(world: RelatedWorld, stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_files, "_ENTITIES_PER_BATCH", 2)
    world.states("ada-made-engine", "ada", "sold", "engine", valid=(None, datetime(1900, 1, 1, tzinfo=UTC)))
    world.hide("engine-drives-mill")
    held = json.loads(await whole(stream("json")))
    assert [node["id"] for node in held["nodes"]] == ["ada", "engine"]
    (edge,) = held["edges"]
    assert (edge["source"], edge["relation"], edge["target"], edge["weight"]) == ("ada", "made", "engine", 1.0)
    assert edge["passages"] == [{"chunk_id": "ada-made-engine.c", "document_id": "ada-made-engine"}]
    root = ElementTree.fromstring(await whole(stream("graphml")))
    names = {node.get("id"): node.find(f"{_GRAPHML}data").text for node in root.iter(f"{_GRAPHML}node")}  # type: ignore[union-attr]
    assert names == {"ada": "Ada", "engine": "Engine"}
    (line,) = root.iter(f"{_GRAPHML}edge")
    data = {each.get("key"): each.text for each in line}
    assert (line.get("source"), data["relation"], data["fact"]) == ("ada", "made", "ada made engine, says ada-made-engine.1")
    declared = {key.get("id") for key in root.iter(f"{_GRAPHML}key")}
    assert set(data) <= declared
    earlier = json.loads(await whole(stream("json", as_of=datetime(1899, 1, 1, tzinfo=UTC))))
    assert [edge["relation"] for edge in earlier["edges"]] == ["made", "sold"]


async def test_an_empty_graph_is_a_valid_file(stream: Any, world: RelatedWorld) -> None:
    for document in list(world.visible):
        world.hide(document)
    held = json.loads(await whole(stream("json")))
    assert (held["nodes"], held["edges"]) == ([], [])
    assert len(list(ElementTree.fromstring(await whole(stream("graphml"))).iter(f"{_GRAPHML}node"))) == 0


async def test_hostile_names_and_facts_cannot_break_a_file(world: RelatedWorld, stream: Any) -> None:
    world.show("bad", 1, Says("bad.c", HOSTILE, HOSTILE), Says("bad.c", "ada", "Ada"))
    world.states("bad", HOSTILE, HOSTILE, "ada")
    text = await whole(stream("graphml"))
    root = ElementTree.fromstring(text.encode())
    assert len(list(root.iter(f"{_GRAPHML}node"))) == 4
    assert len(list(root.iter(f"{_GRAPHML}edge"))) == 3
    names = [node.find(f"{_GRAPHML}data").text or "" for node in root.iter(f"{_GRAPHML}node")]  # type: ignore[union-attr]
    expected = HOSTILE
    for character in "\x00\x01\x1b\ufffe\ud800":
        expected = expected.replace(character, "\ufffd")
    assert expected in names
    held = json.loads(await whole(stream("json")))
    assert HOSTILE in [node["name"] for node in held["nodes"]]


async def test_relationships_are_read_as_they_are_written(world: RelatedWorld, stream: Any) -> None:
    read = []
    parts = stream("json")
    assert (await anext(parts)).startswith("{")
    world.before_read = lambda: read.append(1)
    async for part in parts:
        if '"made"' in part or '"drives"' in part:
            break
    assert len(read) == 1, "the second relationship is not read before the first one was taken"
    await parts.aclose()
    assert len(read) == 1
