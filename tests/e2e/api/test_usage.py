"""`GET /usage` counts what the model received: of every stage, for the key that asked, and for no other tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import OPERATOR_KEY, Caller, Client, Template, model_at

from agentic_rag_backend.container import Container
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.tenancy.usage import WRITTEN_EVERY_S
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

containers: list[Container] = []
"""The container of the module, for what no route shows."""
QUESTION = "Who leads the Harbour Authority?"
TEXT = "# Kelp\n\nThe Kelp Company dries kelp in Port Sarn. Edda Holm founded the Kelp Company in 2016."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(template: Template, folder: Path, open_world: Any, server: ModelServer) -> AsyncIterator[tuple[Client, Client]]:
    """The template's tenant and its operator. The price of the model `cite` is known."""
    prices = folder / "prices.yaml"
    prices.write_text("currency: EUR\nmodels: {cite: {input: 1, output: 10}}\n")
    settings = {**model_at(server.base_url, "cite"), "model_prices": prices, "extraction": "llm", "llm_fast_model": "echo"}
    async with open_world(folder, **settings) as (container, http):
        client = template.client(http)
        containers.append(container)
        yield client, Client(http, Caller("operator", OPERATOR_KEY))
        containers.clear()


async def _usage(client: Client, by: str = "stage") -> dict[str, Any]:
    usage: dict[str, Any] = await client.data("GET", "/usage", params={"by": by})
    return usage


def _groups(usage: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {group["group"]: group for group in usage["groups"]}


async def test_usage_is_what_the_model_received(world: tuple[Client, Client], server: ModelServer) -> None:
    client, _ = world
    before = await _usage(client)
    server.reset()
    answered = await client.data("POST", "/answers", json={"query": QUESTION})
    await client.upload(TEXT, key="kelp")
    await client.rebuild()

    after, stats = await _usage(client), server.stats()
    for name in ("calls", "prompt_tokens", "completion_tokens"):
        assert after[name] - before[name] == getattr(stats.total, name)
        assert after[name] == sum(group[name] for group in after["groups"])
    assert {"answer", "extraction", "community_summary"} <= _groups(after).keys()
    models = _groups(await _usage(client, "model"))
    cite = stats.models["cite"]
    assert models["cite"]["cost"] == pytest.approx((cite.prompt_tokens + 10 * cite.completion_tokens) / 1e6)
    assert models["cite"]["cost"] == pytest.approx(answered["usage"]["cost"])
    assert models["echo"]["cost"] is None
    assert models["echo"]["unpriced_calls"] == models["echo"]["calls"] > 0
    assert (after["cost"], after["currency"]) == (None, "EUR")
    assert after["known_cost"] == pytest.approx(models["cite"]["cost"])


async def test_jobs_count_for_the_key_that_asked(world: tuple[Client, Client], server: ModelServer) -> None:
    client, operator = world
    issued = await operator.data(
        "POST", f"/tenants/{client.caller.tenant_id}/keys", json={"name": "writer", "scopes": ["write"]}, status=201
    )
    writer = Client(client.http, replace(client.caller, key=issued["key"]))
    await writer.upload(f"{TEXT} The Kelp Company sells kelp to Wexcombe.", key="kelp 2")
    counted = _groups(await _usage(client, "key"))[issued["id"]]
    assert counted["requests"] >= 1
    assert counted["calls"] >= 1


async def test_the_ledger_is_written_without_a_reader(world: tuple[Client, Client]) -> None:
    """Another process would see it."""
    client, _ = world
    (container,) = containers
    await _usage(client)
    await client.get("/strategies")
    await asyncio.sleep(WRITTEN_EVERY_S + 0.5)
    assert container.usage.ledger.take() == {}


async def test_a_failing_write_fails_no_request(world: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = world
    before = await _usage(client)
    (container,) = containers

    async def fail(counts: object) -> int:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(container.usage, "_catalogue", type("Failing", (), {"add": staticmethod(fail)})())
        await client.data("POST", "/answers", json={"query": QUESTION})
        assert not await container.usage.write_ledger()
    after = await _usage(client)
    assert after["calls"] > before["calls"]
    assert after["requests"] == before["requests"] + 2


async def test_the_operator_sees_tenants_and_a_removed_tenant_has_no_usage(world: tuple[Client, Client]) -> None:
    client, operator = world
    tenant_id = (await operator.data("POST", "/tenants", json={"name": "short-lived"}, status=201))["id"]
    short = {"X-Tenant-Id": tenant_id}
    await operator.data("GET", "/usage", headers=short)
    listed = {row["tenant_id"]: row for row in await operator.pages("/tenants/usage", limit=1)}
    assert listed[tenant_id]["requests"] == 1
    assert listed[client.caller.tenant_id]["calls"] == (await _usage(client))["calls"] > 0
    removed = (await operator.data("DELETE", f"/tenants/{tenant_id}"))["removed"]
    assert removed["usage"] == 1
    assert tenant_id not in {row["tenant_id"] for row in await operator.pages("/tenants/usage", limit=100)}
    assert (await client.get("/tenants/usage")).status_code == 403


async def test_estimates_are_near_what_is_paid(world: tuple[Client, Client], server: ModelServer) -> None:
    """The calls are exact. The tokens of prompts are estimated from words; see ``docs/guide/usage.md``."""
    client, _ = world
    text = "\n\n".join(f"## Part {number}\n\n{TEXT} {'The company sells it. ' * 40}" for number in range(4))
    server.reset()
    previewed = (await client.data("POST", "/chunking/preview", json={"text": text}))["ingestion"]
    by_rules = (await client.data("POST", "/chunking/preview", json={"text": text, "extraction": "rules"}))["ingestion"]
    assert server.stats().total.calls == 0
    assert (by_rules["extraction"], by_rules["model_calls"], by_rules["cost"]) == ("rules", 0, 0)
    assert (previewed["extraction"], previewed["embedding_tokens"], previewed["cost"]) == ("llm", 0, None)
    await client.upload(text, key="estimated")
    paid = server.stats().total
    assert previewed["model_calls"] == paid.calls > 1
    assert 0.75 < previewed["prompt_tokens"] / paid.prompt_tokens < 1.33

    expected = (await client.rebuild(mode="full", dry_run=True))["result"]
    server.reset()
    await client.rebuild(mode="full")
    paid = server.stats().total
    assert expected["model_calls"] == paid.calls
    assert 0.75 * paid.prompt_tokens <= expected["prompt_tokens"] <= 1.33 * paid.prompt_tokens
    assert expected["cost"] == (None if paid.calls else 0)


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"from": "2026-05-02", "to": "2026-05-01"}, "a period has 1 to 366 days"),
        ({"from": "2024-01-01", "to": "2026-01-01"}, "has 732"),
        ({"from": "yesterday"}, "must be a date"),
        ({"by": "week"}, "must be 'day', 'stage', 'model' or 'key'"),
        ({"since": "2026-05-01"}, "unknown query parameter 'since'"),
    ],
)
async def test_bad_parameters_are_named(world: tuple[Client, Client], params: dict[str, str], named: str) -> None:
    response = await world[0].get("/usage", params=params)
    assert response.status_code == 422
    assert named in response.json()["detail"]
