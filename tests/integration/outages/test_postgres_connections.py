"""Waits on PostgreSQL connections, and their limits, for each kind of connection failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from faulty_proxy import FaultyProxy
from sqlalchemy import Connection, make_url, text

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.postgres import Patience

READ_S, WRITE_S = 2.0, 4.0
SLACK_S = 20.0
"""Added to the time limit for a busy machine. A hanging call takes minutes."""
FAULTS: dict[str, Callable[[FaultyProxy], None]] = {
    "stopped": FaultyProxy.stop,
    "cut": FaultyProxy.cut,
    "slow": lambda proxy: proxy.slow(10.0),
    "swallowing": FaultyProxy.swallow,
}


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[FaultyProxy]:
    url = make_url(postgres_url)
    with FaultyProxy(str(url.host), url.port or 5432) as running:
        yield running


@pytest.fixture
async def database(postgres_url: str, proxy: FaultyProxy) -> AsyncIterator[Database]:
    url = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    opened = Database(url, Patience(read_s=READ_S, write_s=WRITE_S))
    yield opened
    proxy.restore()
    await opened.close()


def number(connection: Connection) -> int:
    return int(connection.execute(text("SELECT 42")).scalar_one())


def never(connection: Connection) -> None:
    connection.execute(text("SELECT pg_sleep(600)"))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["read", "write"])
async def test_every_wait_ends(database: Database, proxy: FaultyProxy, fault: str, kind: str) -> None:
    run, limit_s = getattr(database, kind), WRITE_S if kind == "write" else READ_S
    assert await run(number) == 42
    FAULTS[fault](proxy)
    began = time.monotonic()
    if fault == "cut":
        assert await run(number) == 42, "it connects anew by itself"
    else:
        with pytest.raises(StoreUnavailable, match="catalogue's database"):
            await run(number)
    assert time.monotonic() - began < limit_s + SLACK_S
    proxy.restore()
    async with asyncio.timeout(SLACK_S):
        assert await run(number) == 42, "dead connections are not handed out"


@pytest.mark.parametrize("kind", ["read", "write"])
async def test_a_statement_that_does_not_end_is_given_up(database: Database, kind: str) -> None:
    with pytest.raises(StoreUnavailable):
        async with asyncio.timeout(WRITE_S + SLACK_S):
            await getattr(database, kind)(never)
    assert await database.read(number) == 42


async def test_a_session_that_the_server_ends_is_an_outage(database: Database) -> None:
    def pauses(connection: Connection) -> None:
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
        time.sleep(1)
        number(connection)

    for run in (database.read, database.write):
        with pytest.raises(StoreUnavailable):
            await run(pauses)
    assert await database.read(number) == 42


async def test_reads_do_not_wait_for_threads_that_hang(database: Database, proxy: FaultyProxy) -> None:
    assert await database.read(number) == 42
    writes = [asyncio.ensure_future(database.write(never)) for _ in range(64)]
    await asyncio.sleep(0)  # they are passed to the threads, and occupy all of them
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await database.read(number)
    assert time.monotonic() - began < READ_S + SLACK_S
    assert all(isinstance(each, StoreUnavailable) for each in await asyncio.gather(*writes, return_exceptions=True))
    assert await database.read(number) == 42


async def test_what_the_queue_asks_ends_too(database: Database, proxy: FaultyProxy) -> None:
    engine = database.sync_engine

    def ask() -> int:
        with engine.connect() as connection:
            return number(connection)

    assert await asyncio.to_thread(ask) == 42
    proxy.swallow()
    began = time.monotonic()
    with pytest.raises(Exception, match="ConnectionTimeout"):
        await asyncio.to_thread(ask)
    assert time.monotonic() - began < WRITE_S + SLACK_S
    proxy.restore()
    assert await asyncio.to_thread(ask) == 42


async def test_the_server_ends_what_nobody_waits_for(database: Database) -> None:
    def limits(connection: Connection) -> list[str]:
        names = ("statement_timeout", "idle_in_transaction_session_timeout")
        return [str(connection.execute(text(f"SHOW {name}")).scalar_one()) for name in names]

    assert await database.read(limits) == [f"{WRITE_S:g}s", "1min"]
    assert await database.define(limits) == ["0", "1min"], "a migration takes what it takes"
