"""The catalogue's database. It runs whole transactions as plain functions on its own threads.

A transaction is a synchronous function of a connection. It cannot await, so it cannot call a model or another store, and it
costs one thread switch instead of one per statement. On SQLite a single thread writes: the writers of this process queue,
one of each tenant in turn, instead of polling for the lock; ``BEGIN IMMEDIATE`` and ``busy_timeout`` order them with the
writers of other processes. On PostgreSQL reads and writes share one bounded pool, and `Patience` limits every wait.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Engine, create_engine, event, make_url, text
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    DisconnectionError,
    NoSuchModuleError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, InvalidRequest, StoreUnavailable
from agentic_rag_backend.fairness import FairThreadPool
from agentic_rag_backend.stores.catalogue.postgres import Patience, postgres_engine, until
from agentic_rag_backend.stores.local_files import create_private, require_room, sqlite_failure

P = ParamSpec("P")
T = TypeVar("T")

_CATALOGUE = "the catalogue's database"
BUSY_TIMEOUT_MS = 30_000
READER_THREADS = 4
SERVER_THREADS = 16
_LONGEST_DEFINING_S = 86_400.0
ARRIVING_AT_ONCE = 2
"""Limit of concurrent transactions that accept new work, so that work in progress does not wait behind new submissions."""
_OUTAGES = frozenset({"OperationalError", "InterfaceError", "DatabaseError"})
QUEUE_CONNECTIONS = 8
"""Connections reserved for the durable queue, which may open as many more."""


def parse_url(url: str) -> URL:
    """Return ``url`` with the synchronous driver of its database. Async drivers such as ``sqlite+aiosqlite`` are accepted.

    Raises:
        ConfigurationError: it is no database URL, names an unsupported database, or an SQLite database without a file.
    """
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigurationError("DATABASE_URL is not a database URL such as sqlite:///data/catalogue.db") from error
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise ConfigurationError("DATABASE_URL must name a file: sqlite:///path/to/catalogue.db; got one in memory")
        return parsed.set(drivername="sqlite")
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    raise ConfigurationError(f"DATABASE_URL must be sqlite or postgresql; got {backend!r}")


def _set_pragmas(connection: Any, isolation_level: str | None) -> None:
    connection.isolation_level = isolation_level
    # FULL: a confirmed change (accepted, visible, deleted) survives a power loss. It costs 0.3 ms a transaction and about
    # 2.5 ms a document, but no measurable ingestion time, because ingestion waits for the embedder.
    for pragma in (f"busy_timeout={BUSY_TIMEOUT_MS}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


class _ReadingDialect(SQLiteDialect_pysqlite):
    """Dialect that begins a transaction with the first statement, of any kind.

    The dialect replaces a listener to "begin": with a listener, each statement checks for listeners eight times, which took
    a fifth of a transaction's time.
    """

    supports_statement_cache = True
    _begin = "BEGIN"

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.execute(self._begin).close()


class _WritingDialect(_ReadingDialect):
    """Dialect that begins a transaction as the database's only writer."""

    supports_statement_cache = True
    _begin = "BEGIN IMMEDIATE"


registry.register("sqlite.catalogue_reading", __name__, _ReadingDialect.__name__)
registry.register("sqlite.catalogue_writing", __name__, _WritingDialect.__name__)


def _sqlite_engine(url: URL, drivername: str, threads: int) -> Engine:
    engine = create_engine(url.set(drivername=drivername), pool_size=threads, max_overflow=4)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        # The driver's own transaction control begins at the first write. Values read before may have changed by then, and
        # concurrent increments are lost. None switches it off, and the dialect begins transactions instead.
        _set_pragmas(connection, None)

    return engine


def _sqlite_queue_engine(url: URL) -> Engine:
    engine = create_engine(url, pool_size=4, max_overflow=16)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        # The durable queue issues its own BEGIN where necessary. It sets this mode on engines it creates itself.
        _set_pragmas(connection, "IMMEDIATE")

    return engine


_AFTER_COMMIT = "after_commit"


def after_commit(connection: Connection, call: Callable[[], None]) -> None:
    """Register ``call`` to run after the open transaction is committed. `Database` runs it."""
    connection.info.setdefault(_AFTER_COMMIT, []).append(call)


def take_commit_calls(connection: Connection) -> list[Callable[[], None]]:
    """Return and remove the calls to make after the open transaction is committed."""
    calls: list[Callable[[], None]] = connection.info.pop(_AFTER_COMMIT, [])
    return calls


class Database:
    """Runs transactions on the database at ``url``. The first transaction opens it."""

    def __init__(self, url: str, patience: Patience | None = None) -> None:
        parsed = parse_url(url)
        self.dialect = parsed.get_backend_name()
        self._file = Path(str(parsed.database)) if self.dialect == "sqlite" else None
        if self._file is not None:
            create_private(self._file.absolute())
            self._engine = _sqlite_engine(parsed, "sqlite+catalogue_reading", READER_THREADS)
            self._write_engine = _sqlite_engine(parsed, "sqlite+catalogue_writing", 1)
            self.sync_engine = _sqlite_queue_engine(parsed)
            self._readers = FairThreadPool(READER_THREADS, "catalogue-read")
            self._writers = FairThreadPool(1, "catalogue-write")
            self._patience = Patience(read_s=math.inf, write_s=math.inf)
        else:
            self._patience = patience or Patience()
            self._engine = self._write_engine = postgres_engine(parsed, connections=SERVER_THREADS, patience=self._patience)
            self.sync_engine = postgres_engine(parsed, connections=QUEUE_CONNECTIONS, patience=self._patience)
            self._readers = self._writers = FairThreadPool(SERVER_THREADS, "catalogue")

        self._arriving = asyncio.Semaphore(ARRIVING_AT_ONCE if self.dialect == "sqlite" else SERVER_THREADS // 2)

    async def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work(connection, …)`` on one snapshot of the database and return its result."""
        call = partial(self._read, lambda connection: work(connection, *args, **kwargs))
        limit_s = self._patience.read_s
        try:
            # The limit includes the wait for a thread: a server that does not answer may hold all threads.
            async with asyncio.timeout(limit_s if limit_s < math.inf else None):
                return await self._run(self._readers, call, limit_s)
        except TimeoutError:
            raise StoreUnavailable(f"the catalogue's database did not answer within {limit_s:g} s") from None

    async def write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work(connection, …)`` as one transaction. Commit when it returns, roll back when it raises.

        If the caller is cancelled meanwhile, the transaction still runs to its end.
        """
        call = partial(self._write, lambda connection: work(connection, *args, **kwargs))
        return await self._run(self._writers, call, self._patience.write_s)

    async def write_arriving(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write like `write`, with a low concurrency limit, for new work. Writes of work in progress can run in between."""
        async with self._arriving:
            return await self.write(work, *args, **kwargs)

    async def write_soon(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write like `write`, with the time limit of a read, for writes that are worthless later."""
        call = partial(self._write, lambda connection: work(connection, *args, **kwargs))
        return await self._run(self._writers, call, self._patience.read_s)

    async def define(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write like `write`, without a time limit, for schema changes, whose duration depends on the amount of data."""

        def patiently(connection: Connection) -> T:
            if self.dialect != "sqlite":
                connection.execute(text("SET LOCAL statement_timeout = 0"))
            return work(connection, *args, **kwargs)

        return await self._run(self._writers, partial(self._write, patiently), _LONGEST_DEFINING_S)

    def _read(self, work: Callable[[Connection], T]) -> T:
        with self._engine.connect() as connection:
            return work(connection)

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self._write_engine.begin() as connection:
            connection.info.pop(_AFTER_COMMIT, None)  # left by a transaction that was rolled back
            result = work(connection)
            calls = take_commit_calls(connection)
        for call in calls:
            call()
        return result

    async def _run(self, executor: FairThreadPool, call: Callable[[], T], limit_s: float) -> T:
        loop = asyncio.get_running_loop()
        end = time.monotonic() + limit_s

        def bounded() -> T:
            with until(end):
                return call()

        try:
            # The context has the actor, whose key a new job works for.
            future = loop.run_in_executor(executor, copy_context().run, bounded)
        except RuntimeError as error:
            raise StoreUnavailable("the catalogue is closed") from error
        try:
            return await future
        except StatementError as error:
            raise self._translate(error) from error
        except PoolTimeout as error:
            raise StoreUnavailable("the catalogue has no free connection") from error

    def require_room(self) -> None:
        """Raise `StorageFull` if the database is a file on a full disk."""
        if self._file is not None:
            require_room(self._file, _CATALOGUE)

    def _translate(self, error: StatementError) -> Exception:
        if isinstance(error.orig, AgenticRagError):
            return error.orig
        if isinstance(error, DataError) and "NUL" in str(error.orig):
            return InvalidRequest("a text of the request contains U+0000, which the catalogue cannot hold")
        if not is_outage(error):
            return error
        if self._file is not None and isinstance(error.orig, sqlite3.Error):
            return sqlite_failure(error.orig, self._file, _CATALOGUE)
        return StoreUnavailable(f"the catalogue's database did not answer: {type(error.orig).__name__}")

    async def close(self) -> None:
        """Wait for running transactions and close every connection."""

        def stop() -> None:
            self._readers.shutdown(wait=True)
            self._writers.shutdown(wait=True)
            self._engine.dispose()
            self._write_engine.dispose()
            self.sync_engine.dispose()

        await asyncio.to_thread(stop)


def is_outage(error: SQLAlchemyError) -> bool:
    """Return whether the database is unavailable, as opposed to refusing this one statement.

    Unavailable: connection refused or closed, no free connection, database locked, disk full, a file that is no database.
    A statement is refused for a constraint, a value or a mistake in it: that is a fault of this program, and a retry does
    not help.
    """
    if isinstance(error, DBAPIError):
        # A session that the server closed has many error names.
        return bool(error.connection_invalidated) or type(error).__name__ in _OUTAGES
    return isinstance(error, PoolTimeout | DisconnectionError)
