"""PostgreSQL stopped, slow and restarted, during queries and ingestion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from faulty_proxy import FaultyProxy
from sqlalchemy import make_url
from tests.integration.outages.conftest import Opens, Site

DOCUMENTS = 4
FAULTS: dict[str, Callable[[FaultyProxy], None]] = {
    "stopped": FaultyProxy.stop,
    "slow": lambda proxy: proxy.slow(10.0),
}
pytestmark = pytest.mark.slow


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[FaultyProxy]:
    url = make_url(postgres_url)
    with FaultyProxy(str(url.host), url.port or 5432) as running:
        yield running


@pytest.fixture
def database(postgres_url: str, proxy: FaultyProxy) -> dict[str, object]:
    url = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    return {"database_url": url, "database_timeout_s": 3.0, "worker_silent_after_s": 3.0}


@pytest.mark.parametrize("fault", FAULTS)
async def test_queries_are_refused_in_time_and_ingestion_goes_on_afterwards(
    opens: Opens, proxy: FaultyProxy, database: dict[str, object], fault: str
) -> None:
    async with opens(proxy, **database) as site:
        jobs = [await site.accepted(number) for number in range(DOCUMENTS)]
        FAULTS[fault](proxy)
        _, states = await asyncio.gather(_refuses(site), site.ready())
        assert states["catalogue"] != "ok"
        assert states["jobs"] != "ok"
        assert {name for name, state in states.items() if state == "ok"} >= {"graph", "vectors", "blobs"}
        proxy.restore()
        await site.all_is_well([*jobs, await site.accepted(DOCUMENTS)])


async def _refuses(site: Site) -> None:
    for response in await asyncio.gather(site.search(), site.submit(DOCUMENTS)):
        assert response.status_code == 503, response.text
        assert response.json()["code"] == "store_unavailable"
        assert "catalogue's database" in response.json()["detail"]


async def test_restarts_in_the_middle_lose_and_double_nothing(
    opens: Opens, proxy: FaultyProxy, database: dict[str, object]
) -> None:
    async with opens(proxy, **database) as site:
        await site.restarts(8)
