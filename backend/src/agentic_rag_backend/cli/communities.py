"""``communities list|show|rebuild``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.documents import Most
from agentic_rag_backend.cli.themes import rebuild_index, show_theme, show_themes

RebuildWatch = Annotated[
    bool,
    typer.Option("--watch/--no-watch", "--watch-job/--no-watch-job", help="Show progress until the job has ended."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="communities", help="The themes of the documents.", no_args_is_help=True)
    command(group, "list")(list_communities)
    command(group, "show")(show)
    command(group, "rebuild", work=True)(rebuild)
    app.add_typer(group)


async def list_communities(
    session: Session, limit: Most = 50, level: Annotated[int | None, typer.Option("--level", help="0 is the coarsest.")] = None
) -> None:
    """List the communities of the current generation."""
    found = await session.client.every("/communities", limit=limit, level=level)
    show_themes(session, found, size="entity_count", heading="#entities")


async def show(session: Session, community_id: Annotated[str, typer.Argument(metavar="COMMUNITY_ID")]) -> None:
    """Show a community with its summary and findings."""
    found = await session.client.get(f"/communities/{community_id}")
    listed = ("id", "level", "parent", "entity_count", "generation", "keywords", "stale")
    show_theme(session, found, listed)


async def rebuild(
    session: Session,
    full: Annotated[bool, typer.Option("--full", help="Begin from nothing instead of the current generation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what it would cost.")] = False,
    levels: Annotated[int | None, typer.Option("--levels", help="Depth of the hierarchy, 1 to 10.")] = None,
    resolution: Annotated[float | None, typer.Option("--resolution", help="Above 0 to 100; higher: more communities.")] = None,
    summarize: Annotated[
        bool, typer.Option("--summarize/--no-summarize", help="Let the model, if there is one, write summaries.")
    ] = True,
    watch_job: RebuildWatch = True,
) -> None:
    """Find communities anew and write their summaries; readers keep the old ones meanwhile."""
    body = rebuild_body(full=full, dry_run=dry_run, levels=levels, resolution=resolution, summarize=summarize)
    await rebuild_index(session, "communities", body, title="communities", watch_job=watch_job)


def rebuild_body(*, full: bool, dry_run: bool, levels: int | None, resolution: float | None, summarize: bool) -> dict[str, Any]:
    """Return the request of a rebuild."""
    return {
        "mode": "full" if full else "incremental",
        "dry_run": dry_run,
        "levels": levels,
        "resolution": resolution,
        "summarize": summarize,
    }
