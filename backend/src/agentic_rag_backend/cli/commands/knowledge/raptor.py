"""``raptor list|show|rebuild|status``."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.documents import Watch
from agentic_rag_backend.cli.commands.knowledge.themes import rebuild_index, theme_renderer, theme_resource
from agentic_rag_backend.cli.resources import list_command, show_command

NODES = theme_resource("/raptor", size="passage_count", heading="#passages")
Level = Annotated[int | None, typer.Option("--level", help="1: clusters of passages.")]
NodeId = Annotated[str, typer.Argument(metavar="NODE_ID")]
_LISTED = ("id", "level", "passage_count", "children", "generation", "keywords", "stale", "written_by")


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="raptor", help="RAPTOR tree: summaries of clusters of passages.", no_args_is_help=True)
    command(group, "list")(list_command(NODES, "List the nodes of the current tree.", level=Level))
    command(group, "show")(show_command(NODES, NodeId, "Show a node with its summary and findings.", theme_renderer(_LISTED)))
    command(group, "status")(show_status)
    command(group, "rebuild", work=True)(rebuild)
    app.add_typer(group)


async def show_status(session: Session) -> None:
    """Show the state of the tree and the result of its last build."""
    session.output.present(await session.client.get("/admin/raptor"))


async def rebuild(
    session: Session,
    full: Annotated[bool, typer.Option("--full", help="Cluster all passages instead of only the changes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate model calls and tokens; change nothing.")] = False,
    levels: Annotated[int | None, typer.Option("--levels", help="Levels of summaries, 1 to 10.")] = None,
    cluster_size: Annotated[
        int | None, typer.Option("--cluster-size", help="Children of a node, approximately; 2 to 100.")
    ] = None,
    max_clusters: Annotated[
        int | None, typer.Option("--max-clusters-per-level", help="Maximum clusters of a level; clusters become larger instead.")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", help="mixture or kmeans.")] = None,
    summarize: Annotated[
        bool, typer.Option("--summarize/--no-summarize", help="Let the model write summaries, if one is configured.")
    ] = True,
    watch_job: Watch = True,
) -> None:
    """Build the tree over the passages, or add changes to it. Searches use the old tree meanwhile."""
    body = {
        "mode": "full" if full else "incremental",
        "dry_run": dry_run,
        "max_levels": levels,
        "cluster_size": cluster_size,
        "max_clusters_per_level": max_clusters,
        "method": method,
        "summarize": summarize,
    }
    await rebuild_index(session, "raptor", body, title="tree", watch_job=watch_job)
