"""A suspended tenant: its keys are refused at every door, its jobs wait, its data stays, and the operator can still act."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_server import OPERATOR_KEY, read_address
from programs import Program
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

WITHIN_S = 60
OPEN_ROUTES = ("/health", "/.well-known")


async def _change(world: World, client: Client, **values: Any) -> dict[str, Any]:
    changed: dict[str, Any] = await world.operator.data("PATCH", f"/tenants/{client.caller.tenant_id}", json=values)
    return changed


async def _data(client: Client) -> dict[str, Any]:
    """Return everything that a tenant reads about its data."""
    shown: dict[str, Any] = {path: await client.data("GET", path) for path in ("/documents", "/features", "/graph/entities")}
    shown["state_version"] = (await client.data("GET", "/status"))["state_version"]
    shown["results"] = (await client.data("POST", "/search", json={"query": "Who drew the sluice?"}))["results"]
    return shown


async def test_every_route_refuses_the_keys_of_a_suspended_tenant(world: World) -> None:
    client = await world.tenant("suspended-routes")
    document = await client.upload("Ilse Harrow of the Sluice Company drew the sluice of Sarn.", key="sluice")
    before = await _data(client)
    assert (await _change(world, client, suspended=True))["state"] == "suspended"
    refused = 0
    for path, operations in (await asyncio.to_thread(world.app.openapi))["paths"].items():
        for method in operations:
            if path.startswith(OPEN_ROUTES):
                continue
            filled = path.replace("{document_id}", document["id"]).replace("{", "").replace("}", "")
            content = {"json": {"query": "x", "name": "x"}} if method in {"post", "patch", "put"} else {}
            response = await client.request(method.upper(), f"/{filled}", **content)
            assert (response.status_code, "suspended" in response.text) == (403, True), (method, path, response.text)
            refused += 1
    assert refused > 100
    mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "sluice"}}}
    accepts = {"Accept": "application/json, text/event-stream"}
    spoken = await client.post("//mcp", mcp, headers=accepts)
    assert (spoken.status_code, "suspended" in spoken.text) == (403, True), spoken.text
    problem = (await client.get("/documents")).json()
    assert (problem["code"], problem["title"]) == ("tenant_suspended", "Tenant suspended")
    assert (await _change(world, client, suspended=False))["state"] == "active"
    assert await _data(client) == before


async def test_the_operator_reads_exports_and_deletes_a_suspended_tenant(world: World) -> None:
    client = await world.tenant("suspended-operator")
    tenant, acting = client.caller.tenant_id, {"X-Tenant-Id": client.caller.tenant_id}
    document = await client.upload("Ilse Harrow drew the sluice of Sarn.", key="sluice")
    await _change(world, client, suspended=True, labels={"plan": "trial"}, name="suspended and renamed")
    shown = await world.operator.data("GET", f"/tenants/{tenant}")
    assert (shown["state"], shown["labels"], shown["name"]) == ("suspended", {"plan": "trial"}, "suspended and renamed")
    listed = await world.operator.pages("/tenants", limit=1, **{"labels.plan": "trial"})
    assert [item["id"] for item in listed] == [tenant]
    assert (await world.operator.get(f"/documents/{document['id']}", headers=acting)).status_code == 200
    written = await world.operator.post("/documents", {"text": "x"}, headers=acting)
    assert (written.status_code, written.json()["code"]) == (403, "tenant_suspended")
    archive = await world.operator.post(f"/tenants/{tenant}/export")
    assert (archive.status_code, archive.content[:2]) == (200, b"\x1f\x8b")
    assert (await world.operator.delete(f"/tenants/{tenant}")).status_code == 200
    assert (await world.operator.get(f"/tenants/{tenant}")).status_code == 404


async def test_changes_of_a_tenant_are_checked(world: World) -> None:
    client = await world.tenant("changed")
    path = f"/tenants/{client.caller.tenant_id}"
    for body in (
        {},
        {"name": None},
        {"name": " "},
        {"suspended": "yes"},
        {"state": "suspended"},
        {"labels": {"Plan": "x"}},
        {"labels": {"": "x"}},
        {"labels": {"plan": "x" * 257}},
        {"labels": {"plan": "two\nlines"}},
        {"labels": {"plan": 5}},
        {"labels": {f"label{number}": "x" for number in range(21)}},
    ):
        assert (await world.operator.request("PATCH", path, json=body)).status_code == 422, body
    taken = await world.operator.request("PATCH", path, json={"name": "alpha", "labels": {"plan": "x"}})
    assert (taken.status_code, (await world.operator.data("GET", path))["labels"]) == (409, {})
    unknown = await world.operator.request("PATCH", f"/tenants/t_{'0' * 32}", json={"suspended": True})
    assert unknown.status_code == 404
    assert (await world.operator.get("/tenants", params={"label.plan": "x"})).status_code == 422
    assert await world.operator.data("GET", "/tenants", params={"labels.Plan": "x"}) == []


@contextmanager
def _served(folder: Path) -> Iterator[tuple[Program, httpx.Client]]:
    """Yield a server process, and a client that sends the operator's key."""
    environment = {
        **os.environ,
        "DATA_DIR": str(folder / "data"),
        "OPERATOR_KEY": OPERATOR_KEY,
        "COMMUNITY_AUTO_REBUILD": "false",
    }
    with (folder / "log").open("ab") as log:
        process = Program(["serve", "--port", "0", "--json"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log)
    try:
        headers = {"X-API-Key": OPERATOR_KEY}
        with httpx.Client(base_url=f"{read_address(process)}/api/v1", timeout=60, headers=headers) as http:
            yield process, http
    finally:
        process.kill()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def _until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WITHIN_S
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return value


def _call(http: httpx.Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    answer = http.request(method, path, json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer.json()["data"]


async def test_jobs_of_a_suspended_tenant_wait_through_a_kill_and_go_on_when_it_is_resumed(tmp_path: Path) -> None:
    await asyncio.to_thread(_kill_while_suspended, tmp_path)


def _kill_while_suspended(folder: Path) -> None:
    text = "The Harbour Authority began barrage number {} in May 2019. Mara Voss of Sarn drew its sluice. " * 12
    with _served(folder) as (process, http):
        tenants = {name: _call(http, "POST", "/tenants", {"name": name})["id"] for name in ("paused", "other")}
        keys = {
            name: _call(http, "POST", f"/tenants/{tenant}/keys", {"scopes": ["write"]})["key"] for name, tenant in tenants.items()
        }
        numbers = range(12)
        for number in numbers:
            _call(http, "POST", "/documents", {"text": text.replace("{}", f"P{number}")}, **{"X-API-Key": keys["paused"]})
        _call(http, "PATCH", f"/tenants/{tenants['paused']}", {"suspended": True})
        # Another tenant's jobs run on.
        made = _call(http, "POST", "/documents", {"text": "The ferry sails."}, **{"X-API-Key": keys["other"]})
        own = {"X-API-Key": keys["other"]}
        _until(lambda: _call(http, "GET", f"/jobs/{made['job_id']}", **own)["state"] == "succeeded")
        states = _until(lambda: _states_at_rest(http, tenants["paused"]))
        assert "queued" in states, "the jobs ended before the suspension"
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    with _served(folder) as (process, http):
        refused = http.get("/documents", headers={"X-API-Key": keys["paused"]})
        assert (refused.status_code, refused.json()["code"]) == (403, "tenant_suspended")
        time.sleep(2)
        assert _states(http, tenants["paused"]) == states
        acting = {"X-Tenant-Id": tenants["paused"]}
        assert _call(http, "GET", "/jobs?limit=100", **acting)[0]["attempt"] == 1
        assert _call(http, "PATCH", f"/tenants/{tenants['paused']}", {"suspended": False})["state"] == "active"
        _until(lambda: set(_states(http, tenants["paused"])) == {"succeeded"})
        documents = _call(http, "GET", "/documents?limit=100", **acting)
        assert [document["state"] for document in documents] == ["ready"] * len(numbers)
        assert json.dumps(documents).count('"current_version": 1') in (0, len(numbers))


def _states(http: httpx.Client, tenant: str) -> list[str]:
    return [job["state"] for job in _call(http, "GET", "/jobs?limit=100", **{"X-Tenant-Id": tenant})]


def _states_at_rest(http: httpx.Client, tenant: str) -> list[str] | None:
    """Return the states of a tenant's jobs, once none of them runs."""
    states = _states(http, tenant)
    return None if "running" in states else states
