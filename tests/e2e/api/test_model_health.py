"""The health of remote models in readiness and status."""

from __future__ import annotations

from typing import Any

import pytest
from services import free_port
from tests.e2e.api.conftest import model_at

from agentic_rag_backend.models.embedding import calibration
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_readiness_tells_a_model_that_is_down_from_an_embedder_that_is(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, server: ModelServer
) -> None:
    away = f"http://127.0.0.1:{free_port()}/v1"
    embedder = {"embedder": "openai", "embedding_model": "echo", "embedding_dimensions": 64}
    cases: tuple[tuple[dict[str, Any], int, str, dict[str, str]], ...] = (
        ({}, 200, "ok", {"llm": "ok", "embedder": "ok"}),
        ({"openai_base_url": away}, 200, "degraded", {"llm": "model_unavailable", "embedder": "ok"}),
        (
            {"openai_base_url": away, **embedder},
            503,
            "unavailable",
            {"llm": "model_unavailable", "embedder": "model_unavailable"},
        ),
        ({"llm": "extractive"}, 200, "ok", {"llm": "ok", "embedder": "ok"}),
    )
    for number, (changed, status, word, models) in enumerate(cases):
        settings = model_at(server.base_url, "echo") | changed
        async with open_world(tmp_path_factory.mktemp(f"ready-{number}"), **settings) as (_, http):
            server.reset()
            ready = await http.get("/health/ready")
            again = await http.get("/health/ready")
            (client,) = await new_tenant(http, "alpha", "admin")
            shown = await client.data("GET", "/status")

        assert (ready.status_code, ready.json()["status"], ready.json()["models"]) == (status, word, models), changed
        assert again.json() == ready.json()
        assert shown["model_states"] == models
        assert any("model" in each for each in shown["warnings"]) is (set(models.values()) != {"ok"})
        assert server.stats().total.calls == 0, "it costs no tokens"


async def test_a_refused_key_shows_after_the_first_call(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, server: ModelServer
) -> None:
    async with open_world(tmp_path_factory.mktemp("refused"), **model_at(server.base_url, "status-401")) as (_, http):
        (client,) = await new_tenant(http, "alpha", "admin")
        await client.upload("Mara Venn leads the Harbour Authority. The Harbour Authority built the pier in 1911.")
        asked = {"query": "Who leads the Harbour Authority?"}
        await http.post("/api/v1/answers", headers={"X-API-Key": str(client.caller.key)}, json=asked)
        ready = await http.get("/health/ready")

    assert (ready.status_code, ready.json()["models"]["llm"]) == (200, "model_refused")


async def test_a_status_shows_what_the_server_of_a_model_refuses(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, server: ModelServer
) -> None:
    model = "quirk-gemma+quirk-think+cite"
    async with open_world(tmp_path_factory.mktemp("limits"), **model_at(server.base_url, model)) as (_, http):
        (client,) = await new_tenant(http, "alpha", "admin")
        await client.upload("Mara Venn leads the Harbour Authority. The Harbour Authority built the pier in 1911.")
        assert (await client.data("GET", "/status"))["model_limits"] == []
        asked = {"query": "Who leads the Harbour Authority?"}
        answer = await http.post("/api/v1/answers", headers={"X-API-Key": str(client.caller.key)}, json=asked)
        (limits,) = (await client.data("GET", "/status"))["model_limits"]

    assert "Okay" not in answer.text
    assert "Mara Venn leads" in answer.json()["data"]["answer"]
    assert limits["model"] == model
    assert limits["refused"].keys() == {"system_role"}
    assert 0 < limits["refused"]["system_role"] <= 600


async def test_a_status_names_the_calibration_of_the_embedder(
    tmp_path_factory: pytest.TempPathFactory,
    open_world: Any,
    new_tenant: Any,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calibration, "LEAST_SEPARATION", 0.8)  # the scripted embedder knows words only
    model = "words+dimensions-384+floor-70"
    embedder = {"embedder": "openai", "embedding_model": model, "embedding_dimensions": 384, "llm": "extractive"}
    folder = tmp_path_factory.mktemp("calibration")
    async with open_world(folder, **model_at(server.base_url, "echo") | embedder) as (_, http):
        (client,) = await new_tenant(http, "alpha", "admin")
        await client.upload("Mara Venn leads the Harbour Authority. The Harbour Authority built the pier in 1911.")
        server.reset()
        before = (await client.data("GET", "/status"))["calibration"]
        assert server.stats().total.calls == 0, "a status costs no tokens"
        await client.data("POST", "/search", json={"query": "Who leads the Harbour Authority?", "strategy": "dense"})
        after = (await client.data("GET", "/status"))["calibration"]
    async with open_world(tmp_path_factory.mktemp("bundled")) as (_, http):
        (client,) = await new_tenant(http, "alpha", "admin")
        bundled = (await client.data("GET", "/status"))["calibration"]

    fingerprint = f"openai-{model}-384"
    assert before == {"encoder": fingerprint, "source": "default", "reason": "it is measured at the first search"}
    assert after == {"encoder": fingerprint, "source": "measured", "reason": None}
    assert bundled == {"encoder": "all-MiniLM-L6-v2", "source": "fitted", "reason": None}
