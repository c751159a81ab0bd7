"""Answers from themes while a model fails, is slow or writes nonsense: they are given, with the missing parts reported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.api.conftest import Client

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How do the barrage, the eels and the fish market depend on one another?"
FINAL = "final+cite"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(scope="module")
def filled() -> dict[str, Client]:
    """Return the tenant of `folder`, creating it if necessary."""
    return {}


@pytest.fixture
async def folder(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, fill_tenant: Any, filled: dict[str, Any]
) -> Path:
    """A closed folder with a tenant's documents, and communities with extractive summaries."""
    if not filled:
        filled["folder"] = tmp_path_factory.mktemp("themes")
        async with open_world(filled["folder"]) as (_, http):
            (filled["client"],) = await new_tenant(http, "alpha", "admin")
            await fill_tenant(filled["client"], "alpha")
    held: Path = filled["folder"]
    return held


def first_point(prompt: str) -> str:
    """Return a partial answer that repeats the first passage of the prompt."""
    shown = re.search(r'<passage id="1"[^>]*>\n(.*?)\n</passage>', prompt, re.DOTALL)
    statement = shown[1] if shown else ""
    return json.dumps({"points": [{"statement": statement, "sources": [1], "score": 90}]})


def settings_for(server: ModelServer, **more: Any) -> dict[str, Any]:
    """Return settings that use a scripted model."""
    chosen = {"llm_model": FINAL, "llm_fast_model": FINAL, "dual_level_synthesis_model": FINAL}
    return {"llm": "openai", "extraction": "rules", "openai_api_key": "any", "openai_base_url": server.base_url, **chosen, **more}


async def ask(client: Client, strategy: str, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and meta of an answer. The client fails on a 5xx."""
    response = await client.post("/answers", {"query": QUESTION, "strategy": strategy, "options": options})
    assert response.status_code == 200, response.text
    data, meta = response.json()["data"], response.json()["meta"]
    for citation in data["citations"]:
        chunk = await client.data("GET", f"/chunks/{citation['chunk_id']}")
        assert citation["quote"] in chunk["content"]
    return data, meta


def client_of(filled: dict[str, Any], http: Any) -> Client:
    """Return the tenant's client on another opening of the folder."""
    known = filled["client"]
    made: Client = type(known)(http, known.caller)
    return made


FAULTS = {
    # It is retried while there is time.
    "status-500": "model_(unavailable|timeout)",
    "broken-json": "model_reply_invalid",
    "wrong-schema": "model_reply_invalid",
    # After several failures in a row, it is not called for a while.
    "latency-30s": "model_(timeout|unavailable)",
    "rate-limited-60s": "model_rate_limited",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_cheap_model_that_fails_is_done_without_and_said(
    folder: Path, filled: dict[str, Any], server: ModelServer, open_world: Any, fault: str
) -> None:
    server.reset()
    settings = settings_for(server, llm_fast_model=fault, theme_model_timeout_s=1.5)
    async with open_world(folder, **settings) as (_, http):
        client = client_of(filled, http)
        data, meta = await ask(client, "global")
        assert meta["fallback_used"] is True
        assert re.match(f"1 of 1 partial answers failed: {FAULTS[fault]}; ", meta["fallback_reason"])
        assert data["trace"]["details"]["partial_answers"]["written_by"] == "extractive"
        assert FINAL not in server.stats().models
        # The model of the final answer works.
        data, meta = await ask(client, "drift")
        failed = rf"follow-up questions failed: {FAULTS[fault]}(; the model did not check the sentences: {FAULTS[fault]})?"
        assert re.fullmatch(failed, meta["fallback_reason"])
        assert data["trace"]["details"]["follow_ups"]
        body = {"query": QUESTION, "strategy": "global", "options": {"rate": "model"}}
        found = (await client.post("/search", body)).json()
        assert re.fullmatch(f"rating of themes failed: {FAULTS[fault]}", found["meta"]["fallback_reason"])
        assert found["data"]["themes"]


async def test_points_stand_in_for_a_model_that_does_not_write_the_answer(
    folder: Path, filled: dict[str, Any], server: ModelServer, open_world: Any
) -> None:
    settings = settings_for(server, llm_model="status-500", dual_level_synthesis_model="status-500", llm_timeout_s=2)
    async with open_world(folder, **settings) as (_, http):
        server.matchers.append((lambda prompt: "objects" in prompt, first_point))
        data, meta = await ask(client_of(filled, http), "global")
    server.matchers.clear()
    assert data["grounded"]
    assert "the model did not write the answer: model_unavailable" in meta["fallback_reason"]


async def test_without_a_model_both_answer_from_the_documents_own_sentences(
    folder: Path, filled: dict[str, Any], server: ModelServer, open_world: Any
) -> None:
    server.reset()
    async with open_world(folder) as (_, http):
        client = client_of(filled, http)
        for strategy in ("global", "drift"):
            data, meta = await ask(client, strategy, rate="model")
            assert data["usage"]["calls"] == 0
            assert data["model"] == ("extractive" if data["grounded"] else "")
            assert "no language model is configured" in " ".join(meta["warnings"])
        listed = {row["name"]: row for row in (await client.get("/strategies")).json()["data"]}
        assert listed["global"]["available"] is listed["drift"]["available"] is True
        assert listed["drift"]["options"]["properties"]["follow_ups"]["maximum"] == 8
        assert {"global", "drift"} <= set((await client.data("GET", "/status"))["strategies"])
        for options, limit in (({"max_calls": 0}, "1 to 32"), ({"budget_tokens": 1}, "200 to 100000")):
            refused = await client.post("/answers", {"query": QUESTION, "strategy": "global", "options": options})
            assert refused.status_code == 422
            assert limit in refused.json()["detail"]
    assert server.stats().models == {}
