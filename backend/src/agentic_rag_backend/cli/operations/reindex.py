"""``reindex``: writes every vector again, with the configured embedder."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from agentic_rag_backend.cli.command import AsJson, DataDir, quiet_logging
from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.interruption import run_async
from agentic_rag_backend.cli.output import Output, console, fields
from agentic_rag_backend.errors import StoreLocked

if TYPE_CHECKING:
    from agentic_rag_backend.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reindex")(reindex)


def reindex(data_dir: DataDir = None, json: AsJson = False) -> None:
    """Write every vector again from catalogue and graph. A repeated run continues an interrupted one.

    Vectors of another embedder stay in use until all new vectors are written. Then the new vectors replace them.
    """
    settings = load_settings(data_dir=data_dir)
    quiet_logging(settings)
    output = Output(as_json=json)
    done = run_async(_reindex(settings))
    if json:
        output.result(done)
    else:
        output.show(fields(done, title="reindexed"))


async def _reindex(settings: Settings) -> dict[str, Any]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from agentic_rag_backend.container.reindexing import open_reindexing

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("reindex", total=None)

        async def show(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total or None)

        try:
            async with open_reindexing(settings) as reindexing:
                done = await reindexing.reindexer.run(show)
                await reindexing.finish()
        except StoreLocked as error:
            raise StoreLocked(f"stop the process that has DATA_DIR open first: {error.message}") from error
    return {**asdict(done), "beside": reindexing.separate_store, "made_with_before": reindexing.made_with or None}
