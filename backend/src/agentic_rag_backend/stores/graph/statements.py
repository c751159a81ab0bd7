"""The graph stores' statements, read from ``queries/`` by name, and the SQLite schema, migrated in steps."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Literal

from agentic_rag_backend.errors import ConfigurationError

_NAMES = {
    ".sql": re.compile(r"^-- name: (\w+)$", re.MULTILINE),
    ".cypher": re.compile(r"^// name: (\w+)$", re.MULTILINE),
}

MIGRATIONS = (
    "0001_knowledge.sql",
    "0002_revisions.sql",
    "0003_weights.sql",
    "0004_types.sql",
    "0005_edits.sql",
    "0006_document_weights.sql",
)
"""Applied in this order. The schema's version is the number of applied scripts."""


def load_statements(suffix: Literal[".sql", ".cypher"] = ".sql") -> Mapping[str, str]:
    """Return the statements of some files by the name in the comment ``name: …`` above each.

    Raises:
        ConfigurationError: two statements have the same name.
    """
    statements: dict[str, str] = {}
    query_files = (file for file in files(__package__).joinpath("queries").iterdir() if file.name.endswith(suffix))
    for file in sorted(query_files, key=lambda path: path.name):
        parts = _NAMES[suffix].split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in statements:
                raise ConfigurationError(f"two statements of the graph store are named {name!r}")
            statements[name] = text.strip()
    return statements


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate the schema to this release, one transaction per step, so that an interrupted migration can be continued.

    Raises:
        ConfigurationError: a newer release wrote the file.
    """
    current_version = _read_version(connection)
    if current_version > len(MIGRATIONS):
        raise ConfigurationError(
            f"the graph file has schema version {current_version}; this release knows {len(MIGRATIONS)} and older"
        )
    for version, name in enumerate(MIGRATIONS[current_version:], start=current_version + 1):
        script = files(__package__).joinpath("migrations", name).read_text(encoding="utf-8")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _read_version(connection) < version:  # another process may have been faster
                for statement in _split_script(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _split_script(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
