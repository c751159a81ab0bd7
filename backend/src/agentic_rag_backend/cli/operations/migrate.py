"""``migrate``: updates the schemas of every store to this release, before other processes start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from agentic_rag_backend.cli.command import AsJson, DataDir, quiet_logging
from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.interruption import run_async
from agentic_rag_backend.cli.output import Output, fields

if TYPE_CHECKING:
    from agentic_rag_backend.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("migrate")(migrate)


def migrate(data_dir: DataDir = None, json: AsJson = False) -> None:
    """Update tables, constraints, indexes and collections of every store to this release. The command can be repeated.

    A repeated run continues an interrupted one. With MIGRATE_ON_START=false, other processes do not start before the update.
    """
    settings = load_settings(data_dir=data_dir)
    quiet_logging(settings)
    done = run_async(_migrate(settings.model_copy(update={"migrate_on_start": True})))
    output = Output(as_json=json)
    if json:
        output.result(done)
    else:
        output.show(fields(done, title="migrated"))


async def _migrate(settings: Settings) -> dict[str, str]:
    from agentic_rag_backend.cli.session.local import open_stores

    async with open_stores(settings, work=False) as container:
        reindex = "another embedder made them: run 'agentic-rag reindex'"
        return {
            "catalogue": "up to date",
            "jobs": "up to date",
            "graph": f"up to date ({settings.graph_store})",
            "vectors": f"up to date ({settings.vector_store})" if container.reindex_due is None else reindex,
        }
