"""Chunking by a language model over HTTP: the cost in the job's result, a retry that pays for failures only, and a budget."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "\n\n".join(
    f"# Lock {number}\n\n{f'The lock {number} of Sarn was rebuilt. It is nine metres wide. ' * 30}" for number in range(4)
)
BUDGET = 14_000
AGENTIC = {"strategy": "agentic", "chunk_size": 400}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, server: ModelServer
) -> AsyncIterator[Client]:
    settings = model_at(server.base_url, "numbers-5", ingestion_model_max_tokens=BUDGET)
    async with open_world(tmp_path_factory.mktemp("model-chunking"), **settings) as (_, http):
        (admin,) = await new_tenant(http, "alpha", "admin")
        yield admin


async def _partial(client: Client, text: str, *, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a document that becomes partial, and its job."""
    submitted = await client.data("POST", "/documents", status=202, json={"text": text, "key": key, "chunking": AGENTIC})
    job = await client.ended(submitted["job_id"])
    document = await client.data("GET", f"/documents/{submitted['document_id']}")
    assert (job["state"], document["state"]) == ("partial", "partial")
    return document, job


async def test_a_failed_part_is_named_and_a_retry_asks_for_nothing_else(client: Client, server: ModelServer) -> None:
    server.matchers[:] = [(lambda prompt: "# Lock 2" in prompt, lambda prompt: '{"starts": [7, 3]}')]
    document, job = await _partial(client, TEXT, key="locks")
    (failure,) = document["failures"]
    assert (failure["stage"], failure["code"]) == ("chunk", "model_reply_invalid")
    calls = job["result"]["model_calls"]
    assert calls == server.stats().models["numbers-5"].calls >= 4
    assert job["result"]["prompt_tokens"] > 1000
    chunks = await client.pages(f"/documents/{document['id']}/chunks", limit=100)
    assert all(TEXT[each["location"]["start_char"] : each["location"]["end_char"]] == each["content"] for each in chunks)
    assert chunks[0]["content"].count(".") == 5

    server.reset()
    server.matchers.clear()
    await client.data("POST", f"/jobs/{document['job_id']}/retry", status=202)
    again = await client.ended(document["job_id"])
    assert (again["state"], again["result"]["model_calls"]) == ("succeeded", 1)
    assert server.stats().models["numbers-5"].calls == 1
    shown = await client.data("GET", f"/documents/{document['id']}")
    assert (shown["state"], shown["failures"]) == ("ready", [])


async def test_the_budget_stops_the_calls(client: Client, server: ModelServer) -> None:
    server.reset()
    document, _ = await _partial(client, f"{TEXT} More. " * 8, key="long")
    assert "budget_spent" in document["failures"][0]["message"]
    used = server.stats().models["numbers-5"]
    assert 0 < used.prompt_tokens + used.completion_tokens <= BUDGET


async def test_a_preview_shows_its_usage(client: Client) -> None:
    shown = await client.data("POST", "/chunking/preview", json={"text": TEXT[:1500], "chunking": AGENTIC})
    assert shown["usage"]["calls"] == 1
    assert shown["failures"] == []
    plain = await client.data("POST", "/chunking/preview", json={"text": TEXT[:1500]})
    assert plain["usage"]["calls"] == 0


HARBOUR = (
    "Mara Venn leads the Harbour Authority of Sarn. In 2015 she bought the old hall of the fishermen. "
    "It has nine gates. The council rents two of them.\n\n"
) + "The walls are of brick and lime. The roof was tarred twice. " * 20


async def test_a_statement_of_the_model_finds_a_chunk_and_the_answer_cites_the_text(client: Client, server: ModelServer) -> None:
    said = "In 2015 Mara Venn bought the old hall of the fishermen."
    false = "Mara Venn demolished the hall in 2019."
    statements = [{"statement": said, "sentences": [1, 2]}, {"statement": false, "sentences": [2, 3]}]
    server.matchers[:] = [(lambda prompt: "bought the old hall" in prompt, lambda prompt: json.dumps({"statements": statements}))]
    body = {"text": HARBOUR, "title": "Halls", "chunking": {"strategy": "proposition"}}
    submitted = await client.data("POST", "/documents", status=202, json=body)
    job = await client.ended(submitted["job_id"])
    assert job["result"]["model_calls"] >= 1
    chunks = await client.pages(f"/documents/{submitted['document_id']}/chunks", limit=100)
    first = chunks[0]
    assert said in first["statements"]
    assert all("demolished" not in each for chunk in chunks for each in chunk["statements"])
    assert HARBOUR[first["location"]["start_char"] : first["location"]["end_char"]] == first["content"]
    found = await client.data("POST", "/search", json={"query": "Mara Venn bought the hall", "strategy": "sparse"})
    assert found["results"][0]["id"] == first["id"]
    assert found["results"][0]["parent"]["content"].startswith("Mara Venn leads")
    alone = await client.data("GET", f"/chunks/{first['id']}")
    assert alone["statements"] == first["statements"]
