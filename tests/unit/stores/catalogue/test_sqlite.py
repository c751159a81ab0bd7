"""The function that DBOS's tables use on Python 3.12 and later, on every connection, for any version of SQLite."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from agentic_rag_backend.jobs.queue.database import queue_engine
from agentic_rag_backend.stores.catalogue.database import Database, parse_url
from agentic_rag_backend.stores.catalogue.sqlite import define_functions, unixepoch

OLD, NEW = (3, 40, 1), (3, 42, 0)


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[dict[str, Engine]]:
    """Return every engine that opens the catalogue's database, including DBOS's engine for its migrations."""
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    database = Database(url)
    made = create_engine(parse_url(url).render_as_string(hide_password=False))
    plain = create_engine(url)
    found = {
        "reading": database._engine,
        "writing": database._write_engine,
        "shared with the queue": database.sync_engine,
        "the queue's": queue_engine(database.sync_engine)[0],
        "the queue's, of a plain engine": queue_engine(plain)[0],
        "migrating": made,
    }
    yield found
    for engine in (*found.values(), plain):
        engine.dispose()


def test_the_present_time_as_sqlite_gives_it() -> None:
    assert unixepoch("subsec", now_s=lambda: 1_700_000_000.123_9) == 1_700_000_000.123
    assert unixepoch("SUBSECOND", now_s=lambda: 1_700_000_000.5) == 1_700_000_000.5
    whole = unixepoch("now", now_s=lambda: 1_700_000_000.9)
    assert (whole, type(whole)) == (1_700_000_000, int)


def test_another_time_value_fails_instead_of_being_null() -> None:
    connection = sqlite3.connect(":memory:")
    define_functions(connection, OLD)
    with pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT unixepoch('2012-05-01')")
    with pytest.raises(ValueError, match="2012-05-01"):
        unixepoch("2012-05-01")
    connection.close()


def test_only_an_old_sqlite_is_given_the_function() -> None:
    given: list[str] = []

    class Connection:
        def create_function(self, name: str, arguments: int, function: object) -> None:
            given.append(name)

    define_functions(Connection(), NEW)  # type: ignore[arg-type]
    assert given == []
    define_functions(Connection(), OLD)  # type: ignore[arg-type]
    assert given == ["unixepoch"]


def test_every_connection_to_the_catalogue_tells_the_time(engines: dict[str, Engine]) -> None:
    for name, engine in engines.items():
        before = int(time.time() * 1000)
        with engine.connect() as connection:
            told = connection.execute(text("SELECT unixepoch('subsec') * 1000")).scalar_one()
        assert told is not None, name
        assert before - 1 <= told <= time.time() * 1000, name


@pytest.mark.parametrize("default", ["(unixepoch('subsec') * 1000)", "(strftime('%s','now') * 1000)"])
def test_a_table_made_by_either_python_takes_rows_on_every_connection(engines: dict[str, Engine], default: str) -> None:
    with engines["writing"].begin() as connection:
        connection.execute(text(f"CREATE TABLE made (id TEXT, created_at INTEGER NOT NULL DEFAULT {default})"))
    for name, engine in engines.items():
        if name != "reading":
            with engine.begin() as connection:
                connection.execute(text("INSERT INTO made (id) VALUES (:id)"), {"id": name})
    with engines["reading"].connect() as connection:
        times = connection.execute(text("SELECT created_at FROM made")).scalars().all()
    assert len(times) == len(engines) - 1
    assert all(time.time() - 3600 < each / 1000 <= time.time() for each in times)
