"""Small chunks in parents over HTTP: results and answers read the parent, and citations keep exact offsets."""

from __future__ import annotations

import pytest
from tests.e2e.api.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILLER = "The walls are of brick and lime. The roof was tarred twice, and the doors face the water on both sides of the yard. "
TEXT = (
    f"# Rope walk\n\nThe rope walk of Sarn was built by Ilse Harrow. {FILLER * 2}\n\nIt burned down in 1907. {FILLER * 2}\n\n"
    f"# Sail loft\n\nThe sail loft belongs to Otto Brandt. {FILLER * 4}\n"
)
CHUNKING = {"strategy": "parent_child", "chunk_size": 50, "parent_size": 200}


async def test_results_and_answers_read_the_parent_around_a_small_chunk(world: World) -> None:
    client = await world.tenant("parents")
    document = await client.upload(TEXT, title="Yards of Sarn", key="yards", chunking=CHUNKING)
    chunks = await client.pages(f"/documents/{document['id']}/chunks", limit=100)
    parents = list(dict.fromkeys(each["parent_id"] for each in chunks))
    assert len(parents) == 2 < len(chunks)
    assert [each["ordinal"] for each in chunks] == list(range(len(chunks)))

    found = await client.data("POST", "/search", json={"query": "When did the rope walk burn down?", "strategy": "hybrid"})
    assert [each["parent_id"] for each in found["results"]].count(parents[0]) == 1
    assert len(found["results"]) == 2, "a parent is one result"
    first = found["results"][0]
    parent = first["parent"]
    assert first["parent_id"] == parent["id"] == parents[0]
    assert TEXT[parent["start_char"] : parent["end_char"]] == parent["content"]
    assert "built by Ilse Harrow" in parent["content"]
    assert "1907" in parent["content"]
    assert len(first["content"]) < len(parent["content"]) / 2

    shown = await client.data("GET", f"/chunks/{chunks[1]['id']}")
    assert (shown["previous_id"], shown["next_id"]) == (chunks[0]["id"], chunks[2]["id"])
    assert shown["parent"] == parent
    last = await client.data("GET", f"/chunks/{chunks[-1]['id']}")
    assert (last["next_id"], last["parent"]["id"]) == (None, parents[1])

    answer = await client.data("POST", "/answers", json={"query": "Who built the rope walk of Sarn?", "strategy": "hybrid"})
    assert answer["grounded"]
    for citation in answer["citations"]:
        assert TEXT[citation["start_char"] : citation["end_char"]] == citation["quote"]
        holder = await client.data("GET", f"/chunks/{citation['chunk_id']}")
        assert holder["location"]["start_char"] <= citation["start_char"] < holder["location"]["end_char"]
    assert "Ilse Harrow" in answer["answer"]

    plain = await client.upload(TEXT, title="Yards of Sarn", key="plain")
    (chunk, *_) = await client.pages(f"/documents/{plain['id']}/chunks", limit=100)
    shown = await client.data("GET", f"/chunks/{chunk['id']}")
    assert (shown["parent_id"], shown["parent"], shown["previous_id"]) == (None, None, None)


async def test_a_parent_that_is_no_larger_than_a_chunk_is_refused(world: World) -> None:
    body = {"text": TEXT, "chunking": {**CHUNKING, "parent_size": 50}}
    response = await world.alpha.request("POST", "/documents", json=body)
    assert response.status_code == 422
    assert "parent_size must be above chunk_size (50) and at most 2048 tokens; it is 50" in response.text
