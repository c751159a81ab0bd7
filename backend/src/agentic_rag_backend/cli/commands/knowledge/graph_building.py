"""``build-graph``: the knowledge graph of a tenant's documents made whole, and its communities found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.knowledge.communities import MaxClusterSize, MinCommunitySize, RebuildWatch, rebuild_body
from agentic_rag_backend.cli.following import Job, follow, succeeded, why
from agentic_rag_backend.cli.output import fields, table


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "build-graph", work=True)(build_graph)


async def build_graph(
    session: Session,
    full: Annotated[bool, typer.Option("--full", help="Find communities from nothing, not from the current generation.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what differs and what it would cost; change nothing.")
    ] = False,
    communities: Annotated[
        bool, typer.Option("--communities/--no-communities", help="Find communities once the graph is whole.")
    ] = True,
    levels: Annotated[int | None, typer.Option("--levels", help="Depth of the hierarchy, 1 to 10.")] = None,
    resolution: Annotated[float | None, typer.Option("--resolution", help="Above 0 to 100; higher: more communities.")] = None,
    max_cluster_size: MaxClusterSize = None,
    min_community_size: MinCommunitySize = None,
    summarize: Annotated[
        bool, typer.Option("--summarize/--no-summarize", help="Let the model, if there is one, write summaries.")
    ] = True,
    watch_job: RebuildWatch = True,
) -> None:
    """Build the graph from what documents were found to say, then its communities.

    What documents say is on record and is not extracted again: entities, relationships and vectors that are missing in the
    stores are written, what no document says any more is removed. A graph that is whole stays as it is.
    """
    graph = await _graph(session, dry_run=dry_run)
    built: dict[str, Any] = {"graph": graph}
    if communities:
        sizes = {"max_cluster_size": max_cluster_size, "min_community_size": min_community_size}
        asked = rebuild_body(full=full, dry_run=dry_run, summarize=summarize, levels=levels, resolution=resolution, **sizes)
        accepted = await session.client.post("/admin/communities/rebuild", asked)
        if not watch_job:
            built["communities"] = accepted
        else:
            job = await follow(session.client, accepted["job_id"], title="communities")
            _require(session, job, built)
            built["communities"] = job["result"] or {}
    if session.output.as_json:
        session.output.result(built)
        return
    _show(session, built)


async def _graph(session: Session, *, dry_run: bool) -> dict[str, Any]:
    """Compare the graph with what is on record and, but for a dry run, write what is missing; return counts."""
    accepted = await session.client.post("/admin/reconcile", {"repair": not dry_run})
    job = await follow(session.client, accepted["job_id"], title="graph")
    _require(session, job, {})
    report: Mapping[str, Any] = job["result"]
    for job_id in report.get("jobs", ()):
        # Documents that were left half-way are taken up as jobs of their own.
        await follow(session.client, job_id, title="documents")
    counts = (await session.client.get("/status"))["counts"]
    told = {name: counts[name] for name in ("entities", "relationships") if name in counts}
    compared = {name: report[name] for name in ("documents", "in_flight", "found", "mended")}
    return {**compared, **told, "kinds": report["kinds"]}


def _require(session: Session, job: Job, built: Mapping[str, Any]) -> None:
    if succeeded(job):
        return
    if session.output.as_json:
        session.output.result({**built, "failed": job})
    else:
        session.output.note(f"error: {why(job)}")
    raise typer.Exit(1)


def _show(session: Session, built: Mapping[str, Any]) -> None:
    graph = dict(built["graph"])
    kinds = graph.pop("kinds")
    session.output.show(fields(graph, title="graph"))
    if kinds:
        rows = [[kind, of["found"], of["mended"], of["examples"]] for kind, of in kinds.items()]
        session.output.show("", table(["difference", "#found", "#mended", "for example"], rows))
    if "communities" in built:
        session.output.show("", fields(built["communities"], title="communities"))
