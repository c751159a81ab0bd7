"""Corpus-wide answers and drift over HTTP with a scripted model: calls counted, failures reported, tenants isolated."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_backend.models.llm.base import NOT_ANSWERED
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How do the barrage, the eels and the fish market depend on one another?"
FAST, FINAL = "fast+cite", "final+cite"
NOTHING = '{"points": []}'
ASKS_FOR_POINTS = 'list of at most 6 objects {"statement"'


def _point(prompt: str) -> str:
    shown = re.findall(r'<passage id="(\d+)"[^>]*>\n(.*?)\n</passage>', prompt, re.DOTALL)
    number, text = shown[0]
    return json.dumps({"points": [{"statement": text, "sources": [int(number)], "score": 80}]})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(folder: Path, open_world: Any, server: ModelServer) -> AsyncIterator[httpx.AsyncClient]:
    """Two tenants with communities of extractive summaries, and models that work."""
    settings = model_at(server.base_url, FINAL) | {"llm_fast_model": FAST}
    async with open_world(folder, **settings) as (_, http):
        yield http


@pytest.fixture
def models(server: ModelServer) -> ModelServer:
    """The server without counts. Partial answers repeat the first sentence of the prompt."""
    server.reset()
    server.matchers[:] = [(lambda prompt: ASKS_FOR_POINTS in prompt, _point)]
    return server


@pytest.fixture
def alpha(template: Template, served: httpx.AsyncClient) -> Client:
    return template.client(served)


def calls(server: ModelServer) -> tuple[int, int]:
    """Return the calls of the fast model and of the model of final answers."""
    held = server.stats().models
    fast, final = (held[name].calls if name in held else 0 for name in (FAST, FINAL))
    return fast, final


async def ask(client: Client, strategy: str, question: str = QUESTION, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and meta of an answer, and check every citation."""
    response = await client.post("/answers", {"query": question, "strategy": strategy, "options": options})
    assert response.status_code == 200, response.text
    data, meta = response.json()["data"], response.json()["meta"]
    for citation in data["citations"]:
        chunk = await client.data("GET", f"/chunks/{citation['chunk_id']}")
        start = citation["start_char"] - chunk["location"]["start_char"]
        assert chunk["content"][start : start + len(citation["quote"])] == citation["quote"]
        assert f"[{citation['marker']}]" in data["answer"]
    return data, meta


async def test_global_is_map_and_reduce(alpha: Client, models: ModelServer) -> None:
    data, meta = await ask(alpha, "global")
    assert data["grounded"]
    assert data["citations"]
    assert calls(models) == (1, 1)
    assert data["usage"]["calls"] == 2
    assert (meta["strategy"], meta["fallback_used"]) == ("global", False)
    details = data["trace"]["details"]
    assert details["partial_answers"]["written_by"] == "model"
    assert details["themes"]["tokens"] <= details["themes"]["budget_tokens"]
    assert len(data["themes"]) == details["themes"]["chosen"]


async def test_global_streams_checked_sentences(alpha: Client, models: ModelServer, sse: Any) -> None:
    events = sse(await alpha.post("/answers", {"query": QUESTION, "strategy": "global", "stream": True}))
    kinds = [name for _, name, _ in events]
    assert (kinds[0], kinds[-2:]) == ("retrieval", ["usage", "done"])
    done = events[-1][2]
    assert "".join(data["text"] for _, name, data in events if name == "token") == done["answer"]
    assert done["trace"]["details"]["partial_answers"]["calls"] == 1


async def test_partial_answers_that_do_not_help_end_in_a_refusal_without_another_call(alpha: Client, models: ModelServer) -> None:
    models.matchers[:] = [(lambda prompt: ASKS_FOR_POINTS in prompt, NOTHING)]
    data, meta = await ask(alpha, "global")
    assert (data["answer"], data["grounded"], data["citations"]) == (NOT_ANSWERED, False, [])
    assert calls(models) == (1, 0)
    assert meta["fallback_used"] is False


async def test_drift_asks_one_call_for_follow_ups_and_one_for_the_answer(alpha: Client, models: ModelServer) -> None:
    data, meta = await ask(alpha, "drift")
    assert data["grounded"]
    assert calls(models) == (1, 1)
    assert data["usage"]["calls"] == 2
    details = data["trace"]["details"]
    assert (details["asked_by"], len(details["follow_ups"])) == ("model", 1)
    assert {"community", "dense", "sparse"} <= set(meta["methods_used"])


async def test_rating_is_asked_for_and_shown(alpha: Client, models: ModelServer) -> None:
    body = {"query": QUESTION, "strategy": "community", "options": {"rate": "model", "max_calls": 2}}
    found = await alpha.data("POST", "/search", json=body)
    details = found["trace"]["details"]["themes"]
    assert details["chosen_by"] == "model"
    assert calls(models)[0] == details["rating_calls"] <= 2


async def test_no_prompt_holds_what_another_tenant_wrote(alpha: Client, models: ModelServer) -> None:
    prompts: list[str] = []
    models.matchers.insert(0, (lambda prompt: bool(prompts.append(prompt)), ""))  # type: ignore[func-returns-value]
    for strategy in ("global", "drift"):
        await ask(alpha, strategy, rate="model")
    assert len(prompts) >= 5
    assert not [word for word in ("brimwhistle", "tindlebrae") for prompt in prompts if word in prompt.casefold()]
    assert any("amberquoll" in prompt.casefold() for prompt in prompts)


async def test_a_deleted_document_is_not_cited_again(template: Template, served: httpx.AsyncClient, models: ModelServer) -> None:
    client = template.client(served, "beta")
    strategies = ("global", "drift")
    before = [citation for strategy in strategies for citation in (await ask(client, strategy))[0]["citations"]]
    gone = before[0]["document_id"]
    quotes = {citation["quote"] for citation in before if citation["document_id"] == gone}
    prompts: list[str] = []
    models.matchers.insert(0, (lambda prompt: bool(prompts.append(prompt)), ""))  # type: ignore[func-returns-value]
    again, _ = await ask(client, "global")
    # Asking again gives the same citations and reads the same words, so the differences below come from the deletion.
    assert gone in {citation["document_id"] for citation in again["citations"]}
    assert [prompt for prompt in prompts if any(quote in prompt for quote in quotes)]
    deleted = await client.data("DELETE", f"/documents/{gone}", status=202)
    prompts.clear()
    for strategy in strategies:
        after, _ = await ask(client, strategy)
        assert gone not in {citation["document_id"] for citation in after["citations"]}
        assert after["citations"] or after["answer"] == NOT_ANSWERED
        assert after["grounded"] is bool(after["citations"])
    assert prompts
    assert not [prompt for prompt in prompts if any(quote in prompt for quote in quotes)]
    await client.ended(deleted["job_id"])
