"""``raptor list|show|rebuild|status``."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.documents import Most, Watch
from agentic_rag_backend.cli.commands.knowledge.themes import rebuild_index, show_theme, show_themes
from agentic_rag_backend.cli.output import fields


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="raptor", help="RAPTOR tree: summaries of clusters of passages.", no_args_is_help=True)
    command(group, "list")(list_nodes)
    command(group, "show")(show)
    command(group, "status")(status)
    command(group, "rebuild", work=True)(rebuild)
    app.add_typer(group)


async def list_nodes(
    session: Session,
    limit: Most = 50,
    level: Annotated[int | None, typer.Option("--level", help="1: clusters of passages.")] = None,
) -> None:
    """List the nodes of the current tree."""
    found = await session.client.every("/raptor", limit=limit, level=level)
    show_themes(session, found, size="passage_count", heading="#passages")


async def show(session: Session, node_id: Annotated[str, typer.Argument(metavar="NODE_ID")]) -> None:
    """Show a node with its summary and findings."""
    found = await session.client.get(f"/raptor/{node_id}")
    listed = ("id", "level", "passage_count", "children", "generation", "keywords", "stale", "written_by")
    show_theme(session, found, listed)


async def status(session: Session) -> None:
    """Show the state of the tree and the result of its last build."""
    found = await session.client.get("/admin/raptor")
    session.output.result(found) if session.output.as_json else session.output.show(fields(found))


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
