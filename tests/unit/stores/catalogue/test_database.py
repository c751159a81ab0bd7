"""Transactions: their order across processes, their threads, and errors without a database."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, InvalidRequest, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.database import ARRIVING_AT_ONCE, Database, is_outage, parse_url
from agentic_rag_backend.stores.catalogue.tables import tenants


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'folder' / 'catalogue.db'}"


@pytest.fixture
async def catalogue(url: str) -> AsyncIterator[Catalogue]:
    opened = await Catalogue.open(url)
    await opened.migrate()
    yield opened
    await opened.close()


def _increment(connection: Connection, tenant: TenantId) -> int:
    """Read, wait, write: loses updates if the transaction begins only at the write."""
    held = connection.execute(select(tenants.c.state_version).where(tenants.c.tenant_id == tenant.value)).scalar_one()
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(state_version=held + 1))
    return int(held)


async def test_fifty_increments_from_two_processes_are_fifty(catalogue: Catalogue, url: str) -> None:
    tenant = (await catalogue.tenants.create("first")).id
    databases = [Database(url), Database(url)]
    await asyncio.gather(*(databases[number % 2].write(_increment, tenant) for number in range(50)))
    assert (await catalogue.tenants.tenant(tenant)).state_version == 50
    for database in databases:
        await database.close()


async def test_readers_neither_wait_for_a_writer_nor_see_half_of_it(catalogue: Catalogue) -> None:
    tenant = (await catalogue.tenants.create("first")).id
    written, read = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        _increment(connection, tenant)
        written.set()
        assert read.wait(20)

    writer = asyncio.create_task(catalogue._database.write(slow))
    assert await asyncio.to_thread(written.wait, 20)
    assert (await catalogue.tenants.tenant(tenant)).state_version == 0
    read.set()
    await writer
    assert (await catalogue.tenants.tenant(tenant)).state_version == 1


async def test_work_in_hand_does_not_wait_behind_all_that_is_handed_in(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/catalogue.db")
    order: list[str] = []
    begun, release = threading.Event(), threading.Event()

    def arriving(_: Connection) -> None:
        begun.set()
        assert release.wait(20)
        order.append("arriving")

    handed_in = [asyncio.create_task(database.write_arriving(arriving)) for _ in range(20)]
    assert await asyncio.to_thread(begun.wait, 20)
    in_hand = asyncio.create_task(database.write(lambda _: order.append("in hand")))
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(in_hand, *handed_in)
    assert order.index("in hand") <= ARRIVING_AT_ONCE
    assert len(order) == 21
    await database.close()


async def test_a_transaction_that_raises_leaves_nothing(catalogue: Catalogue) -> None:
    tenant = (await catalogue.tenants.create("first")).id

    def fails(connection: Connection) -> None:
        _increment(connection, tenant)
        raise LookupError("in the middle")

    with pytest.raises(LookupError):
        await catalogue._database.write(fails)
    assert (await catalogue.tenants.tenant(tenant)).state_version == 0


async def test_a_cancelled_caller_leaves_a_whole_transaction(catalogue: Catalogue) -> None:
    tenant = (await catalogue.tenants.create("first")).id
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        _increment(connection, tenant)
        begun.set()
        assert go_on.wait(20)

    task = asyncio.create_task(catalogue._database.write(slow))
    assert await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await catalogue._database.write(_increment, tenant)
    assert (await catalogue.tenants.tenant(tenant)).state_version == 2


async def test_connections_are_set_up(catalogue: Catalogue) -> None:
    def pragmas(connection: Connection) -> list[object]:
        names = ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        return [connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in names]

    full = 2
    expected = ["wal", 1, full, 30_000]
    assert await catalogue._database.read(pragmas) == expected
    assert await catalogue._database.write(pragmas) == expected
    with catalogue.sync_engine.connect() as connection:
        assert pragmas(connection) == expected


@pytest.mark.parametrize(
    "url", ["", "catalogue.db", "mysql://host/x", "oracle://host/x", "nothing://x", "sqlite://", "sqlite:///:memory:"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL"):
        parse_url(url)


def test_drivers_are_ours() -> None:
    for url, driver in [
        ("sqlite:///x.db", "sqlite"),
        ("sqlite+aiosqlite:///x.db", "sqlite"),
        ("postgresql://host/x", "postgresql+psycopg"),
        ("postgresql+asyncpg://user:secret@host/x", "postgresql+psycopg"),
    ]:
        assert parse_url(url).drivername == driver


async def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"these are notes, and no database" * 200)
    with pytest.raises(StoreUnavailable) as raised:
        await Catalogue.open(f"sqlite:///{tmp_path / 'notes.txt'}")
    assert f"{tmp_path / 'notes.txt'} (the catalogue's database) is damaged" in raised.value.message
    assert "these are notes" not in raised.value.message


async def test_a_database_that_does_not_listen_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable) as raised:
        await Catalogue.open("postgresql://user:secret@127.0.0.1:1/x?connect_timeout=2")
    assert "secret" not in raised.value.message


async def test_a_database_without_tables_is_unavailable(url: str) -> None:
    opened = await Catalogue.open(url)
    with pytest.raises(StoreUnavailable):
        await opened.tenants.tenants(limit=1)
    await opened.close()


def test_an_outage_is_told_from_a_refused_statement() -> None:
    for error, outage in [
        (OperationalError("SELECT", {}, sqlite3.OperationalError("database is locked")), True),
        (DatabaseError("SELECT", {}, sqlite3.DatabaseError("file is not a database")), True),
        (InterfaceError("SELECT", {}, Exception("server closed the connection")), True),
        (ProgrammingError("SELECT", {}, Exception("terminating connection"), connection_invalidated=True), True),
        (PoolTimeout("no free connection"), True),
        (DisconnectionError("gone"), True),
        (IntegrityError("INSERT", {}, sqlite3.IntegrityError("NOT NULL constraint failed: queues.created_at")), False),
        (ProgrammingError("SELECT", {}, sqlite3.ProgrammingError("You can only execute one statement at a time.")), False),
        (DataError("INSERT", {}, Exception("value out of range")), False),
        (ArgumentError("no such column"), False),
    ]:
        assert is_outage(error) is outage


async def test_a_value_without_json_form_is_the_callers_fault(catalogue: Catalogue) -> None:
    tenant = (await catalogue.tenants.create("first")).id
    with pytest.raises(InvalidRequest, match="JSON"):
        await catalogue.tenants.set_flags(tenant, {"large": 2**70})
    with pytest.raises(InvalidRequest, match="JSON"):
        await catalogue._database.write(_write_flags, tenant)


def _write_flags(connection: Connection, tenant: TenantId) -> None:
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(flags={"large": 2**70}))
