"""``communities list|show|rebuild``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.knowledge.themes import rebuild_index, theme_renderer, theme_resource
from agentic_rag_backend.cli.resources import list_command, show_command

RebuildWatch = Annotated[
    bool,
    typer.Option("--watch/--no-watch", "--watch-job/--no-watch-job", help="Show progress until the job has ended."),
]

COMMUNITIES = theme_resource("/communities", size="entity_count", heading="#entities")
Level = Annotated[int | None, typer.Option("--level", help="0 is the coarsest.")]
CommunityId = Annotated[str, typer.Argument(metavar="COMMUNITY_ID")]
_LISTED = ("id", "level", "parent", "entity_count", "generation", "keywords", "stale")

MaxClusterSize = Annotated[
    int | None,
    typer.Option("--max-cluster-size", help="Members above which a cluster is divided, 3 to 10000; default 25."),
]
MinCommunitySize = Annotated[
    int | None,
    typer.Option("--min-community-size", help="Members below which no model writes a summary, 1 to 1000; default 3."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="communities", help="Communities: the themes of the documents.", no_args_is_help=True)
    command(group, "list")(list_command(COMMUNITIES, "List the communities of the current generation.", level=Level))
    command(group, "show")(
        show_command(COMMUNITIES, CommunityId, "Show a community with its summary and findings.", theme_renderer(_LISTED))
    )
    command(group, "rebuild", work=True)(rebuild)
    app.add_typer(group)


async def rebuild(
    session: Session,
    full: Annotated[bool, typer.Option("--full", help="Do not start from the current generation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate model calls and tokens; change nothing.")] = False,
    levels: Annotated[int | None, typer.Option("--levels", help="Depth of the hierarchy, 1 to 10.")] = None,
    resolution: Annotated[float | None, typer.Option("--resolution", help="Above 0 to 100; higher: more communities.")] = None,
    max_cluster_size: MaxClusterSize = None,
    min_community_size: MinCommunitySize = None,
    summarize: Annotated[
        bool, typer.Option("--summarize/--no-summarize", help="Let the model write summaries, if one is configured.")
    ] = True,
    watch_job: RebuildWatch = True,
) -> None:
    """Detect communities and write their summaries. Searches use the old communities until the new ones are complete."""
    sizes = {"max_cluster_size": max_cluster_size, "min_community_size": min_community_size}
    body = rebuild_body(full=full, dry_run=dry_run, summarize=summarize, levels=levels, resolution=resolution, **sizes)
    await rebuild_index(session, "communities", body, title="communities", watch_job=watch_job)


def rebuild_body(*, full: bool, dry_run: bool, summarize: bool, **options: float | None) -> dict[str, Any]:
    """Return the body of a rebuild request. Options that are None have their defaults."""
    return {"mode": "full" if full else "incremental", "dry_run": dry_run, **options, "summarize": summarize}
