"""``communities rebuild`` and ``raptor rebuild``, and the themes that both build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.following import finish_job
from agentic_rag_backend.cli.options import WatchJob
from agentic_rag_backend.cli.output import Output, fields
from agentic_rag_backend.cli.resources import Cell, Resource

DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate model calls and tokens; change nothing.")]
Summarize = Annotated[
    bool, typer.Option("--summarize/--no-summarize", help="Let the model write summaries, if one is configured.")
]
WatchRebuild = Annotated[
    bool,
    typer.Option("--watch/--no-watch", "--watch-job/--no-watch-job", help="Show progress until the job has ended."),
]


def describe_themes(path: str, *, size: str, heading: str, metavar: str) -> Resource:
    """Return themes as a resource. ``size`` names the field with the size of a theme, ``heading`` its column."""
    columns: dict[str, Cell] = {
        "id": "id",
        "#level": "level",
        heading: size,
        "name": "name",
        "keywords": lambda theme: theme["keywords"][:5],
    }
    argument = Annotated[str, typer.Argument(metavar=metavar)]
    return Resource(path=path, columns=columns, droppable=("keywords",), argument=argument)


def render_theme(*names: str) -> Callable[[Output, Any], None]:
    """Return what prints a theme: its name, the fields ``names``, summary and findings."""

    def show_theme(output: Output, theme: Mapping[str, Any]) -> None:
        output.show(theme["name"], style="bold")
        output.show(fields({name: theme[name] for name in names}))
        output.show(f"\n{theme['summary'] or 'The summary is withheld: passages that it rests on were removed.'}")
        for finding in theme["findings"]:
            output.show(f"- {finding['statement']}")

    return show_theme


@dataclass(frozen=True, kw_only=True)
class CommunityOptions:
    """Options of the detection of communities."""

    levels: Annotated[int | None, typer.Option("--levels", help="Depth of the hierarchy, 1 to 10.")] = None
    resolution: Annotated[float | None, typer.Option("--resolution", help="Above 0 to 100; higher: more communities.")] = None
    max_cluster_size: Annotated[
        int | None,
        typer.Option("--max-cluster-size", help="Members above which a cluster is divided, 3 to 10000; default 25."),
    ] = None
    min_community_size: Annotated[
        int | None,
        typer.Option("--min-community-size", help="Members below which no model writes a summary, 1 to 1000; default 3."),
    ] = None
    summarize: Summarize = True


async def rebuild_communities(
    session: Session,
    *,
    full: Annotated[bool, typer.Option("--full", help="Do not start from the current generation.")] = False,
    dry_run: DryRun = False,
    options: CommunityOptions,
    watch_job: WatchRebuild = True,
) -> None:
    """Detect communities and write their summaries. Searches use the old communities until the new ones are complete."""
    accepted = await request_rebuild(session, "communities", full=full, dry_run=dry_run, **asdict(options))
    await _finish_rebuild(session, accepted, title="communities", watch_job=watch_job)


async def rebuild_tree(
    session: Session,
    full: Annotated[bool, typer.Option("--full", help="Cluster all passages instead of only the changes.")] = False,
    dry_run: DryRun = False,
    levels: Annotated[int | None, typer.Option("--levels", help="Levels of summaries, 1 to 10.")] = None,
    cluster_size: Annotated[
        int | None, typer.Option("--cluster-size", help="Children of a node, approximately; 2 to 100.")
    ] = None,
    max_clusters: Annotated[
        int | None, typer.Option("--max-clusters-per-level", help="Maximum clusters of a level; clusters become larger instead.")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", help="mixture or kmeans.")] = None,
    summarize: Summarize = True,
    watch_job: WatchJob = True,
) -> None:
    """Build the tree over the passages, or add changes to it. Searches use the old tree meanwhile."""
    sizes = {"max_levels": levels, "cluster_size": cluster_size, "max_clusters_per_level": max_clusters}
    options = {**sizes, "method": method, "summarize": summarize}
    accepted = await request_rebuild(session, "raptor", full=full, dry_run=dry_run, **options)
    await _finish_rebuild(session, accepted, title="tree", watch_job=watch_job)


async def show_tree_status(session: Session) -> None:
    """Show the state of the tree and the result of its last build."""
    session.output.present(await session.client.get("/admin/raptor"))


async def request_rebuild(session: Session, index: str, *, full: bool, dry_run: bool, **options: Any) -> Mapping[str, Any]:
    """Request a rebuild of ``index``, its name in the path, and return the accepted job. None: the server's default."""
    body = {"mode": "full" if full else "incremental", "dry_run": dry_run, **options}
    accepted: Mapping[str, Any] = await session.client.post(f"/admin/{index}/rebuild", body)
    return accepted


async def _finish_rebuild(session: Session, accepted: Mapping[str, Any], *, title: str, watch_job: bool) -> None:
    if watch_job:
        await finish_job(session, accepted["job_id"], title=title)
    else:
        session.output.present(accepted)
