"""``demo``: ingestion, communities and answers on the example corpus, with timings and checked citations."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import agentic_rag_backend
from agentic_rag_backend.cli.command import AsJson, quiet_logging
from agentic_rag_backend.cli.commands.ingest import show_progress
from agentic_rag_backend.cli.configuration import encoder_hint, load_settings
from agentic_rag_backend.cli.following import failure_reason, follow, succeeded
from agentic_rag_backend.cli.intake import FINE, Processing
from agentic_rag_backend.cli.interruption import run_async
from agentic_rag_backend.cli.output import Output, table, text
from agentic_rag_backend.cli.rendering import show_citations
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest
from agentic_rag_backend.sources.files import Walk
from agentic_rag_backend.sources.reading import SourceReader, survey_sources

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

ASKED = ("q02", "q16", "q34")
"""Ids in questions.jsonl: a fact of one document, a fact from two documents, a theme that no document states."""
_NEEDED = 3


class DemoFailed(AgenticRagError):
    """A stage of the demonstration failed."""

    code = "demo_failed"
    title = "Demonstration failed"


@dataclass(slots=True)
class Timings:
    """Wall-clock seconds by stage, in the order of the stages."""

    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Time a stage."""
        started = time.perf_counter()
        yield
        self.stages[stage] = time.perf_counter() - started


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Documents and the questions to ask of them."""

    folder: Path
    questions: tuple[str, ...]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Folder of documents, or one with corpus/ and questions.jsonl; default: examples/."),
    ] = None,
    question: Annotated[list[str] | None, typer.Option("--question", help="Question instead of the examples' questions.")] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Keep the data here; default: a temporary folder.")] = None,
    json: AsJson = False,
) -> None:
    """Ingest the examples, build graph and communities, and answer three questions from both levels, with citations.

    Without --data-dir, the demo removes its data at the end. It uses a temporary folder or, with DATABASE_URL, a temporary
    tenant in the configured stores.
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
        quiet_logging(settings)
        uncited = run_async(_demonstrate(settings, examples, output, temporary=data_dir is None))
    # Encoders are installed in the data folder of later commands, not in the temporary one.
    if not json and (hint := encoder_hint(load_settings(data_dir=data_dir))) is not None:
        typer.echo(f"\n{hint}")
    if uncited:
        raise DemoFailed(f"{uncited} of {len(examples.questions)} answers have no citation")


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
    chosen = tuple(questions) or _questions(home / "questions.jsonl")
    if not chosen:
        raise InvalidRequest(f"{home} has no questions.jsonl; give at least one --question")
    return Examples(folder=folder, questions=chosen)


def _questions(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    chosen = [row["question"] for row in rows if row.get("id") in ASKED]
    return tuple(chosen or [row["question"] for row in rows[:_NEEDED]])


async def _demonstrate(settings: Settings, examples: Examples, output: Output, *, temporary: bool) -> int:
    """Run the stages and report them. Return the number of answers without a citation."""
    from agentic_rag_backend.cli.session.local import open_application

    timings = Timings()
    with timings.of("all"):
        async with AsyncExitStack() as stack:
            with timings.of("open stores and model"):
                opening = open_application(settings, "demo" if temporary else None, work=True, temporary=temporary)
                container, client = await stack.enter_async_context(opening)
            await _ingest(container, client, examples, timings)
            await _build_communities(client, timings)
            answers = []
            for number, question in enumerate(examples.questions, 1):
                with timings.of(f"answer {number}"):
                    answer = await client.post("/search/dual-level", {"query": question})
                await check_quotes(container, client, answer["citations"])
                answers.append(answer)
                if not output.as_json:
                    _show(output, number, answer)
            counts = (await client.get("/status"))["counts"]
    _report(output, answers, counts, timings)
    return sum(1 for answer in answers if not answer["citations"])


async def _ingest(container: Container, client: Client, examples: Examples, timings: Timings) -> None:
    walk = Walk([str(examples.folder)])
    with timings.of("ingest"):
        results = await show_progress(client, SourceReader(walk), Processing(), extent=survey_sources(walk, None))
    if not results.fine:
        first = results.failures[0]
        reason = (first.error or {}).get("message", first.state)
        failed = results.documents - sum(results.counts[state] for state in FINE)
        raise DemoFailed(f"{failed} of {results.documents} documents were not ingested; the first, {first.key}: {reason}")
    # The stages of many documents overlap, so only the sum of the other stages is known.
    stats = getattr(container.embedder, "stats", None)
    if stats is not None:
        embedding_s = stats.busy_s
        timings.stages["  of it embedding"] = embedding_s
        timings.stages["  of it text, graph, writing"] = max(0.0, timings.stages["ingest"] - embedding_s)


async def _build_communities(client: Client, timings: Timings) -> None:
    with timings.of("communities"):
        accepted = await client.post("/admin/communities/rebuild", {"mode": "full"})
        job = await follow(client, accepted["job_id"], title="communities")
    if not succeeded(job):
        raise DemoFailed(f"the communities were not built: {failure_reason(job)}")


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


def _show(output: Output, number: int, answer: Mapping[str, Any]) -> None:
    output.show(text(f"\nQuestion {number}: {answer['query']}", "bold cyan"))
    output.show(text(answer["synthesized_answer"] or ""))
    themes = ", ".join(theme["name"] for theme in answer["high_level_results"][:_NEEDED])
    weights = answer["weights"]
    output.show(
        f"confidence {answer['confidence']:.2f} · {len(answer['low_level_results'])} passages × {weights['low']:.1f}"
        f" · {len(answer['high_level_results'])} themes × {weights['high']:.1f}{': ' + themes if themes else ''}",
        style="dim",
    )
    if answer["fallback_used"]:
        output.show(f"fallback: {answer['fallback_reason']}", style="yellow")
    show_citations(output, answer["citations"], chunk_ids=False)  # they are new in each run


def _report(output: Output, answers: Sequence[Mapping[str, Any]], counts: Mapping[str, int], timings: Timings) -> None:
    if output.as_json:
        rounded = {stage.strip(): round(took, 3) for stage, took in timings.stages.items()}
        output.result({"counts": counts, "answers": answers, "timings_s": rounded})
        return
    output.show("", table(["stored", "#number"], counts.items()))
    output.show("", table(["stage", "#seconds"], [[stage, f"{took:.2f}"] for stage, took in timings.stages.items()]))
