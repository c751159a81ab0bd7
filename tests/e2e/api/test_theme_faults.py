"""Answers from themes while a model fails, is slow or writes nonsense: they are given, with the missing parts reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How do the barrage, the eels and the fish market depend on one another?"
FINAL = "final+cite"


async def ask(client: Client, strategy: str, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and meta of an answer. The client fails on a 5xx."""
    response = await client.post("/answers", {"query": QUESTION, "strategy": strategy, "options": options})
    assert response.status_code == 200, response.text
    data, meta = response.json()["data"], response.json()["meta"]
    for citation in data["citations"]:
        chunk = await client.data("GET", f"/chunks/{citation['chunk_id']}")
        assert citation["quote"] in chunk["content"]
    return data, meta


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
    folder: Path, template: Template, server: ModelServer, open_world: Any, fault: str
) -> None:
    server.reset()
    settings = model_at(server.base_url, FINAL) | {"llm_fast_model": fault, "theme_model_timeout_s": 1.5}
    async with open_world(folder, **settings) as (_, http):
        client = template.client(http)
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


async def test_without_a_model_both_answer_from_the_documents_own_sentences(
    folder: Path, template: Template, server: ModelServer, open_world: Any
) -> None:
    server.reset()
    async with open_world(folder) as (_, http):
        client = template.client(http)
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
