"""Addresses of citations: they name passages that the key can read, and no other key."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from tests.e2e.api.conftest import World
from tests.e2e.api.doors.test_mcp import call, connect

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_address_names_what_a_key_can_read(world: World) -> None:
    body = {"messages": [{"role": "user", "content": "Why was the tidal barrage delayed?"}]}
    reply = (await world.alpha_reader.post("//openai/v1/chat/completions", body)).json()
    address = urlsplit(reply["choices"][0]["message"]["annotations"][0]["url_citation"]["url"])
    assert (address.scheme, address.netloc, address.path) == ("http", "test", "/console/")
    assert str(world.alpha_reader.caller.key) not in address.geturl()
    path, _, query = address.fragment.partition("?")
    document, chunk = path.removeprefix("/d/"), parse_qs(query)["chunk"][0]
    own = await world.alpha_reader.data("GET", f"/chunks/{chunk}")
    assert own["document_id"] == document
    assert (await world.beta.get(f"/chunks/{chunk}")).status_code == 404
    assert (await world.nobody.get(f"/chunks/{chunk}")).status_code == 401


async def test_every_reply_names_the_same_address(world: World) -> None:
    question = {"query": "Why was the tidal barrage delayed?"}
    answer = await world.alpha_reader.data("POST", "/answers", json=question)
    streamed = await world.alpha_reader.post("/answers", {**question, "stream": True})
    results = (await world.alpha_reader.data("POST", "/search", json={**question, "fields": ["id", "document_id", "url"]}))[
        "results"
    ]
    by_chunk = {result["id"]: result["url"] for result in results}
    for cited in answer["citations"]:
        expected = f"http://test/console/#/d/{cited['document_id']}?chunk={cited['chunk_id']}"
        assert (cited["url"], by_chunk.get(cited["chunk_id"], expected)) == (expected, expected)
        assert expected in streamed.text
    async with connect(world, world.alpha_reader) as client:
        asked = await call(client, "ask", question=question["query"])
    assert [cited["url"] for cited in asked["citations"]] == [cited["url"] for cited in answer["citations"]]
