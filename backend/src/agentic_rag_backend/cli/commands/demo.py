"""``demo``: ingestion, communities and answers on the example corpus, with timings and checked citations."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import agentic_rag_backend
from agentic_rag_backend.cli.command import AsJson, quiet_logging
from agentic_rag_backend.cli.commands.ingest import show_progress
from agentic_rag_backend.cli.configuration import load_settings, suggest_encoder
from agentic_rag_backend.cli.following import explain_failure, follow_job, is_successful
from agentic_rag_backend.cli.intake import FINE, Processing
from agentic_rag_backend.cli.output import Output, count_of, table, text
from agentic_rag_backend.cli.progress import run_async
from agentic_rag_backend.cli.rendering import show_citations
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest
from agentic_rag_backend.sources.files import Walk
from agentic_rag_backend.sources.reading import SourceReader, survey_sources

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

QUESTION_IDS = ("q02", "q16", "q34")
"""Ids in questions.jsonl: a fact of one document, a fact from two documents, a theme that no document states."""
_NEEDED = 3


class DemoFailed(AgenticRagError):
    """A stage of the demonstration failed."""

    code = "demo_failed"
    title = "Demonstration failed"


Timings = dict[str, float]
"""Wall-clock seconds by stage, in the order of the stages."""


@contextmanager
def measure_stage(timings: Timings, stage: str) -> Iterator[None]:
    """Time a stage."""
    start_s = time.perf_counter()
    yield
    timings[stage] = time.perf_counter() - start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Documents and the questions to ask of them."""

    folder: Path
    questions: tuple[str, ...]


def run_demo(
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Folder of documents, or one with corpus/ and questions.jsonl; default: examples/."),
    ] = None,
    question: Annotated[list[str] | None, typer.Option("--question", help="Question instead of the examples' questions.")] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Keep the data here; default: a temporary folder.")] = None,
    open_console: Annotated[
        bool, typer.Option("--open", help="Then serve the data until Ctrl-C, and open the console in a browser.")
    ] = False,
    port: Annotated[int | None, typer.Option("--port", help="Port of --open; default: PORT (8000); 0: a free one.")] = None,
    json: AsJson = False,
) -> None:
    """Ingest the examples, build graph and communities, and answer three questions from both levels, with citations.

    Without --data-dir, the demo removes its data at the end. It uses a temporary folder or, with DATABASE_URL, a temporary
    tenant in the configured stores. With --open, it serves them first, on this machine only.
    """
    examples = find_examples(corpus, question or [])
    output = Output(as_json=json)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-demo-", ignore_cleanup_errors=True) as temporary:
        settings = load_settings(
            data_dir=data_dir or Path(temporary), dual_level_retrieval_enabled=True, community_auto_rebuild=False
        )
        if data_dir is None and settings.database_url is None:
            # The catalogue is removed with the folder. Data on a server would remain without an owner.
            settings = settings.model_copy(update={"vector_store": "edge", "graph_store": "sqlite", "blob_url": None})
        if open_console:
            settings = _settings_to_serve(settings, port)
        quiet_logging(settings)
        uncited = run_async(_run_stages(settings, examples, output, temporary=data_dir is None and not open_console))
        if open_console:
            _serve_console(settings, output)
    # Encoders are installed in the data folder of later commands, not in the temporary one.
    if not json and (hint := suggest_encoder(load_settings(data_dir=data_dir))) is not None:
        typer.echo(f"\n{hint}")
    if uncited:
        raise DemoFailed(f"{uncited} of {len(examples.questions)} answers have no citation")


def _settings_to_serve(settings: Settings, port: int | None) -> Settings:
    """Return the settings of a server on this machine only.

    Raises:
        InvalidRequest: the catalogue is on a database server, where the demo's data would stay.
    """
    if settings.database_url is not None:
        raise InvalidRequest("--open serves a folder of this machine: unset DATABASE_URL, or run 'agentic-rag serve'")
    served = {"host": "127.0.0.1"} if port is None else {"host": "127.0.0.1", "port": port}
    return settings.model_copy(update=served)


def _serve_console(settings: Settings, output: Output) -> None:
    """Serve the demo's data until a signal. Open the console if this machine has a screen."""
    from agentic_rag_backend.cli.operations.serve import start_server
    from agentic_rag_backend.telemetry.event_loop import WatchedLoop

    def show_address(url: str) -> None:
        address = f"{url}/console/"
        if not output.as_json:
            typer.echo(f"\nthe console is at {address}; it asks for the key in that file; Ctrl-C ends the server")
        if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            webbrowser.open(address)

    run_async(start_server(settings, output, show=show_address), loop=WatchedLoop)


def find_examples(corpus: Path | None, questions: Sequence[str]) -> Examples:
    """Return the documents and questions to use.

    Raises:
        InvalidRequest: there are no documents or no questions.
    """
    checkout = Path(agentic_rag_backend.__file__).resolve().parents[3] / "examples"
    home = corpus or next((path for path in (checkout, Path("examples")) if path.is_dir()), None)
    if home is None:
        raise InvalidRequest("this installation has no examples folder; name a folder of documents with --corpus")
    if not home.is_dir():
        raise InvalidRequest(f"--corpus: the folder {str(home)!r} does not exist")
    folder = home / "corpus" if (home / "corpus").is_dir() else home
    texts = tuple(questions) or _read_questions(home / "questions.jsonl")
    if not texts:
        raise InvalidRequest(f"{home} has no questions.jsonl; give at least one --question")
    return Examples(folder=folder, questions=texts)


def _read_questions(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    selection = [row["question"] for row in rows if row.get("id") in QUESTION_IDS]
    return tuple(selection or [row["question"] for row in rows[:_NEEDED]])


async def _run_stages(settings: Settings, examples: Examples, output: Output, *, temporary: bool) -> int:
    """Run the stages and report them. Return the number of answers without a citation."""
    from agentic_rag_backend.cli.session.local import open_application

    timings: Timings = {}
    with measure_stage(timings, "all"):
        async with AsyncExitStack() as stack:
            with measure_stage(timings, "open stores and model"):
                opening = open_application(settings, "demo" if temporary else None, work=True, temporary=temporary)
                container, client = await stack.enter_async_context(opening)
            await _ingest_documents(container, client, examples, timings)
            await _build_communities(client, timings)
            answers = []
            for number, question in enumerate(examples.questions, 1):
                with measure_stage(timings, f"answer {number}"):
                    answer = await client.post("/search/dual-level", {"query": question})
                await check_quotes(container, client, answer["citations"])
                answers.append(answer)
                if not output.as_json:
                    _show_answer(output, number, answer)
            counts = (await client.get("/status"))["counts"]
    _show_report(output, answers, counts, timings)
    return sum(1 for answer in answers if not answer["citations"])


async def _ingest_documents(container: Container, client: Client, examples: Examples, timings: Timings) -> None:
    walk = Walk([str(examples.folder)])
    with measure_stage(timings, "ingest"):
        results = await show_progress(client, SourceReader(walk), Processing(), extent=survey_sources(walk, None))
    if not results.fine:
        failure = results.failures[0]
        reason = (failure.error or {}).get("message", failure.state)
        failures = results.documents - sum(results.counts[state] for state in FINE)
        raise DemoFailed(f"{failures} of {results.documents} documents were not ingested; the first, {failure.key}: {reason}")
    # The stages of many documents overlap, so only the sum of the other stages is known.
    stats = getattr(container.embedder, "stats", None)
    if stats is not None:
        embedding_s = stats.busy_s
        timings["  of it embedding"] = embedding_s
        timings["  of it text, graph, writing"] = max(0.0, timings["ingest"] - embedding_s)


async def _build_communities(client: Client, timings: Timings) -> None:
    with measure_stage(timings, "communities"):
        accepted = await client.post("/admin/communities/rebuild", {"mode": "full"})
        job = await follow_job(client, accepted["job_id"], title="communities")
    if not is_successful(job):
        raise DemoFailed(f"the communities were not built: {explain_failure(job)}")


async def check_quotes(container: Container, client: Client, citations: Sequence[Mapping[str, Any]]) -> None:
    """Compare each quote with the text of its document at its offsets.

    Raises:
        DemoFailed: they differ.
    """
    from agentic_rag_backend.domain.tenant import TenantId

    tenant = TenantId((await client.get("/tenants/me"))["id"])
    for citation in citations:
        document_id = citation["document_id"]
        document = await container.catalogue.documents.document(tenant, document_id)
        version = await container.catalogue.documents.version(tenant, document_id, document.current_version)
        if version.text[citation["start_char"] : citation["end_char"]] != citation["quote"]:
            raise DemoFailed(f"citation [{citation['marker']}] differs from the text of {document.title!r} at its offsets")


def _show_answer(output: Output, number: int, answer: Mapping[str, Any]) -> None:
    output.show(text(f"\nQuestion {number}: {answer['query']}", "bold cyan"))
    output.show(text(answer["synthesized_answer"] or ""))
    themes = answer["high_level_results"]
    names = ", ".join([*(f"“{theme['name']}”" for theme in themes[:_NEEDED]), *(["…"] if themes[_NEEDED:] else [])])
    weights = answer["weights"]
    output.show(
        f"\nConfidence {answer['confidence']:.2f}, from {count_of(len(answer['low_level_results']), 'passage')}"
        f" (weight {weights['low']:.1f}) and {count_of(len(themes), 'theme')} (weight {weights['high']:.1f})"
        f"{': ' + names if names else ''}",
        style="dim",
    )
    if answer["fallback_used"]:
        output.show(f"fallback: {answer['fallback_reason']}", style="yellow")
    show_citations(output, answer["citations"], chunk_ids=False)  # they are new in each run


def _show_report(output: Output, answers: Sequence[Mapping[str, Any]], counts: Mapping[str, int], timings: Timings) -> None:
    if output.as_json:
        timings_s = {stage.strip(): round(seconds, 3) for stage, seconds in timings.items()}
        output.result({"counts": counts, "answers": answers, "timings_s": timings_s})
        return
    output.show("", table(["stored", "#number"], counts.items()))
    output.show("", table(["stage", "#seconds"], [[stage, f"{seconds:.2f}"] for stage, seconds in timings.items()]))
