"""``tune``: proposals of values for searches, their evidence, acceptance and rollback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, join_path
from agentic_rag_backend.cli.commands.evaluation.question_sets import find_dataset
from agentic_rag_backend.cli.following import explain_failure, follow_job
from agentic_rag_backend.cli.options import drop_unset, split_names
from agentic_rag_backend.cli.output import Output, fields, format_time, table
from agentic_rag_backend.cli.resources import Resource
from agentic_rag_backend.errors import AgenticRagError

ProposalId = Annotated[str, typer.Argument(metavar="PROPOSAL_ID")]
PROPOSALS = Resource(
    path="/admin/tuning",
    columns={
        "id": "id",
        "status": "status",
        "metric": lambda item: f"{item['metric']}@{item['k']}",
        "parameters": "parameters",
        "created": lambda item: format_time(item["created_at"]),
    },
    droppable=("parameters",),
    empty="no proposals",
    argument=ProposalId,
)


async def propose_values(
    session: Session,
    *,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", metavar="ID|NAME|FILE", help="Dataset to learn from; repeatable; default: all."),
    ] = None,
    feedback: Annotated[bool, typer.Option("--feedback", help="Also learn from feedback.")] = False,
    parameters: Annotated[
        str | None,
        typer.Option("--parameters", metavar="NAME,…", help="level_weights, hybrid_weights, auto_strategies, confidence."),
    ] = None,
    metric: Annotated[str, typer.Option("--metric", help="recall, all_gold, ndcg or mrr.")] = "ndcg",
    k: Annotated[int, typer.Option("--k", help="Results of each question that count.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Another seed splits the cases into other halves.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the expected work, and start nothing.")] = False,
) -> None:
    """Learn values for searches on half of the cases, and check them on the other half. Nothing changes before 'tune accept'."""
    datasets = [await find_dataset(session.client, name) for name in dataset] if dataset else None
    body = {"feedback": feedback, "metric": metric, "k": k, "seed": seed, "dry_run": dry_run}
    body |= drop_unset(datasets=datasets, parameters=split_names(parameters) if parameters is not None else None)
    accepted = await session.client.post(PROPOSALS.path, body)
    if dry_run:
        session.output.present(accepted["estimate"])
        return
    job = await follow_job(session.client, accepted["job_id"], title="tuning")
    if job["state"] != "succeeded":
        raise AgenticRagError(f"the proposal {accepted['proposal_id']} was not made: {explain_failure(job)}")
    session.output.present(await session.client.get(join_path(PROPOSALS.path, accepted["proposal_id"])), show_proposal)


async def accept_proposal(session: Session, proposal: ProposalId) -> None:
    """Use the proposed values in every search of the tenant, from the next request on."""
    accepted = await session.client.post(f"{join_path(PROPOSALS.path, proposal)}/accept")
    session.output.present(accepted, _show_change)


async def roll_back_proposal(session: Session, proposal: ProposalId) -> None:
    """Restore the values that an accepted proposal replaced, from the next request on."""
    restored = await session.client.post(f"{join_path(PROPOSALS.path, proposal)}/rollback")
    session.output.present(restored, _show_change)


def _show_change(output: Output, proposal: Mapping[str, Any]) -> None:
    output.show(fields({name: proposal[name] for name in ("id", "status", "values")}))
    for warning in proposal["warnings"]:
        output.show(f"note: {warning}", style="yellow")


def show_proposal(output: Output, proposal: Mapping[str, Any]) -> None:
    """Print a proposal with its evidence."""
    from agentic_rag_backend.evaluation.reports.run_reports import format_estimate

    result = proposal["result"]
    about = {name: proposal[name] for name in ("id", "status", "values", "error") if proposal[name] is not None}
    if result is None:
        output.show(fields(about))
        return
    output.show(fields({**about, "values_before": result["values_before"], "metric": result["metric"], "cases": result["cases"]}))
    for warning in result["warnings"]:
        output.show(f"note: {warning}", style="yellow")
    rows = [
        [
            of["parameter"],
            half,
            *(format_estimate(of[half][name]) for name in ("before", "after")),
            format_estimate(of[half]["difference"], sign="+"),
            f"{of[half]['difference']['p']:.4f}",
        ]
        for of in result["parameters"]
        for half in ("learn", "check")
        if "difference" in of[half]
    ]
    if rows:
        output.show("", table(["parameter", "half", "#before", "#after", "#difference", "#p"], rows))
    output.show("")
    for of in result["parameters"]:
        output.show(f"{of['parameter']}: {of['reason']}")
