"""If the answer model fails, both levels return an extractive answer with a warning, or an error, depending on a setting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_backend.models.llm.base import Message, ModelRequest
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Why was the tidal barrage delayed?"
UNANSWERABLE = "Which composer wrote the opera about the moons of Jupiter?"
FAULTS = {
    "status-500": "the model did not write the answer: model_unavailable",
    "rate-limited-60s": "the model did not write the answer: model_rate_limited",
    "broken-json": "the passages state no sentence of the model's answer",
    "empty": "the model's reply was empty, or only reasoning",
    "quirk-think-unclosed+cite": "the model's reply was empty, or only reasoning",
    "cite+cut-stream": "answer: model_unavailable",
    "down": "the model did not write the answer: model_unavailable",
}


def settings_for(server: ModelServer, fault: str, **more: Any) -> dict[str, Any]:
    address = "http://127.0.0.1:9/v1" if fault == "down" else server.base_url
    timeouts = {"llm_timeout_s": 1.0, "theme_model_timeout_s": 1.0}
    return model_at(address, fault, dual_level_retrieval_enabled=True) | timeouts | more


async def verbatim(client: Client, citations: list[dict[str, Any]]) -> None:
    assert citations
    for citation in citations:
        chunk = await client.data("GET", f"/chunks/{citation['chunk_id']}")
        assert citation["quote"] in chunk["content"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_both_levels_come_back_with_an_extractive_answer(
    folder: Path, template: Template, server: ModelServer, open_world: Any, sse: Any, fault: str
) -> None:
    async with open_world(folder, **settings_for(server, fault)) as (_, http):
        client = template.client(http)
        response = await client.post("/search/dual-level", {"query": QUESTION})
        data, meta = response.json()["data"], response.json()["meta"]
        assert data["low_level_results"]
        assert data["high_level_results"]
        assert "two years" in data["synthesized_answer"]
        assert data["grounded"] is True
        assert (data["fallback_used"], meta["fallback_used"]) == (True, True)
        assert FAULTS[fault] in data["fallback_reason"] == meta["fallback_reason"]
        await verbatim(client, data["citations"])

        response = await client.post("/answers", {"query": QUESTION})
        data, meta = response.json()["data"], response.json()["meta"]
        assert data["grounded"] is True
        assert data["model"] == "extractive"
        assert FAULTS[fault] in meta["fallback_reason"] == data["trace"]["fallback_reason"]
        await verbatim(client, data["citations"])

        events = sse(await client.post("/answers", {"query": QUESTION, "stream": True}))
        assert [name for _, name, _ in events][-2:] == ["usage", "done"]
        done = events[-1][2]
        assert "".join(sent["text"] for _, name, sent in events if name == "token").strip() == done["answer"]
        assert done["grounded"] is True
        assert FAULTS[fault] in done["trace"]["fallback_reason"]


async def test_an_answer_without_a_place_at_the_model_says_that_it_is_busy(
    folder: Path, template: Template, server: ModelServer, open_world: Any
) -> None:
    busy = {"llm_max_concurrency": 1, "request_timeout_s": 4, "theme_model_timeout_s": 60}
    settings = settings_for(server, "latency-30s", **busy)
    async with open_world(folder, **settings) as (container, http):
        request = ModelRequest(prompt="other@1", messages=(Message("user", "Hi."),), timeout_s=60)
        occupying = asyncio.create_task(container.model.complete(request))
        client = template.client(http)
        body = (await client.post("/answers", {"query": QUESTION})).json()
        themes = {"query": QUESTION, "strategy": "global", "options": {"rate": "model"}}
        rated = (await client.post("/search", themes)).json()
        occupying.cancel()
        assert rated["meta"]["fallback_reason"] == "rating of themes failed: model_busy", "the request's time limits the wait"
        data, meta = body["data"], body["meta"]
        assert (data["model"], data["grounded"]) == ("extractive", True)
        assert meta["fallback_reason"].endswith("the model did not write the answer: model_busy")


@pytest.mark.parametrize("strategy", ["drift", "global"])
@pytest.mark.parametrize("fault", ["status-500", "down"])
async def test_answers_of_themes_come_too(
    folder: Path, template: Template, server: ModelServer, open_world: Any, strategy: str, fault: str
) -> None:
    question = "How do the barrage, the eels and the fish market depend on one another?"
    async with open_world(folder, **settings_for(server, fault)) as (_, http):
        client = template.client(http)
        response = await client.post("/answers", {"query": question, "strategy": strategy})
        assert response.status_code == 200
        body = response.json()
        assert body["meta"]["fallback_used"] is True
        assert body["data"]["themes"]
        assert body["data"]["model"] in {"extractive", ""}


async def test_a_question_that_nothing_answers_is_refused_by_the_fallback_too(
    folder: Path, template: Template, server: ModelServer, open_world: Any
) -> None:
    settings = settings_for(server, "status-500", dual_level_low_min_score=0.0)
    async with open_world(folder, **settings) as (_, http):
        data = await template.client(http).data("POST", "/answers", json={"query": UNANSWERABLE})
        assert (data["grounded"], data["citations"]) == (False, [])
        assert data["trace"]["fallback_used"] is True


async def test_switched_off_the_failure_is_the_answer(
    folder: Path, template: Template, server: ModelServer, open_world: Any
) -> None:
    settings = settings_for(server, "status-500", fallback_to_extractive=False)
    async with open_world(folder, **settings) as (_, http):
        key = template.callers["alpha"].key
        for path, body in (("/answers", {}), ("/search/dual-level", {})):  # type: ignore[var-annotated]
            response: httpx.Response = await http.post(
                f"/api/v1{path}", json={"query": QUESTION, **body}, headers={"Authorization": f"Bearer {key}"}
            )
            assert response.status_code == 503
            assert response.json()["code"].startswith("model_")
