"""Open streams end when their key is revoked, and requests end at their own time limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.answering.base import TokenEvent
from agentic_rag_backend.answering.service import AnswerService
from agentic_rag_backend.api.responses import streaming
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.registry import RetrieverRegistry

pytestmark = pytest.mark.asyncio(loop_scope="module")
ENDS_WITHIN_S = 30
DUAL_LEVEL = "DUAL_LEVEL_RETRIEVAL_ENABLED"

Sse = Callable[["httpx.Response"], list[tuple[str, str, dict[str, Any]]]]


@pytest.fixture(autouse=True)
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "CHECK_S", 0.05)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Make every streamed answer start and never end. The event is set when it is stopped."""
    stopped = asyncio.Event()

    async def stream(self: AnswerService, *_: Any, **__: Any) -> AsyncGenerator[TokenEvent, None]:
        try:
            yield TokenEvent("It ")
            yield TokenEvent("begins")
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    monkeypatch.setattr(AnswerService, "stream", stream)
    return stopped


async def waiting_job(world: World, tenant_id: str) -> str:
    """Return a job that no worker runs, so that it stays queued."""
    job = await world.container.catalogue.jobs.create(TenantId(tenant_id), JobKind.REBUILD, {}, lambda *_: None)
    return job.id


async def revoke(world: World, client: Client) -> None:
    keys = await world.operator.data("GET", f"/tenants/{client.caller.tenant_id}/keys")
    for key in keys:
        await world.operator.delete(f"/tenants/{client.caller.tenant_id}/keys/{key['id']}")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(ENDS_WITHIN_S):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_revoked_key_ends_the_events_of_a_job(world: World, sse: Sse) -> None:
    client = await world.tenant("revoked-job")
    job_id = await waiting_job(world, client.caller.tenant_id)
    following = asyncio.create_task(client.get(f"/jobs/{job_id}/events"))
    await asyncio.sleep(0.3)
    assert not following.done()  # with a valid key it continues
    await revoke(world, client)
    async with asyncio.timeout(ENDS_WITHIN_S):
        events = sse(await following)
    assert [name for _, name, _ in events] == ["progress", "error"]
    assert [number for number, _, _ in events] == ["1", "2"]
    assert (events[-1][2]["status"], events[-1][2]["code"]) == (401, "key_revoked")


async def test_a_deleted_tenant_ends_the_events_of_a_job(world: World, sse: Sse) -> None:
    client = await world.tenant("deleted-job")
    job_id = await waiting_job(world, client.caller.tenant_id)
    following = asyncio.create_task(client.get(f"/jobs/{job_id}/events"))
    await asyncio.sleep(0.3)
    await world.operator.delete(f"/tenants/{client.caller.tenant_id}")
    async with asyncio.timeout(ENDS_WITHIN_S):
        events = sse(await following)
    assert events[-1][1] == "error"
    assert events[-1][2]["code"] in {"unauthenticated", "forbidden", "not_found"}


async def test_a_revoked_key_ends_a_streamed_answer_and_stops_the_model(world: World, sse: Sse, endless: asyncio.Event) -> None:
    client = await world.tenant("revoked-answer")
    following = asyncio.create_task(client.post("/answers", {"query": "Who?", "stream": True}))
    await asyncio.sleep(0.3)
    assert not following.done()
    await revoke(world, client)
    async with asyncio.timeout(ENDS_WITHIN_S):
        events = sse(await following)
    assert [name for _, name, _ in events] == ["token", "token", "error"]
    assert events[-1][2]["code"] == "key_revoked"
    await until(endless.is_set)


async def test_a_key_that_cannot_be_looked_at_is_looked_at_again(
    world: World, sse: Sse, endless: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage of the catalogue ends no stream. The key is checked again after the outage."""
    client = await world.tenant("outage-answer")
    following = asyncio.create_task(client.post("/answers", {"query": "Who?", "stream": True}))
    await asyncio.sleep(0.3)
    looks = 0
    authenticate = world.container.authenticator.authenticate

    async def away(*arguments: Any, **options: Any) -> Any:
        nonlocal looks
        looks += 1
        raise StoreUnavailable("the catalogue is away")

    monkeypatch.setattr(world.container.authenticator, "authenticate", away)
    await until(lambda: looks >= 3)
    assert not following.done()
    monkeypatch.setattr(world.container.authenticator, "authenticate", authenticate)
    await revoke(world, client)
    async with asyncio.timeout(ENDS_WITHIN_S):
        assert sse(await following)[-1][2]["code"] == "key_revoked"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Make every retrieval endless. The event is set when it is stopped."""
    stopped = asyncio.Event()

    class Slow:
        async def retrieve(self, query: Query) -> Retrieval:
            try:
                await asyncio.sleep(3600)
            finally:
                stopped.set()
            raise AssertionError

    monkeypatch.setattr(RetrieverRegistry, "get", lambda *_: Slow())
    return stopped


@pytest.mark.parametrize("path", ["/search", "/search/dual-level", "/answers"])
async def test_a_request_ends_at_the_time_that_it_names(world: World, slow: asyncio.Event, path: str) -> None:
    await world.alpha.data("PATCH", "/features", json={DUAL_LEVEL: True})
    response = await world.alpha.http.post(
        f"/api/v1{path}",
        json={"query": "eels", "timeout_ms": 200},
        headers={"X-API-Key": str(world.alpha.caller.key)},
    )
    assert (response.status_code, response.json()["code"]) == (504, "timeout")
    assert "200 ms (timeout_ms)" in response.json()["detail"]
    assert slow.is_set()


async def test_a_stream_ends_at_the_time_that_it_names(world: World, sse: Sse, endless: asyncio.Event) -> None:
    async with asyncio.timeout(ENDS_WITHIN_S):
        response = await world.alpha.post("/answers", {"query": "eels", "stream": True, "timeout_ms": 300})
    assert response.status_code == 200
    name, problem = sse(response)[-1][1:]
    assert (name, problem["code"], problem["status"]) == ("error", "timeout", 504)
    assert "300 ms (timeout_ms)" in problem["detail"]
    await until(endless.is_set)
