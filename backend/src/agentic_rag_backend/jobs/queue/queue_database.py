"""The queue's connections to the catalogue's database."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable
from agentic_rag_backend.stores.catalogue.database import is_outage


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
