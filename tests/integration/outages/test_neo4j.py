"""Neo4j stopped, slow and restarted, during queries and ingestion."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from faulty_proxy import FaultyProxy
from tests.integration.outages.conftest import Opens

from agentic_rag_backend.stores.graph.bolt import Neo4jAddress

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("abandoned_sockets")]


@pytest.fixture
def proxy(empty_neo4j: Neo4jAddress) -> Iterator[FaultyProxy]:
    url = urlsplit(empty_neo4j.uri)
    with FaultyProxy(str(url.hostname), url.port or 7687) as running:
        yield running


@pytest.fixture
def graph(empty_neo4j: Neo4jAddress, proxy: FaultyProxy) -> dict[str, object]:
    return {
        "graph_store": "neo4j",
        "neo4j_uri": f"bolt://127.0.0.1:{proxy.port}",
        "neo4j_user": empty_neo4j.user,
        "neo4j_password": empty_neo4j.password,
        "neo4j_timeout_s": 3.0,
    }


@pytest.mark.parametrize("fault", ["stopped", "slow"])
async def test_queries_degrade_or_are_refused_in_time_and_ingestion_waits(
    opens: Opens, proxy: FaultyProxy, graph: dict[str, object], fault: str
) -> None:
    async with opens(proxy, **graph) as site:
        jobs = [await site.accepted(0)]
        await site.all_is_well(jobs)
        proxy.stop() if fault == "stopped" else proxy.slow(10.0)
        jobs += await asyncio.gather(site.accepted(1), site.accepted(2))
        waiting, asking = site.waits(jobs[1:], for_="Neo4j"), site.degrades("Neo4j", known=True)
        _, _, states = await asyncio.gather(waiting, asking, site.ready())
        assert {part for part, state in states.items() if state != "ok"} == {"graph"}
        proxy.restore()
        await site.all_is_well(jobs)


async def test_restarts_in_the_middle_lose_and_double_nothing(opens: Opens, proxy: FaultyProxy, graph: dict[str, object]) -> None:
    async with opens(proxy, **graph) as site:
        await site.restarts(8)
