"""Quotas through HTTP: every door obeys them, a refusal names limit, value and reset, and a job waits instead of failing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.e2e.api.conftest import OPERATOR_KEY, Caller, Client, Template, add_tenant, model_at

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.quota import ALL_KEYS, QuotaScope
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue import quota_catalogue as module
from agentic_rag_backend.tenancy.budgets import READ_EVERY_S
from agentic_rag_backend.tenancy.rates import Bucket
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

START_S = 1_800_000_000.0
TEXT = "# Kelp\n\nThe Kelp Company dries kelp in Port Sarn. Edda Holm founded the Kelp Company in 2016."
QUESTION = {"query": "Who founded the Kelp Company?"}
MCP = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": QUESTION}}
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
DOORS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/documents", None),
    ("POST", "/search", QUESTION),
    ("POST", "//openai/v1/chat/completions", {"model": "auto", "messages": [{"role": "user", "content": "kelp"}]}),
    ("GET", "//openai/v1/models", None),
    ("POST", "//retrieval", {"knowledge_id": "x", "query": "kelp", "retrieval_setting": {"top_k": 1, "score_threshold": 0}}),
    ("POST", "//v1/rerank", {"model": "auto", "query": "kelp", "documents": ["kelp"]}),
    ("POST", "//mcp", MCP),
)


@dataclass
class Site:
    """A server with a model, and its operator."""

    container: Container
    http: httpx.AsyncClient
    operator: Client

    async def tenant(self, name: str, **quota: float | None) -> Client:
        """Return an administrator of a new tenant with a quota."""
        (client,) = await add_tenant(self.http, name, "admin")
        await self.limit(client, **quota)
        return client

    async def limit(self, client: Client, **quota: float | None) -> dict[str, Any]:
        """Replace the quota of a client's tenant."""
        changed: dict[str, Any] = await self.operator.data("PUT", f"/tenants/{client.caller.tenant_id}/quota", json=quota)
        return changed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(template: Template, folder: Path, open_world: Any, server: ModelServer) -> AsyncIterator[Site]:
    settings = {**model_at(server.base_url, "cite"), "extraction": "llm", "quota_jobs_waiting": 500}
    async with open_world(folder, **settings) as (container, http):
        yield Site(container, http, Client(http, Caller("operator", OPERATOR_KEY)))


@pytest.fixture
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of the windows stand still."""
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: START_S + 1))


async def _send(client: Client, method: str, path: str, body: Any) -> httpx.Response:
    return await client.request(method, path, **({} if body is None else {"json": body}), headers=MCP_HEADERS)


@pytest.mark.usefixtures("one_window")
async def test_every_door_counts_one_request_and_refuses_the_one_too_many(site: Site) -> None:
    client, other = await site.tenant("doors", requests_per_minute=len(DOORS)), await site.tenant("no doors")
    for left, (method, path, body) in enumerate(DOORS):
        response = await _send(client, method, path, body)
        assert response.status_code != 429, response.text
        assert response.headers["RateLimit-Policy"] == f'"tenant-requests_per_minute";q={len(DOORS)};w=60'
        limit, _, seconds = response.headers["RateLimit"].rpartition(";t=")
        assert limit == f'"tenant-requests_per_minute";r={len(DOORS) - left - 1}'
        assert 0 < int(seconds) <= 59
    for method, path, body in DOORS:
        response = await _send(client, method, path, body)
        assert response.status_code == 429, (path, response.text)
        assert 0 < int(response.headers["Retry-After"]) <= 60
        assert ";r=0;t=" in response.headers["RateLimit"]
        assert "requests_per_minute of the tenant: the limit is 7" in response.text
        assert "RateLimit" not in (await _send(other, method, path, body)).headers
    problem = (await client.get("/documents")).json()
    assert (problem["code"], problem["title"], problem["status"]) == ("quota_exceeded", "Quota exceeded", 429)
    assert problem["violated-policies"] == ["tenant-requests_per_minute"]
    assert problem["quota"] | {"resets_at": ""} == {
        "name": "requests_per_minute",
        "scope": "tenant",
        "limit": 7,
        "value": 7,
        "resets_at": "",
    }
    acting = {"X-Tenant-Id": client.caller.tenant_id}
    assert "RateLimit" not in (await site.operator.get("/documents", headers=acting)).headers, "an operator is not limited"
    await site.limit(client, requests_per_minute=9)
    assert (await client.get("/documents")).status_code == 200, "a higher limit applies to the next request"
    await site.limit(client)
    assert "RateLimit" not in (await client.get("/documents")).headers


@pytest.mark.usefixtures("one_window")
async def test_a_key_has_limits_of_its_own(site: Site) -> None:
    client = await site.tenant("keys", requests_per_minute=6)
    keys = f"/tenants/{client.caller.tenant_id}/keys"
    issued = await site.operator.data("POST", keys, status=201, json={"name": "ci"})
    path = f"{keys}/{issued['id']}/quota"
    assert (await site.operator.data("PUT", path, json={"requests_per_minute": 2}))["quota"] == {"requests_per_minute": 2}
    ci = Client(client.http, replace(client.caller, key=issued["key"]))
    assert [(await ci.get("/documents")).status_code for _ in range(4)] == [200, 200, 429, 429]
    refused = await ci.get("/documents")
    assert refused.json()["quota"]["scope"] == "key"
    assert refused.headers["RateLimit-Policy"].count(";w=60") == 1, "what the key refuses does not count for the tenant"
    shown = (await client.data("GET", "/tenants/me"))["limits"]
    assert [(use["name"], use["scope"], use["used"]) for use in shown] == [
        ("requests_per_minute", "tenant", 3),
        ("jobs_waiting", "tenant", 0),
    ]
    assert (await site.operator.request("PUT", path, json={"documents": 2})).status_code == 422
    assert (await site.operator.request("PUT", f"{keys}/unknown/quota", json={})).status_code == 404
    for body in ({"documents": -1}, {"documents": 0.5}, {"chunks": "many"}, {"pages": 3}, {"cost_per_day": 1e300}):
        refused = await site.operator.request("PUT", f"/tenants/{client.caller.tenant_id}/quota", json=body)
        assert refused.status_code == 422, body
    assert (await site.operator.data("GET", f"/tenants/{client.caller.tenant_id}"))["quota"] == {"requests_per_minute": 6}
    assert (await site.operator.request("PUT", f"/tenants/t_{'0' * 32}/quota", json={})).status_code == 404


async def test_requests_at_once_are_limited_and_places_come_back(site: Site) -> None:
    client = await site.tenant("at-once", concurrent_requests=2)
    places, bucket = site.container.quotas.places, Bucket(TenantId(client.caller.tenant_id), ALL_KEYS, QuotaScope.TENANT)
    for _ in range(3):
        assert (await client.post("/search", QUESTION)).status_code == 200
        assert (await client.get("/documents/unknown")).status_code == 404
        assert (await client.post("/answers", {**QUESTION, "stream": True})).status_code == 200
    await places.enter(bucket, 2)
    assert (await client.get("/documents")).status_code == 200
    await places.enter(bucket, 2)
    refused = await client.get("/documents")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert refused.json()["quota"] == {
        "name": "concurrent_requests",
        "scope": "tenant",
        "limit": 2,
        "value": 2,
        "resets_at": None,
    }
    for _ in range(2):
        places.leave(bucket)
    assert [response.status_code for response in await asyncio.gather(*(client.get("/documents") for _ in range(2)))] == [200] * 2


async def test_documents_and_chunks_are_limited(site: Site) -> None:
    client = await site.tenant("documents", documents=2)
    first, _ = [await client.upload(f"{TEXT} {number}", key=f"{number}") for number in range(2)]
    refused = await client.post("/documents", {"text": "another"})
    assert (refused.status_code, refused.json()["quota"]["value"]) == (429, 2)
    assert "another document would exceed the quota documents of the tenant: the limit is 2, and 2 are used" in refused.text
    assert (await client.post("/documents", {"text": f"{TEXT} changed", "key": "1"})).status_code == 202, "a new version fits"
    uses = {use["name"]: use for use in (await client.data("GET", "/usage"))["quota"]}
    assert (uses["documents"]["used"], uses["documents"]["warning"], uses["jobs_waiting"]["limit"]) == (2, True, 500)
    receipt = await client.data("DELETE", f"/documents/{first['id']}", status=202)
    await client.ended(receipt["job_id"])
    await client.upload("another", key="another")
    await site.limit(client, chunks=3)
    long = "\n\n".join(f"The barrage number {number} was built by the Harbour Authority in Sarn. " * 12 for number in range(9))
    submitted = await client.data("POST", "/documents", status=202, json={"text": long, "key": "long"})
    job = await client.ended(submitted["job_id"])
    assert (job["state"], job["error"]["code"], "of the tenant: the limit is 3" in job["error"]["message"]) == (
        "failed",
        "quota_exceeded",
        True,
    )
    assert (await client.data("GET", "/usage"))["chunks"] <= 3


async def test_answers_are_refused_and_jobs_wait_until_the_quota_allows_it(site: Site, server: ModelServer) -> None:
    client, other = await site.tenant("tokens"), await site.tenant("other tokens", tokens_per_month=10**9)
    await client.upload(TEXT, key="kelp")
    assert (await client.post("/answers", QUESTION)).status_code == 200
    used = await client.data("GET", "/usage")
    tokens = used["prompt_tokens"] + used["completion_tokens"]
    assert tokens > 0
    shown = await site.limit(client, tokens_per_month=tokens)
    (use,) = [use for use in shown["limits"] if use["name"] == "tokens_per_month"]
    assert (use["used"], use["limit"], use["warning"]) == (tokens, tokens, True)
    server.reset()
    refused = await client.post("/answers", {"query": "Who dries kelp in Port Sarn?"})
    assert (refused.status_code, refused.json()["quota"]["name"]) == (429, "tokens_per_month"), refused.text
    assert refused.json()["quota"]["resets_at"].endswith("-01T00:00:00Z")
    assert int(refused.headers["Retry-After"]) > 1
    streamed = await client.post("/answers", {"query": "Who dries kelp in Port Sarn?", "stream": True})
    assert "quota_exceeded" in streamed.text
    await asyncio.sleep(READ_EVERY_S)  # until then, jobs use the limits that were read before
    submitted = await client.data("POST", "/documents", status=202, json={"text": f"{TEXT} Later.", "key": "later"})
    async with asyncio.timeout(30):
        while "waiting until" not in (job := await client.data("GET", f"/jobs/{submitted['job_id']}"))["message"]:
            await asyncio.sleep(0.1)
    assert (job["state"], job["attempt"], "tokens_per_month" in job["message"]) == ("queued", 1, True)
    assert server.stats().total.calls == 0, "nothing was paid for"
    await other.upload(f"{TEXT} Other.", key="other")
    assert (await client.data("GET", f"/jobs/{submitted['job_id']}"))["state"] == "queued"
    assert (await client.delete(f"/documents/{submitted['document_id']}")).status_code == 202, "a deletion needs no model"
    again = await client.data("POST", "/documents", status=202, json={"text": f"{TEXT} Later.", "key": "again"})
    await site.limit(client, tokens_per_month=10**9)
    job = await client.ended(again["job_id"])
    assert (job["state"], job["attempt"]) == ("succeeded", 1)
    assert (await client.post("/answers", QUESTION)).status_code == 200


async def test_a_waiting_job_can_be_cancelled(site: Site) -> None:
    client = await site.tenant("cancelled", cost_per_month=0)
    submitted = await client.data("POST", "/documents", status=202, json={"text": TEXT})
    async with asyncio.timeout(30):
        while "cost_per_month" not in (await client.data("GET", f"/jobs/{submitted['job_id']}"))["message"]:
            await asyncio.sleep(0.1)
    await client.data("POST", f"/jobs/{submitted['job_id']}/cancel", status=202)
    assert (await client.ended(submitted["job_id"]))["state"] == "cancelled"
