"""``evaluate`` and ``benchmark``: datasets of questions, runs of configurations over them, comparisons, gates and reports."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import LocalSession, Session, join_path
from agentic_rag_backend.cli.commands.evaluation.question_sets import DATASETS, find_dataset, post_dataset
from agentic_rag_backend.cli.commands.ingest import SourceSelection, TableOptions, select_sources, show_progress
from agentic_rag_backend.cli.following import explain_failure, follow_job
from agentic_rag_backend.cli.intake import Processing
from agentic_rag_backend.cli.options import split_names
from agentic_rag_backend.cli.output import Output, count_of, fields, table
from agentic_rag_backend.cli.resources import Resource
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.evaluation.reports.gates import Gate

RUNS = Resource(
    path="/evaluation/runs",
    columns={
        "id": "id",
        "state": "state",
        "#done": "done",
        "#total": "total",
        "configurations": lambda run: [configuration["name"] for configuration in run["configurations"]],
    },
    droppable=("configurations",),
    argument=Annotated[str, typer.Argument(metavar="RUN_ID")],
)
_SUFFIXES = (".html", ".md", ".json")

DatasetOption = Annotated[
    str, typer.Option("--dataset", metavar="ID|NAME|FILE", help="Dataset; a JSON Lines or CSV file is uploaded first.")
]
StrategiesOption = Annotated[
    str | None,
    typer.Option("--strategies", metavar="NAME,…", help="Strategies to compare; the first is the baseline."),
]
ConfigurationsOption = Annotated[
    Path | None,
    typer.Option("--configurations", metavar="FILE", help="JSON list of configurations: name, strategy, options, rerank, …"),
]
ResultsOption = Annotated[int, typer.Option("--k", min=1, max=100, help="Results of each question.")]
GatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with 1 if an interval is beyond the bound: 'recall@5 < baseline - 0.02' or 'correct < 0.6'; repeatable.",
    ),
]
BaselineOption = Annotated[
    str | None, typer.Option("--baseline", metavar="RUN_ID", help="Compare with this run instead of the first configuration.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the report: .html, .md or .json, by the suffix.")
]
JudgeOption = Annotated[
    bool,
    typer.Option("--judge", help="Have the language model compare the answers of the first configuration with the others."),
]
JudgeModelOption = Annotated[
    str | None, typer.Option("--judge-model", metavar="NAME", help="Have this model compare the answers.")
]
RetrievalOnly = Annotated[bool, typer.Option("--retrieval-only", help="Measure results only, and write no answers.")]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What a command does with a run's result."""

    fail_if: GatesOption = None
    out: OutOption = None

    def read_gates(self) -> list[Gate]:
        """Return the gates, and refuse a report of another kind, before anything is asked.

        Raises:
            InvalidRequest: a condition has another form, or the report's suffix is unknown.
        """
        from agentic_rag_backend.evaluation.reports.gates import parse_gate

        if self.out is not None and self.out.suffix not in _SUFFIXES:
            raise InvalidRequest(f"--out must end with {', '.join(_SUFFIXES)}; got {self.out.name!r}")
        if self.out is not None and not self.out.parent.is_dir():
            raise InvalidRequest(f"--out: there is no folder {str(self.out.parent)!r}")
        return [parse_gate(text) for text in self.fail_if or ()]

    def finish(self, output: Output, run: Mapping[str, Any], gates: Sequence[Gate]) -> None:
        """Print a run, write its report, and check the gates.

        Raises:
            Exit: a gate fails; the reason is on stderr.
            InvalidRequest: the run has no such metric.
        """
        from agentic_rag_backend.evaluation.reports.gates import check_gate

        output.present(run, _show_run)
        if self.out is not None:
            write_report(self.out, run)
            output.note(f"report: {self.out}")
        failures = [failure for gate in gates for failure in check_gate(gate, run["result"])]
        for failure in failures:
            output.note(f"gate failed: {failure}")
        if failures:
            raise typer.Exit(1)


async def run_evaluation(
    session: Session,
    *,
    dataset: DatasetOption,
    strategies: StrategiesOption = None,
    configurations: ConfigurationsOption = None,
    k: ResultsOption = 5,
    retrieval_only: RetrievalOnly = False,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Budget: stop after this many tokens.")] = None,
    judge: JudgeOption = False,
    judge_model: JudgeModelOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the expected work, and start nothing.")] = False,
    baseline: BaselineOption = None,
    report: ReportOptions,
) -> None:
    """Ask every question of a dataset in every configuration, and measure results and answers."""
    gates = report.read_gates()
    chosen = _read_configurations(strategies, configurations)
    body = {
        "dataset": await find_dataset(session.client, dataset),
        "configurations": chosen,
        "k": k,
        "metrics": _RETRIEVAL if retrieval_only else None,
        "max_tokens": max_tokens,
        "judge": {"model": judge_model} if judge or judge_model is not None else None,
        "dry_run": dry_run,
    }
    accepted = await session.client.post(RUNS.path, body)
    if dry_run:
        session.output.present(accepted["estimate"])
        return
    report.finish(session.output, await _finish_run(session.client, accepted, baseline), gates)


async def _finish_run(client: Client, accepted: Mapping[str, Any], baseline: str | None) -> Any:
    """Follow a run to its end, and return it.

    Raises:
        AgenticRagError: it failed or was cancelled.
    """
    job = await follow_job(client, accepted["job_id"], title="evaluation")
    if job["state"] not in ("succeeded", "partial"):
        raise AgenticRagError(f"the run {accepted['run_id']} did not finish: {explain_failure(job)}")
    return await client.get(join_path(RUNS.path, accepted["run_id"]), baseline=baseline)


_RETRIEVAL = ["recall", "all_gold", "ndcg", "mrr"]


async def compare_runs(
    session: Session,
    run: Annotated[str, typer.Argument(metavar="RUN_ID")],
    baseline: Annotated[
        str | None, typer.Argument(metavar="BASELINE_RUN_ID", help="Default: the run's first configuration.")
    ] = None,
    *,
    report: ReportOptions,
) -> None:
    """Show the differences of a run from its first configuration, or from another run on the same cases."""
    gates = report.read_gates()
    report.finish(session.output, await _get_result(session.client, run, baseline), gates)


async def report_run(
    session: Session,
    run: Annotated[str, typer.Argument(metavar="RUN_ID")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write: .html, .md or .json.")],
    baseline: BaselineOption = None,
) -> None:
    """Write the report of a run: an HTML page with plots, Markdown, or JSON."""
    options = ReportOptions(out=out)
    options.read_gates()
    write_report(out, await _get_result(session.client, run, baseline))
    session.output.present({"run": run, "report": str(out)})


def write_report(out: Path, run: Mapping[str, Any]) -> None:
    """Write the report of a run in the format of the file's suffix."""
    from agentic_rag_backend.evaluation.reports.run_reports import format_html, format_markdown

    writers: Mapping[str, Callable[[Mapping[str, Any]], str]] = {".html": format_html, ".md": format_markdown}
    write = writers.get(out.suffix)
    out.write_text(write(run["result"]) if write is not None else json.dumps(run, indent=2), encoding="utf-8")


async def benchmark_strategies(
    session: LocalSession,
    *,
    data: Annotated[
        list[str], typer.Option("--data", metavar="FILE", help="Documents: files, folders, or tables with --text-column.")
    ],
    tables: TableOptions,
    strategies: Annotated[
        str, typer.Option("--strategies", metavar="NAME,…", help="Strategies to compare; the first is the baseline.")
    ] = "dense,hybrid,graph",
    k: ResultsOption = 5,
    questions: Annotated[
        Path | None,
        typer.Option("--questions", exists=True, dir_okay=False, help="JSON Lines or CSV; default: generated questions."),
    ] = None,
    count: Annotated[int, typer.Option("--count", help="Number of generated questions.")] = 60,
    retrieval_only: RetrievalOnly = False,
    report: ReportOptions,
) -> None:
    """Compare strategies on documents of your own, in a temporary folder. Nothing of it stays."""
    from agentic_rag_backend.cli.session.local import open_application

    gates, selection = report.read_gates(), select_sources(data, None, tables)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-benchmark-", ignore_cleanup_errors=True) as folder:
        own_stores = {"vector_store": "edge", "graph_store": "sqlite", "blob_url": None, "database_url": None}
        flags = {"dual_level_retrieval_enabled": True, "community_auto_rebuild": False}
        settings = session.settings.model_copy(update={"data_dir": Path(folder), **own_stores, **flags})
        async with open_application(settings, "benchmark", work=True, temporary=True) as (_, client):
            await _fill_tenant(session, client, selection)
            body = {
                "dataset": await _benchmark_dataset(client, questions, count),
                "configurations": _read_configurations(strategies, None),
                "k": k,
                "metrics": _RETRIEVAL if retrieval_only else None,
            }
            run = await _finish_run(client, await client.post(RUNS.path, body), None)
    report.finish(session.output, run, gates)


async def _fill_tenant(session: LocalSession, client: Client, selection: SourceSelection) -> None:
    """Ingest the documents, and build the communities."""
    from agentic_rag_backend.sources.reading import SourceReader

    reader = SourceReader(selection.walk, selection.columns)
    results = await show_progress(client, reader, Processing(), extent=selection.extent)
    session.output.note(f"{count_of(results.documents, 'document')}, {len(results.failures)} failed")
    rebuilt = await client.post("/admin/communities/rebuild", {"mode": "full"})
    await follow_job(client, rebuilt["job_id"], title="communities")


async def _benchmark_dataset(client: Client, questions: Path | None, count: int) -> str:
    if questions is not None:
        return str((await post_dataset(client, questions, questions.stem))["id"])
    dataset = await client.post(DATASETS.path, {"name": "generated", "generate": {"count": count}})
    job = await follow_job(client, dataset["job_id"], title="questions")
    if not (job["result"] or {}).get("cases"):
        raise AgenticRagError(f"no questions were generated: {explain_failure(job)}; name a dataset with --questions")
    return str(dataset["id"])


def _read_configurations(strategies: str | None, file: Path | None) -> list[dict[str, Any]]:
    """Return the configurations that the options name.

    Raises:
        InvalidRequest: neither or both options are set, or the file is not a JSON list of objects.
    """
    if (strategies is None) is (file is None):
        raise InvalidRequest("give either --strategies or --configurations")
    if file is None:
        return [{"name": name, "strategy": name} for name in dict.fromkeys(split_names(strategies or ""))]
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"--configurations: {str(file)!r} cannot be read as JSON: {error}") from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidRequest(f"--configurations: {str(file)!r} must have a JSON list of objects")
    return value


async def _get_result(client: Client, run_id: str, baseline: str | None) -> Any:
    run = await client.get(join_path(RUNS.path, run_id), baseline=baseline)
    if run["result"] is None:
        raise InvalidRequest(f"run {run_id!r} is {run['state']}; it has no result")
    return run


def _show_run(output: Output, run: Mapping[str, Any]) -> None:
    from agentic_rag_backend.evaluation.reports.intervals import is_significant
    from agentic_rag_backend.evaluation.reports.run_reports import (
        describe_judge,
        format_estimate,
        list_comparisons,
        list_figures,
        list_metrics,
        list_notes,
    )

    result = run["result"]
    configurations = result["configurations"]
    output.show(fields({"run": run["id"], "dataset": result["dataset"]["name"], "cases": result["cases"], "k": result["k"]}))
    for note in list_notes(result):
        output.show(f"note: {note}", style="yellow")
    rows = [[name, *(format_estimate(of["metrics"].get(name)) for of in configurations)] for name in list_metrics(configurations)]
    rows += [[name, *values] for name, values in list_figures(result)]
    output.show("", table(["metric", *(f"#{of['name']}" for of in configurations)], rows))
    header, *rows = list_comparisons(result) or [[]]
    if rows:
        output.show("", table(header, rows, title=describe_judge(result)))
    rows = [
        [row["metric"], row["configuration"], format_estimate(row, sign="+"), f"{row['p']:.4f}"]
        for row in result["differences"]
        if is_significant(row)
    ]
    if rows:
        title = f"differences from {result['differences'][0]['baseline']} that are more than chance"
        output.show("", table(["metric", "configuration", "#difference", "#p"], rows, title=title))
    elif result["differences"]:
        output.show("", f"no difference from {result['differences'][0]['baseline']} is more than chance")
