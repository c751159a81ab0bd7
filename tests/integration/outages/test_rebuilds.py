"""A store outage during a rebuild: readers see the old generation or a clear error, then the complete new generation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from faulty_proxy import FaultyProxy
from sqlalchemy import make_url
from tests.integration.outages.conftest import Opens, Site

from agentic_rag_backend.stores.graph.bolt import Neo4jAddress

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("abandoned_sockets")]
DOCUMENTS = 4
Seen = tuple[int, frozenset[tuple[int, str]]]
"""A status, and generation and id of each community in a response."""


@pytest.fixture
def neo4j_proxy(empty_neo4j: Neo4jAddress) -> Iterator[FaultyProxy]:
    url = urlsplit(empty_neo4j.uri)
    with FaultyProxy(str(url.hostname), url.port or 7687) as running:
        yield running


@pytest.fixture
def postgres_proxy(postgres_url: str) -> Iterator[FaultyProxy]:
    url = make_url(postgres_url)
    with FaultyProxy(str(url.host), url.port or 5432) as running:
        yield running


@asynccontextmanager
async def _reading(site: Site) -> AsyncIterator[list[Seen]]:
    """Read the communities continuously meanwhile."""
    seen: list[Seen] = []
    over = asyncio.Event()

    async def read() -> None:
        while not over.is_set():
            response = await site.http.get("/api/v1/communities?limit=100")
            found = response.json()["data"] if response.status_code == 200 else []
            seen.append((response.status_code, frozenset((each["generation"], each["id"]) for each in found)))
            await asyncio.sleep(0.01)

    reader = asyncio.create_task(read())
    try:
        yield seen
    finally:
        over.set()
        await reader


async def _rebuild(site: Site) -> str:
    response = await site.until(
        lambda: site.http.post("/api/v1/admin/communities/rebuild", json={"mode": "full"}),
        lambda answer: answer.status_code == 202,
    )
    return str(response.json()["data"]["job_id"])


async def _ended(site: Site, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = await site.until(lambda: site.job(job_id), lambda held: held["finished_at"] is not None)
    assert job["state"] == "succeeded", job
    return job


async def _goes_through(site: Site, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    await site.all_is_well([await site.accepted(number) for number in range(DOCUMENTS)])
    first = (await _ended(site, await _rebuild(site)))["result"]["generation"]
    stopped = asyncio.Event()
    write = site.container.graph.write_communities

    async def stop_first(*arguments: Any) -> None:
        if not stopped.is_set():
            proxy.stop()
            stopped.set()
        await write(*arguments)

    monkeypatch.setattr(site.container.graph, "write_communities", stop_first)
    async with _reading(site) as seen:
        job_id = await _rebuild(site)
        await stopped.wait()
        before = len(seen)
        await site.until(lambda: asyncio.sleep(0, len(seen) - before), lambda more: more > 3)
        proxy.restore()
        second = (await _ended(site, job_id))["result"]["generation"]
        await site.until(lambda: asyncio.sleep(0, seen[-1]), lambda last: {number for number, _ in last[1]} == {second})
    assert second > first
    assert {status for status, _ in seen} <= {200, 503, 504}
    wholes: dict[int, frozenset[tuple[int, str]]] = {}
    for status, shown in seen:
        if status == 200:
            (generation,) = {number for number, _ in shown}
            assert wholes.setdefault(generation, shown) == shown, "a part of a generation was shown"
    assert set(wholes) == {first, second}
    # no reader saw the new one before the store was back
    assert all(status != 200 or {number for number, _ in shown} == {first} for status, shown in seen[: before + 3])


async def test_neo4j_stops(
    opens: Opens, neo4j_proxy: FaultyProxy, empty_neo4j: Neo4jAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = {
        "graph_store": "neo4j",
        "neo4j_uri": f"bolt://127.0.0.1:{neo4j_proxy.port}",
        "neo4j_user": empty_neo4j.user,
        "neo4j_password": empty_neo4j.password,
        "neo4j_timeout_s": 5.0,
    }
    async with opens(neo4j_proxy, **graph) as site:
        await _goes_through(site, neo4j_proxy, monkeypatch)


async def test_postgres_stops(
    opens: Opens, postgres_proxy: FaultyProxy, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(postgres_url).set(host="127.0.0.1", port=postgres_proxy.port).render_as_string(hide_password=False)
    async with opens(postgres_proxy, database_url=url, database_timeout_s=15.0, worker_silent_after_s=15.0) as site:
        await _goes_through(site, postgres_proxy, monkeypatch)
