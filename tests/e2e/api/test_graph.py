"""The knowledge graph by HTTP: entities, neighbourhoods, paths and export, of visible documents only."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any
from xml.etree import ElementTree

import httpx2
import pytest
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.api.in_process import InProcessTransport
from agentic_rag_backend.errors import StoreUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")

_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


async def _id(client: Client, name: str) -> str:
    found = await client.data("GET", "/graph/entities", params={"name": name})
    return str(next(each["id"] for each in found if each["match"] == "whole"))


async def test_an_entity_its_neighbourhood_and_its_chunks_agree(world: World) -> None:
    listed = await world.alpha.data("GET", "/graph/entities", params={"limit": 100})
    assert [each["mention_count"] for each in listed] == sorted((each["mention_count"] for each in listed), reverse=True)
    id = await _id(world.alpha, "MARA VENN")
    found = await world.alpha.data("GET", f"/graph/entities/{id}", params={"limit": 5})
    assert (found["name"], found["names"]) == ("Mara Venn", ["Mara Venn"])
    assert found["mention_count"] >= len(found["chunks"]) > 0
    assert sum(each["chunk_count"] for each in found["documents"]) == len(found["chunks"])
    leads = next(each for each in found["relationships"] if each["other"]["name"] == "Harbour Authority")
    assert "Mara Venn" in leads["fact"]
    chunk = await world.alpha.data("GET", f"/chunks/{leads['chunk_id']}")
    assert leads["fact"] in chunk["content"]
    assert id in {each["id"] for each in chunk["entities"]}
    assert leads["id"] in {each["id"] for each in chunk["relationships"]}
    assert (await world.alpha.data("GET", f"/graph/entities/{id}", params={"relation_types": "no_such"}))["relationships"] == []
    near = await world.alpha.data("GET", f"/graph/entities/{id}/neighbourhood", params={"hops": 2, "limit": 100})
    assert {each["relationship"]["id"] for each in near["edges"]} >= {each["id"] for each in found["relationships"]}
    assert {node["hops"] for node in near["nodes"]} <= {0, 1, 2}
    assert {(node["x"], node["y"]) for node in near["nodes"]} == {(None, None)}


async def test_neighbourhoods_are_united_on_one_map(world: World) -> None:
    mara, market = await _id(world.alpha, "Mara Venn"), await _id(world.alpha, "Fish Market")
    path = f"/graph/entities/{mara}/neighbourhood"
    parts = [await world.alpha.data("GET", f"/graph/entities/{id}/neighbourhood") for id in (mara, market)]
    asked = {"also": [market, market], "positions": "true"}
    union = await world.alpha.data("GET", path, params=asked)
    assert {node["id"] for node in union["nodes"]} == {node["id"] for part in parts for node in part["nodes"]}
    assert {node["id"] for node in union["nodes"] if node["hops"] == 0} == {mara, market}
    assert all(0 <= node[axis] <= 1 for node in union["nodes"] for axis in ("x", "y"))
    assert (await world.alpha.data("GET", path, params=asked))["nodes"] == union["nodes"]
    missing = await world.alpha.get(path, params={"also": "no-such-entity"})
    assert missing.status_code == 404
    assert (await world.alpha.get(path, params={"also": [market] * 20})).status_code == 422


async def test_paths_by_name_id_and_question(world: World) -> None:
    society = "Amberquoll Society"
    asked: dict[str, Any] = {"source": "Mara Venn", "target": society, "max_hops": 3}
    found = await world.alpha.data("POST", "/graph/paths", json=asked)
    assert found["paths"]
    assert [path["score"] for path in found["paths"]] == sorted((path["score"] for path in found["paths"]), reverse=True)
    for path in found["paths"]:
        ids = [entity["id"] for entity in path["entities"]]
        assert len(set(ids)) == len(ids) == path["hops"] + 1
        for step, ends in zip(path["steps"], itertools.pairwise(ids), strict=True):
            assert {step["source"]["id"], step["target"]["id"]} == set(ends)
            chunk = await world.alpha.data("GET", f"/chunks/{step['chunk_id']}")
            assert step["fact"] is None or step["fact"] in chunk["content"]
    by_id = {**asked, "source": await _id(world.alpha, "Mara Venn"), "target": [await _id(world.alpha, society)]}
    assert await world.alpha.data("POST", "/graph/paths", json=by_id) == found
    of_query = {"query": f"What connects Mara Venn with the {society}?", "max_hops": 3}
    assert (await world.alpha.data("POST", "/graph/paths", json=of_query))["paths"]
    assert (await world.alpha.data("POST", "/graph/paths", json={"query": "what is it"}))["paths"] == []


async def test_a_bad_request_for_paths_names_the_limit(world: World) -> None:
    for body, named in [
        ({}, "give either query, or both source and target"),
        ({"source": "a", "query": "b", "target": "c"}, "give either query"),
        ({"source": [], "target": "c"}, "source: must have at least 1 item"),
        ({"source": ["a"] * 11, "target": "c"}, "source: must have at most 10 items; got"),
        ({"source": "", "target": "c"}, "source.0: must have at least 1 character"),
        ({"source": "a", "target": "c", "max_hops": 5}, "max_hops: must be at most 4; got 5"),
        ({"source": "a", "target": "c", "limit": 51}, "limit: must be at most 50; got 51"),
        ({"source": "a", "target": "c", "as_of": "soon"}, "as_of: must be a year"),
        ({"source": "a", "target": "c", "hops": 2}, "hops: is not known here"),
    ]:
        response = await world.alpha.post("/graph/paths", body)
        assert response.status_code == 422
        assert named in response.json()["detail"]


async def test_the_graph_is_exported_in_both_formats(world: World) -> None:
    held = json.loads((await world.alpha.get("/graph/export", params={"format": "json"})).content)
    response = await world.alpha.get("/graph/export")
    assert response.headers["content-type"] == "application/graphml+xml"
    assert response.headers["content-disposition"] == 'attachment; filename="graph.graphml"'
    root = ElementTree.fromstring(response.content)
    assert {node.get("id") for node in root.iter(f"{_GRAPHML}node")} == {node["id"] for node in held["nodes"]}
    assert {edge.get("id") for edge in root.iter(f"{_GRAPHML}edge")} == {edge["key"] for edge in held["edges"]}
    assert {"Mara Venn", "Amberquoll Society"} <= {node["name"] for node in held["nodes"]}


async def test_what_a_deleted_document_said_is_gone_at_once(world: World) -> None:
    document = await world.alpha.upload("# Ferry\n\nZebulon Quirke founded the Quirke Ferry Line in 1903.\n", key="ferry")
    id = await _id(world.alpha, "Zebulon Quirke")
    assert (await world.alpha.data("GET", f"/graph/entities/{id}"))["relationships"]
    accepted = await world.alpha.data("DELETE", f"/documents/{document['id']}", status=202)
    assert (await world.alpha.get(f"/graph/entities/{id}")).status_code == 404
    assert await world.alpha.data("GET", "/graph/entities", params={"name": "quirke"}) == []
    assert "quirke" not in (await world.alpha.get("/graph/export")).text.casefold()
    unknown = await world.alpha.post("/graph/paths", {"source": id, "target": "Mara Venn"})
    assert unknown.status_code == 404
    await world.alpha.ended(accepted["job_id"])


async def test_a_client_that_disconnects_ends_the_export(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store = world.container.graph
    read, whole = [], store.all_relationships

    def slow(*given: Any) -> Any:
        async def batches() -> Any:
            async for batch in whole(*given):
                for each in batch:
                    read.append(each)
                    yield [each]
                    await asyncio.sleep(0.05)

        return batches()

    monkeypatch.setattr(store, "all_relationships", slow)
    headers = {"X-API-Key": world.alpha.caller.key or ""}
    async with (
        httpx2.AsyncClient(transport=InProcessTransport(world.app), base_url="http://in-process") as http,
        http.stream("GET", "/api/v1/graph/export?format=json", headers=headers) as response,
    ):
        async for _ in response.aiter_bytes():
            if read:
                break
    before = len(read)
    await asyncio.sleep(0.3)
    assert len(read) <= before + 1


async def test_a_chunk_is_read_without_the_graph_store(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any) -> Any:
        raise StoreUnavailable("the graph store does not answer")

    (chunk, *_) = await world.alpha.data("GET", f"/documents/{world.documents['alpha']['tide']['id']}/chunks")
    monkeypatch.setattr(world.container.graph, "relationships_of", away)
    body = (await world.alpha.get(f"/chunks/{chunk['id']}")).json()
    assert body["data"]["content"] == chunk["content"]
    assert (body["data"]["entities"], body["data"]["relationships"]) == ([], [])
    assert body["meta"]["warnings"] == ["entities and relationships are left out: store_unavailable"]
