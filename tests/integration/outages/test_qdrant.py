"""Qdrant stopped, slow and restarted, during queries and ingestion."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from faulty_proxy import FaultyProxy
from qdrant_server import qdrant_process
from tests.integration.outages.conftest import Opens

pytestmark = pytest.mark.slow


@pytest.fixture
def proxy() -> Iterator[FaultyProxy]:
    with qdrant_process() as url:
        parts = urlsplit(url)
        with FaultyProxy(str(parts.hostname), parts.port or 6333) as running:
            yield running


@pytest.fixture
def vectors(proxy: FaultyProxy) -> dict[str, object]:
    return {"vector_store": "qdrant", "qdrant_url": f"http://127.0.0.1:{proxy.port}", "qdrant_timeout_s": 3.0}


@pytest.mark.parametrize("fault", ["stopped", "slow"])
async def test_queries_are_refused_in_time_and_ingestion_waits(
    opens: Opens, proxy: FaultyProxy, vectors: dict[str, object], fault: str
) -> None:
    async with opens(proxy, **vectors) as site:
        jobs = [await site.accepted(0)]
        await site.all_is_well(jobs)
        proxy.stop() if fault == "stopped" else proxy.slow(10.0)
        jobs += await asyncio.gather(site.accepted(1), site.accepted(2))
        waiting, asking = site.waits(jobs[1:], for_="vector store"), site.degrades("vector store", known=False)
        _, _, states = await asyncio.gather(waiting, asking, site.ready())
        assert {part for part, state in states.items() if state != "ok"} == {"vectors"}
        proxy.restore()
        await site.all_is_well(jobs)


async def test_restarts_in_the_middle_lose_and_double_nothing(
    opens: Opens, proxy: FaultyProxy, vectors: dict[str, object]
) -> None:
    async with opens(proxy, **vectors) as site:
        await site.restarts(8)
