"""The queue's connections to the catalogue's database, and notifications of PostgreSQL that wake its workers.

Every process notifies in the transaction that enqueues, so a notification arrives exactly when there is something to claim. A
process that runs jobs listens on a separate connection. It relies on notifications only after it has received one of its own:
a connection pooler in transaction mode accepts ``LISTEN`` and delivers nothing.

Channels belong to a database. Each deployment has its own database, so deployments do not wake each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable
from agentic_rag_backend.stores.catalogue.database import is_outage
from agentic_rag_backend.stores.catalogue.postgres import open_listener
from agentic_rag_backend.telemetry.logs import get_logger

CHANNEL = "agentic_rag_jobs"
PROOF_S = 10.0
"""Seconds within which a process must receive its own notification."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0

_NOTIFY = text("SELECT pg_notify(:channel, :sender)")

_log = get_logger(__name__)


class Notifications:
    """Sends notifications to the other processes on a PostgreSQL database, and receives theirs.

    Args:
        heard: called when jobs may have been enqueued, or when `listening` has changed.
    """

    def __init__(self, engine: Engine, heard: Callable[[], None]) -> None:
        self._engine = engine
        self._heard = heard
        self._sender = uuid.uuid4().hex
        self.listening = False
        """Whether notifications reach this process, as far as it knows; while False, it must poll."""
        self.received = 0
        """Notifications of other processes so far."""

    def notify_processes(self, connection: Connection) -> None:
        """Notify the other processes when the open transaction is committed. Blocks."""
        connection.execute(_NOTIFY, {"channel": CHANNEL, "sender": self._sender})

    def send_now(self) -> None:
        """Notify the other processes. Blocks.

        Raises:
            SQLAlchemyError: the database does not answer.
        """
        with self._engine.begin() as connection:
            self.notify_processes(connection)

    async def listen(self) -> None:
        """Listen until cancelled. Reconnect after a lost connection, with growing pauses."""
        failures = 0
        while True:
            try:
                await self._listen_once()
            except Exception as error:  # noqa: BLE001 - whatever it is, a task that ended would look like a hang
                failures = 1 if self.listening else failures + 1
                # Log one warning per outage.
                _log.log(
                    logging.WARNING if failures == 1 else logging.DEBUG,
                    "job_notifications_lost",
                    error=type(error).__name__,
                    reason=str(error),
                    consequence="the queues are polled instead",
                )
            finally:
                self._note_listening(False)
            await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 30)))

    async def _listen_once(self) -> None:
        """Listen on one connection until it fails.

        Raises:
            TimeoutError: this process's own notification was not received.
            Exception: the connection failed. The driver raises many kinds of errors.
        """
        async with await open_listener(self._engine) as connection:
            await connection.execute(f'LISTEN "{CHANNEL}"')
            await asyncio.to_thread(self.send_now)
            async with asyncio.timeout(PROOF_S) as proof:
                async for notification in connection.notifies():
                    if notification.payload != self._sender:
                        self.received += 1
                        self._heard()
                    elif not self.listening:
                        proof.reschedule(None)
                        self._note_listening(True)
        raise ConnectionError("the connection stopped delivering notifications")

    def _note_listening(self, listening: bool) -> None:
        if listening != self.listening:
            self.listening = listening
            # Jobs may have been enqueued while nothing was received. The workers also have to update their polling interval.
            self._heard()
            if listening:
                _log.info("job_notifications_arrive")


def notifications_on(engine: Engine, heard: Callable[[], None]) -> Notifications | None:
    """Return the notifications of ``engine``'s database. None if the database has no notifications."""
    return Notifications(engine, heard) if engine.dialect.name == "postgresql" else None


def queue_engine(engine: Engine) -> tuple[Engine, bool]:
    """Return an engine on the same database with the transactions that the queue needs, and whether the caller must dispose it.

    On SQLite, this engine takes the write lock at the first write. The catalogue's own engine takes it at BEGIN.
    """
    if engine.dialect.name != "sqlite":
        return engine, False
    # Few connections: writers then queue for a connection in order. Within SQLite they would sleep and retry.
    own_engine = create_engine(engine.url, pool_size=3, max_overflow=0)

    @event.listens_for(own_engine, "connect")
    def configure_connection(connection: Any, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        connection.execute("PRAGMA journal_mode = WAL")
        # A power loss may lose a claim or an end. The job then runs again, which changes nothing.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA busy_timeout = 30000")
        connection.execute("PRAGMA foreign_keys = ON")

    return own_engine, True


def sidecar_path(engine: Engine, suffix: str) -> Path | None:
    """Return the path of a file next to an SQLite database, such as ``-wal``. None for other databases."""
    file = engine.url.database
    return Path(f"{file}{suffix}") if engine.dialect.name == "sqlite" and file else None


def ping_database(engine: Engine) -> None:
    """Run a trivial query."""
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")


@contextlib.contextmanager
def as_unavailable() -> Iterator[None]:
    """Translate the database's errors: an outage to `StoreUnavailable`, a refused statement to `AgenticRagError`."""
    try:
        yield
    except SQLAlchemyError as error:
        if is_outage(error):
            raise StoreUnavailable(f"the job queue's database does not answer: {type(error).__name__}") from error
        raise AgenticRagError(f"the job queue's database refused a statement: {_describe_error(error)}") from error


def _describe_error(error: SQLAlchemyError) -> str:
    """Return the error's type. For SQLite also its message, which contains column names and no values."""
    original = getattr(error, "orig", None)
    name = type(original or error).__name__
    return f"{name}: {original}" if isinstance(original, sqlite3.Error) else name
