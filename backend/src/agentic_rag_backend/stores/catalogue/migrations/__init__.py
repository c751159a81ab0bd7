"""The schema's history, run by Alembic inside a transaction of ours."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.engine import Connection

_LOCK = 0x61726167  # any constant: PostgreSQL lets one migration run at a time under it


def _config(connection: Connection) -> Config:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, revision: str) -> None:
    """Apply the migrations up to ``revision``."""
    command.upgrade(_config(connection), revision)


def missing(connection: Connection) -> str | None:
    """Say what the schema is and what it should be, where these differ; None where it is this release's."""
    script = ScriptDirectory(str(Path(__file__).parent))
    head = script.get_current_head()
    current = MigrationContext.configure(connection).get_current_revision()
    if current == head:
        return None
    known = current is None or current in {revision.revision for revision in script.walk_revisions()}
    return f"it is at {current or 'no revision'}, {'' if known else 'which is a newer release, '}and {head} is needed"


def downgrade(connection: Connection, revision: str) -> None:
    """Take the migrations after ``revision`` back."""
    command.downgrade(_config(connection), revision)
