"""Corpus-wide answers and drift over HTTP with a scripted model: calls counted, failures reported, tenants isolated."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client

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


@dataclass(slots=True)
class Models:
    """The scripted server, and its calls since `reset`."""

    server: ModelServer

    def reset(self) -> None:
        """Reset the counts. Partial answers then repeat the first sentence of the prompt."""
        self.server.reset()
        self.server.matchers[:] = [(lambda prompt: ASKS_FOR_POINTS in prompt, _point)]

    def calls(self, name: str) -> int:
        held = self.server.stats().models.get(name)
        return held.calls if held else 0


@dataclass(slots=True)
class Site:
    folder: Path
    models: Models
    open: Callable[..., Any]
    keys: dict[str, Client]

    def settings(self, **more: Any) -> dict[str, Any]:
        return {
            "llm": "openai",
            "extraction": "rules",
            "openai_api_key": "any",
            "openai_base_url": self.models.server.base_url,
            "llm_model": FINAL,
            "llm_fast_model": FAST,
            "dual_level_synthesis_model": FINAL,
            **more,
        }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, fill_tenant: Any
) -> AsyncIterator[Site]:
    """Two tenants with documents, and communities with extractive summaries."""
    folder = tmp_path_factory.mktemp("themes")
    with ModelServer() as server:
        made = Site(folder, Models(server), open_world, {})
        async with open_world(folder) as (_, http):
            for name in ("alpha", "beta"):
                (client,) = await new_tenant(http, name, "admin")
                await fill_tenant(client, name)
                made.keys[name] = client
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """The site with models that work."""
    async with AsyncExitStack() as stack:
        _, http = await stack.enter_async_context(site.open(site.folder, **site.settings()))
        yield http


@pytest.fixture
def models(site: Site) -> Models:
    site.models.reset()
    return site.models


def client_of(site: Site, http: httpx.AsyncClient, name: str) -> Client:
    """Return a tenant's client on another opening of the same folder."""
    known = site.keys[name]
    return type(known)(http, known.caller)


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


async def test_global_is_map_and_reduce(site: Site, served: httpx.AsyncClient, models: Models) -> None:
    client = client_of(site, served, "alpha")
    data, meta = await ask(client, "global")
    assert data["grounded"]
    assert data["citations"]
    assert (models.calls(FAST), models.calls(FINAL)) == (1, 1)
    assert data["usage"]["calls"] == 2
    assert (meta["strategy"], meta["fallback_used"]) == ("global", False)
    details = data["trace"]["details"]
    assert details["partial_answers"]["written_by"] == "model"
    assert details["themes"]["tokens"] <= details["themes"]["budget_tokens"]
    assert len(data["themes"]) == details["themes"]["chosen"]


async def test_global_streams_checked_sentences(site: Site, served: httpx.AsyncClient, models: Models, sse: Any) -> None:
    client = client_of(site, served, "alpha")
    events = sse(await client.post("/answers", {"query": QUESTION, "strategy": "global", "stream": True}))
    kinds = [name for _, name, _ in events]
    assert (kinds[0], kinds[-2:]) == ("retrieval", ["usage", "done"])
    done = events[-1][2]
    assert "".join(data["text"] for _, name, data in events if name == "token") == done["answer"]
    assert done["trace"]["details"]["partial_answers"]["calls"] == 1


async def test_partial_answers_that_do_not_help_end_in_a_refusal_without_another_call(
    site: Site, served: httpx.AsyncClient, models: Models
) -> None:
    models.server.matchers[:] = [(lambda prompt: ASKS_FOR_POINTS in prompt, NOTHING)]
    data, meta = await ask(client_of(site, served, "alpha"), "global")
    assert (data["answer"], data["grounded"], data["citations"]) == (NOT_ANSWERED, False, [])
    assert (models.calls(FAST), models.calls(FINAL)) == (1, 0)
    assert meta["fallback_used"] is False


@pytest.mark.parametrize(("allowed", "fast", "final"), [(1, 0, 0), (2, 1, 1), (3, 1, 1)])
async def test_a_request_bounds_the_calls(
    site: Site, served: httpx.AsyncClient, models: Models, allowed: int, fast: int, final: int
) -> None:
    await ask(client_of(site, served, "alpha"), "global", max_calls=allowed)
    assert (models.calls(FAST), models.calls(FINAL)) == (fast, final)


async def test_a_request_bounds_the_tokens(site: Site, served: httpx.AsyncClient, models: Models) -> None:
    data, _ = await ask(client_of(site, served, "alpha"), "global", budget_tokens=200)
    details = data["trace"]["details"]
    assert details["themes"]["tokens"] <= 200
    assert details["partial_answers"]["tokens"] <= 200


async def test_drift_asks_one_call_for_follow_ups_and_one_for_the_answer(
    site: Site, served: httpx.AsyncClient, models: Models
) -> None:
    data, meta = await ask(client_of(site, served, "alpha"), "drift")
    assert data["grounded"]
    # The second call of the fast model judges a sentence that words leave undecided.
    assert (models.calls(FAST), models.calls(FINAL)) == (2, 1)
    assert data["usage"]["calls"] == 3
    details = data["trace"]["details"]
    assert (details["asked_by"], len(details["follow_ups"])) == ("model", 1)
    assert {"community", "dense", "sparse"} <= set(meta["methods_used"])


async def test_rating_is_asked_for_and_shown(site: Site, served: httpx.AsyncClient, models: Models) -> None:
    client = client_of(site, served, "alpha")
    body = {"query": QUESTION, "strategy": "community", "options": {"rate": "model", "max_calls": 2}}
    found = await client.data("POST", "/search", json=body)
    details = found["trace"]["details"]["themes"]
    assert details["chosen_by"] == "model"
    assert models.calls(FAST) == details["rating_calls"] <= 2


async def test_no_prompt_holds_what_another_tenant_wrote(site: Site, served: httpx.AsyncClient, models: Models) -> None:
    prompts: list[str] = []
    models.server.matchers.insert(0, (lambda prompt: bool(prompts.append(prompt)), ""))  # type: ignore[func-returns-value]
    client = client_of(site, served, "alpha")
    for strategy in ("global", "drift"):
        await ask(client, strategy, rate="model")
    assert len(prompts) >= 5
    assert not [word for word in ("brimwhistle", "tindlebrae") for prompt in prompts if word in prompt.casefold()]
    assert any("amberquoll" in prompt.casefold() for prompt in prompts)


async def test_a_deleted_document_is_not_cited_again(site: Site, served: httpx.AsyncClient, models: Models) -> None:
    client = client_of(site, served, "beta")
    strategies = ("global", "drift")
    before = [citation for strategy in strategies for citation in (await ask(client, strategy))[0]["citations"]]
    gone = before[0]["document_id"]
    quotes = {citation["quote"] for citation in before if citation["document_id"] == gone}
    prompts: list[str] = []
    models.server.matchers.insert(0, (lambda prompt: bool(prompts.append(prompt)), ""))  # type: ignore[func-returns-value]
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
