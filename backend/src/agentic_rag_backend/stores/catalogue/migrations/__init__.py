"""Runs the schema's migrations with Alembic in a transaction of the caller. Alembic is imported only when needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = max(path.name for path in Path(__file__).parent.joinpath("versions").glob("[0-9]*.py"))[:4]
"""The last revision: the schema of this release. The names of the migrations begin with their revisions."""
_LOCK = 0x61726167  # any constant: PostgreSQL runs one migration at a time under this lock


def _config(connection: Connection) -> Config:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, revision: str) -> None:
    """Apply the migrations up to ``revision``."""
    if revision in ("head", HEAD) and _current(connection) == HEAD:
        return
    from alembic import command

    command.upgrade(_config(connection), revision)


def missing(connection: Connection) -> str | None:
    """Describe the difference between the current and the required schema. None if the schema is current."""
    current = _current(connection)
    if current == HEAD:
        return None
    known = current is None or current in revisions()
    return f"it is at {current or 'no revision'}, {'' if known else 'which is a newer release, '}and {HEAD} is needed"


def revisions() -> list[str]:
    """Return all revisions, the last one first."""
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(__file__).parent))
    return [revision.revision for revision in script.walk_revisions()]


def downgrade(connection: Connection, revision: str) -> None:
    """Revert the migrations after ``revision``."""
    from alembic import command

    command.downgrade(_config(connection), revision)


def _current(connection: Connection) -> str | None:
    """Return the database's revision. None if it has no tables."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if found is None else str(found)
