"""``build-graph``: completes the knowledge graph of a tenant and detects its communities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.knowledge.communities import MaxClusterSize, MinCommunitySize, RebuildWatch, rebuild_body
from agentic_rag_backend.cli.commands.knowledge.extraction import Selection, extract_selected
from agentic_rag_backend.cli.following import Job, failure_reason, follow, succeeded
from agentic_rag_backend.cli.output import fields, table

Documents = Annotated[
    list[str] | None,
    typer.Option("--documents", metavar="ID", help="Extract from this document again, by id or key. Repeat it for several."),
]
EntityTypes = Annotated[
    str | None,
    typer.Option("--entity-types", metavar="T,…", help="Replace the entity types of the tenant's ontology first."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "build-graph", work=True)(build_graph)


async def build_graph(
    session: Session,
    documents: Documents = None,
    everything: Annotated[bool, typer.Option("--all", help="Extract from all documents again.")] = False,
    extraction: Annotated[
        str | None,
        typer.Option("--extraction", help="Method of extraction: rules, llm, rules+llm or graphiti; default: EXTRACTION."),
    ] = None,
    entity_types: EntityTypes = None,
    full: Annotated[bool, typer.Option("--full", help="Do not start from the current communities.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count differences and estimate costs; change nothing.")] = False,
    communities: Annotated[
        bool, typer.Option("--communities/--no-communities", help="Detect communities when the graph is complete.")
    ] = True,
    levels: Annotated[int | None, typer.Option("--levels", help="Depth of the hierarchy, 1 to 10.")] = None,
    resolution: Annotated[float | None, typer.Option("--resolution", help="Above 0 to 100; higher: more communities.")] = None,
    max_cluster_size: MaxClusterSize = None,
    min_community_size: MinCommunitySize = None,
    summarize: Annotated[
        bool, typer.Option("--summarize/--no-summarize", help="Let the model write summaries, if one is configured.")
    ] = True,
    watch_job: RebuildWatch = True,
) -> None:
    """Complete the graph from the stored extractions, then detect its communities.

    With --documents or --all, extract from these documents first; results on record are reused. Missing entities,
    relationships and vectors are written, and those without a document are removed. A complete graph stays unchanged.
    """
    types = None if entity_types is None else [name for each in entity_types.split(",") if (name := each.strip())]
    selection = Selection(documents or (), everything, extraction, types)
    selection.check()
    extracted = await extract_selected(session, selection, dry_run=dry_run) if selection.wanted else None
    built: dict[str, Any] = {} if extracted is None else {"extraction": extracted}
    built["graph"] = await _complete_graph(session, dry_run=dry_run)
    if communities:
        sizes = {"max_cluster_size": max_cluster_size, "min_community_size": min_community_size}
        asked = rebuild_body(full=full, dry_run=dry_run, summarize=summarize, levels=levels, resolution=resolution, **sizes)
        accepted = await session.client.post("/admin/communities/rebuild", asked)
        if not watch_job:
            built["communities"] = accepted
        else:
            job = await follow(session.client, accepted["job_id"], title="communities")
            _require_success(session, job, built)
            built["communities"] = job["result"] or {}
    if session.output.as_json:
        session.output.result(built)
        return
    _show(session, built)


async def _complete_graph(session: Session, *, dry_run: bool) -> dict[str, Any]:
    """Compare the graph with the catalogue and return counts. Unless it is a dry run, write the missing parts."""
    accepted = await session.client.post("/admin/reconcile", {"repair": not dry_run})
    job = await follow(session.client, accepted["job_id"], title="graph")
    _require_success(session, job, {})
    report: Mapping[str, Any] = job["result"]
    for job_id in report.get("jobs", ()):
        # Unfinished documents continue as jobs of their own.
        await follow(session.client, job_id, title="documents")
    counts = (await session.client.get("/status"))["counts"]
    totals = {name: counts[name] for name in ("entities", "relationships") if name in counts}
    compared = {name: report[name] for name in ("documents", "in_flight", "found", "mended")}
    return {**compared, **totals, "kinds": report["kinds"]}


def _require_success(session: Session, job: Job, built: Mapping[str, Any]) -> None:
    if succeeded(job):
        return
    if session.output.as_json:
        session.output.result({**built, "failed": job})
    else:
        session.output.note(f"error: {failure_reason(job)}")
    raise typer.Exit(1)


def _show(session: Session, built: Mapping[str, Any]) -> None:
    if "extraction" in built:
        extracted = dict(built["extraction"])
        planned, failures = extracted.pop("planned"), extracted.pop("failures", [])
        session.output.show(fields({**planned, **extracted}, title="extraction"))
        for failure in failures:
            session.output.note(f"{failure['document_id']}: {failure['reason']}")
    graph = dict(built["graph"])
    kinds = graph.pop("kinds")
    session.output.show(fields(graph, title="graph"))
    if kinds:
        rows = [[kind, of["found"], of["mended"], of["examples"]] for kind, of in kinds.items()]
        session.output.show("", table(["difference", "#found", "#repaired", "examples"], rows))
    if "communities" in built:
        session.output.show("", fields(built["communities"], title="communities"))
