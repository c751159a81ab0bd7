"""``raptor list|show|rebuild|status``."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.documents import Most, Watch
from agentic_rag_backend.cli.following import follow, succeeded, why
from agentic_rag_backend.cli.output import fields, table


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="raptor", help="The tree of summaries over the passages.", no_args_is_help=True)
    command(group, "list")(list_nodes)
    command(group, "show")(show)
    command(group, "status")(status)
    command(group, "rebuild", work=True)(rebuild)
    app.add_typer(group)


async def list_nodes(
    session: Session,
    limit: Most = 50,
    level: Annotated[int | None, typer.Option("--level", help="1 are the clusters of passages.")] = None,
) -> None:
    """List the nodes of the current tree."""
    found = await session.client.every("/raptor", limit=limit, level=level)
    if session.output.as_json:
        session.output.result(found)
        return
    rows = [[each["id"], each["level"], each["passage_count"], each["name"], each["keywords"][:5]] for each in found]
    session.output.show(table(["id", "#level", "#passages", "name", "keywords"], rows))


async def show(session: Session, node_id: Annotated[str, typer.Argument(metavar="NODE_ID")]) -> None:
    """Show a node with its summary and findings."""
    found = await session.client.get(f"/raptor/{node_id}")
    if session.output.as_json:
        session.output.result(found)
        return
    listed = ("id", "level", "passage_count", "children", "generation", "keywords", "stale", "written_by")
    session.output.show(found["name"], style="bold")
    session.output.show(fields({name: found[name] for name in listed}))
    session.output.show(f"\n{found['summary'] or 'The summary is withheld: passages it rests on are no longer there.'}")
    for finding in found["findings"]:
        session.output.show(f"- {finding['statement']}")


async def status(session: Session) -> None:
    """Show where the tree stands, and what its last build did."""
    found = await session.client.get("/admin/raptor")
    session.output.result(found) if session.output.as_json else session.output.show(fields(found))


async def rebuild(
    session: Session,
    full: Annotated[bool, typer.Option("--full", help="Cluster everything anew instead of taking in what changed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what it would cost.")] = False,
    levels: Annotated[int | None, typer.Option("--levels", help="Levels of summaries, 1 to 10.")] = None,
    cluster_size: Annotated[int | None, typer.Option("--cluster-size", help="Children of a node, about; 2 to 100.")] = None,
    method: Annotated[str | None, typer.Option("--method", help="mixture or kmeans.")] = None,
    watch_job: Watch = True,
) -> None:
    """Build the tree over the passages, or take in what changed; readers keep the old one meanwhile."""
    body = {
        "mode": "full" if full else "incremental",
        "dry_run": dry_run,
        "max_levels": levels,
        "cluster_size": cluster_size,
        "method": method,
    }
    accepted = await session.client.post("/admin/raptor/rebuild", body)
    if not watch_job:
        session.output.result(accepted) if session.output.as_json else session.output.show(fields(accepted))
        return
    job = await follow(session.client, accepted["job_id"], title="tree")
    if session.output.as_json:
        session.output.result(job)
    elif succeeded(job):
        session.output.show(fields(job["result"] or {}))
    else:
        session.output.note(f"error: {why(job)}")
    if not succeeded(job):
        raise typer.Exit(1)
