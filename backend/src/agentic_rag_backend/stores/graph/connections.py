"""SQLite connections on their own threads: one writer and a few readers."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, StoreUnavailable
from agentic_rag_backend.fairness import FairThreadPool
from agentic_rag_backend.stores.local_files import require_room, sqlite_failure

T = TypeVar("T")

_BUSY_TIMEOUT_MS = 30_000
_CACHE_KIB = 16_384


class SqliteConnections:
    """Runs functions of a connection on threads: writers one after the other, readers concurrently on a snapshot.

    A whole transaction takes one thread switch, which costs less than one per statement, and cannot await anything.
    """

    def __init__(self, path: Path, *, readers: int = 2) -> None:
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._writer = FairThreadPool(1, "graph-writer")
        self._readers = FairThreadPool(readers, "graph-reader")
        self._closed = False

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of ``work``, run in one ``BEGIN IMMEDIATE`` transaction. Rolled back if it raises.

        Raises:
            InvalidRequest: a row contradicts the schema, or SQLite cannot store a value.
            StoreUnavailable: the file cannot be used.
        """
        return await self._run(self._writer, "BEGIN IMMEDIATE", work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of ``work``, run on one snapshot.

        Raises:
            StoreUnavailable: the file cannot be used.
        """
        return await self._run(self._readers, "BEGIN", work)

    async def prepare(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Run ``work`` on the writing connection outside any transaction.

        Raises:
            StoreUnavailable: the file cannot be used.
        """
        await self._submit(self._writer, lambda: work(self._connection()))

    def require_room(self) -> None:
        """Raise `StorageFull` if the file's disk is full."""
        require_room(self._path, "the graph store")

    async def close(self) -> None:
        """Let running work end, then close every connection. Idempotent."""
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._readers.shutdown(wait=True)
        self._writer.shutdown(wait=True)
        with self._lock:
            while self._opened:
                self._opened.pop().close()

    async def _run(self, pool: FairThreadPool, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        def transaction() -> T:
            connection = self._connection()
            connection.execute(begin)
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

        return await self._submit(pool, transaction)

    async def _submit(self, pool: FairThreadPool, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreUnavailable("the graph store is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
            raise InvalidRequest(f"the graph store refused a value: {error}") from error
        except (sqlite3.ProgrammingError, sqlite3.NotSupportedError) as error:
            raise AgenticRagError(f"the graph store refused a statement: {type(error).__name__}: {error}") from error
        except sqlite3.Error as error:
            raise sqlite_failure(error, self._path, "the graph store") from error

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            # Another thread closes the connection than opened it, but no two threads use it at once.
            connection = sqlite3.connect(self._path, isolation_level=None, cached_statements=256, check_same_thread=False)
            with self._lock:
                self._opened.append(connection)
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
            connection.execute("PRAGMA journal_mode = WAL")
            # The catalogue may make a document visible right after this commit: its knowledge must be on disk by then.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute("PRAGMA temp_store = MEMORY")
            self._local.connection = connection
        return connection
