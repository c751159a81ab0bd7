"""Several API processes that start concurrently on an empty catalogue."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from itertools import cycle
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from site_of_processes import OPERATOR, Site, call

pytestmark = pytest.mark.slow


def test_of_servers_that_start_at_once_one_issues_the_first_key(site: Site) -> None:
    servers = [site.start("serve") for _ in range(2)]
    running = [site.await_start(process) for process in servers]
    kept = [site.folder / f"data-{number}" / "credentials.json" for number in range(2)]
    (winner,) = [json.loads(path.read_text()) for path in kept if path.exists()]
    (tenant,) = call(running[0].url, "GET", "/tenants", OPERATOR)
    assert (tenant["name"], tenant["id"]) == ("default", winner["tenant_id"])
    keys = call(running[1].url, "GET", f"/tenants/{tenant['id']}/keys", OPERATOR)
    assert [key["name"] for key in keys] == ["made at first start"]
    for server in running:
        answer = httpx.get(f"{server.url}/api/v1/tenants/me", headers={"X-API-Key": winner["key"]}, timeout=60)
        assert answer.status_code == 200, answer.text

    _change_keys(running[0].url, running[1].url, tenant["id"])
    for era in ("auto", "legacy"):
        asyncio.run(_alternate([server.url for server in running], winner["key"], era))
    _share_quotas(running[0].url, running[1].url, tenant["id"])
    (loser,) = [number for number, path in enumerate(kept) if not path.exists()]
    assert running[loser].stop() == 0
    site.await_start(site.start("serve", DATA_DIR=str(site.folder / f"data-{loser}")))
    assert len(call(running[1 - loser].url, "GET", f"/tenants/{tenant['id']}/keys", OPERATOR)) == 4


class _Alternating(httpx2.AsyncHTTPTransport):
    """Sends each request to the next of several servers, as a proxy in front of them does."""

    def __init__(self, urls: list[str]) -> None:
        super().__init__()
        self._next_url = cycle(urls)
        self.requests: Counter[str] = Counter()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = httpx2.URL(next(self._next_url))
        self.requests[str(url)] += 1
        request.url = request.url.copy_with(host=url.host, port=url.port)
        return await super().handle_async_request(request)


async def _alternate(urls: list[str], key: str, era: Any) -> None:
    """One client of the Model Context Protocol is served by two processes behind one address."""
    transport = _Alternating(urls)
    async with (
        httpx2.AsyncClient(transport=transport, headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        McpClient(streamable_http_client("http://rag.test/mcp", http_client=http), mode=era) as client,
    ):
        added = await client.call_tool("add_document", {"text": f"The quay of {era} was built in 1911.", "key": era})
        assert added.structured_content is not None
        job = {"job_id": added.structured_content["job_id"]}
        for _ in range(300):
            followed = await client.call_tool("job", job)
            assert followed.structured_content is not None
            if followed.structured_content["job"]["state"] == "succeeded":
                break
            await asyncio.sleep(0.1)
        for _ in range(4):
            result = await client.call_tool("fetch", {"id": added.structured_content["document_id"]})
            assert "1911" in str(result.structured_content)
    assert len(transport.requests) == 2
    assert min(transport.requests.values()) >= 3


def _change_keys(here: str, there: str, tenant: str) -> None:
    """A rotation or revocation by one process applies to the next request of another. Both note uses."""
    keys = f"/tenants/{tenant}/keys"

    def code(url: str, key: str) -> str:
        answer = httpx.get(f"{url}/api/v1/tenants/me", headers={"X-API-Key": key}, timeout=60)
        return "ok" if answer.is_success else str(answer.json()["code"])

    first = call(here, "POST", keys, OPERATOR, {"name": "rotated"})
    assert [code(url, first["key"]) for url in (here, there)] == ["ok", "ok"]
    second = call(here, "POST", f"{keys}/{first['id']}/rotate", OPERATOR, {"overlap_s": 0})
    assert [code(there, key["key"]) for key in (first, second)] == ["key_expired", "ok"]
    assert httpx.delete(f"{there}/api/v1{keys}/{second['id']}", headers=OPERATOR, timeout=60).status_code == 204
    assert code(here, second["key"]) == "key_revoked"
    used = {key["id"]: key["last_used_at"] for key in call(there, "GET", keys, OPERATOR)}
    assert used[second["id"]] is not None


def _share_quotas(here: str, there: str, tenant: str) -> None:
    """A quota that one process sets holds for the requests to both together."""
    key = call(there, "POST", f"/tenants/{tenant}/keys", OPERATOR, {"name": "limited"})["key"]

    def send(url: str) -> httpx.Response:
        return httpx.get(f"{url}/api/v1/tenants/me", headers={"X-API-Key": key}, timeout=60)

    call(here, "PUT", f"/tenants/{tenant}/quota", OPERATOR, {"requests_per_minute": 1000})
    left_s = int(send(there).headers["RateLimit"].rpartition("t=")[2])
    if left_s < 10:
        time.sleep(left_s + 1)
        send(there)
    call(here, "PUT", f"/tenants/{tenant}/quota", OPERATOR, {"requests_per_minute": 21})
    statuses = [send(url).status_code for _ in range(15) for url in (here, there)]
    assert (statuses.count(200), statuses.count(429)) == (20, 10)
    call(there, "PUT", f"/tenants/{tenant}/quota", OPERATOR, {})
    assert send(here).status_code == 200
