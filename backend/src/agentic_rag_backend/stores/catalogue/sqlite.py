"""SQLAlchemy dialect of all SQLite connections to the catalogue's database.

The durable queue (DBOS) keeps its tables in that database. From Python 3.12 on, DBOS uses ``unixepoch('subsec')`` in the
defaults of its tables and in its statements. SQLite supports the modifier ``subsec`` since 3.42. Older versions return NULL,
which ``NOT NULL`` columns refuse, or lack the function. The dialect therefore defines the function on old versions. The URL
(``sqlite+catalogue://``) selects the dialect, so it also applies to the engine that DBOS creates for its migrations.

A database file is portable between Python versions: the schema stores the default as text, and each connection can evaluate it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

DRIVER = "sqlite+catalogue"
KNOWS_SUBSEC = (3, 42)
"""The oldest SQLite version with ``unixepoch('subsec')``."""
_MS_PER_S = 1000


def unixepoch(value: str, *, now_s: Callable[[], float] = time.time) -> float:
    """Return the current time in seconds since 1970, to the millisecond for ``subsec``, in whole seconds for ``now``.

    Args:
        value: ``subsec``, ``subsecond`` or ``now``, in any case. DBOS uses the first.
        now_s: the clock.

    Raises:
        ValueError: any other time value. The statement fails instead of continuing with NULL.
    """
    match value.lower():
        case "subsec" | "subsecond":
            return int(now_s() * _MS_PER_S) / _MS_PER_S
        case "now":
            return int(now_s())
        case other:
            raise ValueError(f"unixepoch() takes 'subsec', 'subsecond' or 'now' here; got {other!r}")


def define_functions(connection: sqlite3.Connection, version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Define the functions on ``connection`` that SQLite of ``version`` lacks."""
    if version < KNOWS_SUBSEC:
        connection.create_function("unixepoch", 1, unixepoch)


class CatalogueDialect(SQLiteDialect_pysqlite):
    """SQLite through the standard library's driver, with `define_functions` on each connection."""

    supports_statement_cache = True

    def on_connect(self) -> Callable[[Any], None]:
        """Return the function that prepares a new connection."""
        inherited = super().on_connect()

        def prepare(connection: Any) -> None:
            inherited(connection)
            define_functions(connection)

        return prepare


registry.register("sqlite.catalogue", __name__, CatalogueDialect.__name__)
