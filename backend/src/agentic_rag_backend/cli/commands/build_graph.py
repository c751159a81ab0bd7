"""``build-graph``: completes the knowledge graph of a tenant and detects its communities."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import EVERYTHING, Session
from agentic_rag_backend.cli.commands.documents import find_document_id
from agentic_rag_backend.cli.commands.themes import CommunityOptions, WatchRebuild, request_rebuild
from agentic_rag_backend.cli.following import (
    Job,
    JobFollower,
    explain_failure,
    follow_job,
    is_successful,
    poll_jobs,
    require_success,
)
from agentic_rag_backend.cli.intake import cost_of_chunks
from agentic_rag_backend.cli.options import drop_unset, split_names
from agentic_rag_backend.cli.output import fields, table
from agentic_rag_backend.cli.progress import ProgressDisplay
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound, StoreUnavailable, Unauthenticated

AT_ONCE = 16
"""Documents that are extracted at the same time."""
FAILURES = 100
_READABLE = ("ready", "partial")


@dataclass(frozen=True, kw_only=True)
class ExtractionOptions:
    """The documents to extract from, and how. Neither ``documents`` nor ``everything``: none."""

    documents: Annotated[
        list[str] | None,
        typer.Option("--documents", metavar="ID", help="Extract from this document again, by id or key. Repeat it for several."),
    ] = None
    everything: Annotated[bool, typer.Option("--all", help="Extract from all documents again.")] = False
    extraction: Annotated[
        str | None,
        typer.Option("--extraction", help="Method of extraction: rules, llm, rules+llm or graphiti; default: EXTRACTION."),
    ] = None
    entity_types: Annotated[
        str | None,
        typer.Option("--entity-types", metavar="T,…", help="Replace the entity types of the tenant's ontology first."),
    ] = None

    @property
    def is_empty(self) -> bool:
        """Whether no document is to be extracted."""
        return not self.everything and not self.documents

    def check_combination(self) -> None:
        """Raise `InvalidRequest` for options that contradict one another."""
        if self.everything and self.documents:
            raise InvalidRequest("give --documents or --all, not both")
        if self.is_empty and (self.extraction is not None or self.entity_types is not None):
            raise InvalidRequest("--extraction and --entity-types need --documents ID or --all")
        if self.entity_types is not None and not split_names(self.entity_types):
            raise InvalidRequest("--entity-types names no type")


async def build_graph(
    session: Session,
    *,
    selection: ExtractionOptions,
    full: Annotated[bool, typer.Option("--full", help="Do not start from the current communities.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count differences and estimate costs; change nothing.")] = False,
    communities: Annotated[
        bool, typer.Option("--communities/--no-communities", help="Detect communities when the graph is complete.")
    ] = True,
    options: CommunityOptions,
    watch_job: WatchRebuild = True,
) -> None:
    """Complete the graph from the stored extractions, then detect its communities.

    With --documents or --all, extract from these documents first; results on record are reused. Missing entities,
    relationships and vectors are written, and those without a document are removed. A complete graph stays unchanged.
    """
    selection.check_combination()
    extraction = None if selection.is_empty else await _extract_selection(session, selection, dry_run=dry_run)
    steps = {**drop_unset(extraction=extraction), "graph": await _complete_graph(session, dry_run=dry_run)}
    if communities:
        accepted = await request_rebuild(session, "communities", full=full, dry_run=dry_run, **asdict(options))
        if watch_job:
            job = await follow_job(session.client, accepted["job_id"], title="communities")
            _require_success(session, job, steps)
            accepted = job["result"] or {}
        steps["communities"] = accepted
    if session.output.as_json:
        session.output.result(steps)
    else:
        _show_steps(session, steps)


async def _extract_selection(session: Session, selection: ExtractionOptions, *, dry_run: bool) -> dict[str, Any]:
    """Extract documents again, with a progress bar. Return counts. A dry run only estimates the cost."""
    if selection.entity_types is not None and not dry_run:
        await _set_entity_types(session, split_names(selection.entity_types))
    documents = await _select_documents(session, selection)
    chunks = sum(document["chunk_count"] for document in documents)
    models: Mapping[str, Any] = (await session.client.get("/status"))["models"]
    method = selection.extraction or models["extraction"]
    cost = cost_of_chunks(chunks, method) if method != "rules" and models["extraction_model"] else cost_of_chunks(0)
    plan = {
        "documents": len(documents),
        "chunks": chunks,
        "extraction": method,
        "model_calls": cost.calls,
        "tokens_read": cost.tokens_read,
        "tokens_written": cost.tokens_written,
    }
    if cost.calls:
        session.output.note(
            f"extraction {method!r} asks {models['extraction_model']} about the chunks: at most {cost.calls:,} calls, which read "
            f"about {cost.tokens_read:,} and write about {cost.tokens_written:,} tokens; replies on record are not paid again"
        )
    if dry_run or not documents:
        return {"planned": plan}
    return {"planned": plan, **await _extract_documents(session, documents, method)}


async def _set_entity_types(session: Session, names: Sequence[str]) -> None:
    """Replace the entity types of the tenant's ontology. Types that stay keep their descriptions."""
    ontology = await session.client.get("/ontology")
    described = {entity_type["name"]: entity_type for entity_type in ontology["entity_types"]}
    ontology["entity_types"] = [described.get(name, {"name": name}) for name in names]
    del ontology["source"]
    await session.client.request("PUT", "/ontology", json=ontology)


async def _select_documents(session: Session, selection: ExtractionOptions) -> list[dict[str, Any]]:
    if selection.everything:
        documents = await session.client.every("/documents", limit=EVERYTHING)
        return [document for document in documents if document["state"] in _READABLE]
    ids = dict.fromkeys([await find_document_id(session.client, document) for document in selection.documents or ()])
    return [await session.client.get(f"/documents/{document_id}") for document_id in ids]


async def _extract_documents(session: Session, documents: Sequence[Mapping[str, Any]], method: str) -> dict[str, Any]:
    states: Counter[str] = Counter()
    failures: list[dict[str, str]] = []
    queue = iter(documents)

    async def work(follower: JobFollower) -> None:
        for document in queue:
            state, reason = await _extract_document(session, follower, str(document["id"]), method)
            states[state] += 1
            if reason and len(failures) < FAILURES:
                failures.append({"document_id": str(document["id"]), "reason": reason})
            display.update(f"extraction: {str(document['title'])[:40]}", completed=states.total())

    session.client.wait_for_restarts()
    with ProgressDisplay("extraction", total=len(documents)) as display:
        async with poll_jobs(session.client) as follower:
            await asyncio.gather(*(work(follower) for _ in range(min(AT_ONCE, len(documents)))))
    return {**states, "failures": failures}


async def _extract_document(session: Session, follower: JobFollower, document_id: str, method: str) -> tuple[str, str]:
    """Return the state of a document's job, and why it did not succeed."""
    try:
        accepted = await session.client.post(f"/documents/{document_id}/extract", {"extraction": method})
    except (StoreUnavailable, Unauthenticated):
        raise
    except NotFound:
        return "deleted", ""
    except AgenticRagError as error:
        return "refused", error.message
    job = await follower.wait_for(accepted["job_id"])
    return str(job["state"]), "" if is_successful(job) else explain_failure(job)


async def _complete_graph(session: Session, *, dry_run: bool) -> dict[str, Any]:
    """Compare the graph with the catalogue and return counts. Unless it is a dry run, write the missing parts."""
    accepted = await session.client.post("/admin/reconcile", {"repair": not dry_run})
    job = await follow_job(session.client, accepted["job_id"], title="graph")
    _require_success(session, job, {})
    report: Mapping[str, Any] = job["result"]
    for job_id in report.get("jobs", ()):
        # Unfinished documents continue as jobs of their own.
        await follow_job(session.client, job_id, title="documents")
    counts = (await session.client.get("/status"))["counts"]
    totals = {name: counts[name] for name in ("entities", "relationships") if name in counts}
    compared = {name: report[name] for name in ("documents", "in_flight", "found", "mended")}
    return {**compared, **totals, "kinds": report["kinds"]}


def _require_success(session: Session, job: Job, steps: Mapping[str, Any]) -> None:
    if session.output.as_json and not is_successful(job):
        session.output.result({**steps, "failed": job})
    require_success(session.output, job)


def _show_steps(session: Session, steps: Mapping[str, Any]) -> None:
    if "extraction" in steps:
        extraction = dict(steps["extraction"])
        plan, failures = extraction.pop("planned"), extraction.pop("failures", [])
        session.output.show(fields({**plan, **extraction}, title="extraction"))
        for failure in failures:
            session.output.note(f"{failure['document_id']}: {failure['reason']}")
    graph = dict(steps["graph"])
    kinds = graph.pop("kinds")
    session.output.show(fields(graph, title="graph"))
    if kinds:
        rows = [[kind, tally["found"], tally["mended"], tally["examples"]] for kind, tally in kinds.items()]
        session.output.show("", table(["difference", "#found", "#repaired", "examples"], rows))
    if "communities" in steps:
        session.output.show("", fields(steps["communities"], title="communities"))
