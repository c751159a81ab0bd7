"""The statements bind the tenant and use an index. Also the steps of the schema."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.stores.graph import statements

SQL = statements.load_statements()


@pytest.fixture
def connection() -> sqlite3.Connection:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    statements.migrate(opened)
    return opened


@pytest.mark.parametrize("name", [name for name in SQL if not name.startswith("next_tenant_")])
def test_every_statement_binds_the_tenant(name: str) -> None:
    """Except those with which the operator's comparison lists tenants. `tests/meta` checks their form."""
    bound = re.search(r"tenant = :tenant|\(:tenant|VALUES \(:tenant", SQL[name])
    assert bound, SQL[name]


@pytest.mark.parametrize("name", SQL)
def test_no_statement_walks_a_table(connection: sqlite3.Connection, name: str) -> None:
    values = dict.fromkeys(re.findall(r":(\w+)", SQL[name]), 1)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values)]
    walks = [step for step in plan if step.startswith("SCAN") and not re.match(r"SCAN (json_each|CONSTANT ROW|[rs]$)", step)]
    assert not walks
    connection.close()


def test_only_statements_about_the_whole_tenant_read_all_of_its_rows(connection: sqlite3.Connection) -> None:
    whole = set()
    for name, statement in SQL.items():
        values = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        if any(step.endswith("(tenant=?)") for step in plan) and not name.startswith("delete_tenant_"):
            whole.add(name)
    # Of revisions, a tenant has one row.
    assert whole == {"counts", "generations", "revision", "change_revision"}
    connection.close()


@pytest.mark.parametrize(
    "name", ["touched_relationships", "touched_entities", "relationship_ids_of_documents", "mentions_of_document_page"]
)
def test_what_is_about_a_document_looks_at_its_rows_only(connection: sqlite3.Connection, name: str) -> None:
    values = dict.fromkeys(re.findall(r":(\w+)", SQL[name]), 1)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values)]
    searches = [step for step in plan if step.startswith("SEARCH")]
    assert searches
    assert all("document_id=?" in step for step in searches)
    connection.close()


def test_an_interrupted_migration_goes_on(connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    steps = iter(["CREATE TABLE half (x);\nno SQL;\n"])
    original = Path.read_text
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", lambda self, **_: next(steps) if self.suffix == ".sql" else original(self))
        with pytest.raises(sqlite3.OperationalError):
            statements.migrate(fresh)
    assert fresh.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (0,)
    statements.migrate(fresh)
    statements.migrate(fresh)
    assert fresh.execute("PRAGMA user_version").fetchone() == (len(statements.MIGRATIONS),)
    fresh.close()


def test_a_file_of_a_newer_release_is_refused(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA user_version = 999")
    with pytest.raises(ConfigurationError, match=f"schema version 999; this release knows {len(statements.MIGRATIONS)}"):
        statements.migrate(connection)
    connection.close()
