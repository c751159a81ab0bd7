"""``config``, ``migrate`` and ``reindex``: the settings of this machine, and the upkeep of its stores."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.cli.command import AsJson, DataDir, LocalSession
from agentic_rag_backend.cli.configuration import list_effective, load_settings
from agentic_rag_backend.cli.output import Output, fields, table
from agentic_rag_backend.cli.progress import ProgressDisplay
from agentic_rag_backend.errors import StoreLocked

if TYPE_CHECKING:
    from collections.abc import Sequence


def show_config(json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show every setting with its value and source. Secrets are masked."""
    settings = [asdict(setting) for setting in list_effective(load_settings(data_dir=data_dir), data_dir=data_dir)]
    Output(as_json=json).present(settings, _show_settings)


def _show_settings(output: Output, settings: Sequence[dict[str, Any]]) -> None:
    output.show(table(["setting", "value", "source", "description"], [[*setting.values()] for setting in settings]))


async def migrate_stores(session: LocalSession) -> None:
    """Update tables, constraints, indexes and collections of every store to this release. The command can be repeated.

    A repeated run continues an interrupted one. With MIGRATE_ON_START=false, other processes do not start before the update.
    """
    from agentic_rag_backend.cli.session.local import open_stores

    settings = session.settings.model_copy(update={"migrate_on_start": True})
    async with open_stores(settings, work=False) as container:
        reindex = "another embedder made them: run 'agentic-rag reindex'"
        states = {
            "catalogue": "up to date",
            "jobs": "up to date",
            "graph": f"up to date ({settings.graph_store})",
            "vectors": f"up to date ({settings.vector_store})" if container.reindex_due is None else reindex,
        }
    session.output.present(states, lambda output, value: output.show(fields(value, title="migrated")))


async def reindex_vectors(session: LocalSession) -> None:
    """Write every vector again from catalogue and graph. A repeated run continues an interrupted one.

    Vectors of another embedder stay in use until all new vectors are written. Then the new vectors replace them.
    """
    from agentic_rag_backend.container.reindexing import open_reindexing

    with ProgressDisplay("reindex") as display:

        async def show_stage(stage: str, done: int, total: int) -> None:
            display.update(stage, completed=done, total=total or None)

        try:
            async with open_reindexing(session.settings) as reindexing:
                counts = await reindexing.reindexer.run(show_stage)
                await reindexing.finish()
        except StoreLocked as error:
            raise StoreLocked(f"stop the process that has DATA_DIR open first: {error.message}") from error
    report = {**asdict(counts), "beside": reindexing.separate_store, "made_with_before": reindexing.made_with or None}
    session.output.present(report, lambda output, value: output.show(fields(value, title="reindexed")))
