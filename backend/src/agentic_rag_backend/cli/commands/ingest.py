"""``ingest``: uploads files, folders, patterns and rows of tables, and reports the result of each."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.chunking import (
    STRATEGY_HELP,
    ChunkSize,
    Overlap,
    ParentSize,
    QuestionsOption,
    QuestionsPerChunk,
    Unit,
    given,
    questions_given,
)
from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.following import Job, failure_reason, follow, succeeded
from agentic_rag_backend.cli.intake import Intake, Item, Processing, Results
from agentic_rag_backend.cli.interruption import Interrupted
from agentic_rag_backend.cli.model_cost import extraction_cost
from agentic_rag_backend.cli.output import Output, count_of, table
from agentic_rag_backend.cli.progress import ProgressDisplay
from agentic_rag_backend.domain.media_types import is_plain_text
from agentic_rag_backend.errors import AgenticRagError, Forbidden, InvalidRequest
from agentic_rag_backend.sources.files import Walk
from agentic_rag_backend.sources.reading import Extent, SourceDocument, SourceReader, survey_sources
from agentic_rag_backend.sources.table_rows import Columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.sources.duplicates import DuplicateFinder

DUPLICATES = 100
"""Maximum near duplicates in the list. All are counted."""
_LISTED = 50
_CHANGED = frozenset({"ready", "partial"})
_READABLE = _CHANGED | {"unchanged"}
_COMPARED_CHUNKS = 2_000
"""Chunks of a parsed document that are compared with other texts."""
CURRENT = "communities are current: no document has changed since they were built"
OFF = "communities were not rebuilt: COMMUNITY_AUTO_REBUILD is off; 'agentic-rag communities rebuild' rebuilds them"
FORBIDDEN = (
    "communities were not rebuilt: the key lacks the scope 'admin'. The server rebuilds them once no document has changed for "
    "COMMUNITY_REBUILD_DELAY_S (default: 30 s)"
)
_AGAIN = "repeat the command to continue; finished documents are not processed again"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSelection:
    """The documents to read, from the options."""

    walk: Walk
    columns: Columns | None
    extent: Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """The finished job that rebuilt the communities, or the reason why there is none."""

    job: Job | None = None
    omitted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """Summary of the command."""

    results: Results
    extent: Extent
    finder: DuplicateFinder | None
    rebuild: Rebuild = Rebuild()

    @property
    def fine(self) -> bool:
        """Whether everything succeeded."""
        return self.results.fine and (self.rebuild.job is None or succeeded(self.rebuild.job))

    def summary(self) -> dict[str, int]:
        """Return the counts."""
        counts = {"documents": self.results.documents, "skipped": self.extent.skipped, **self.results.counts}
        return counts if self.finder is None else {**counts, "duplicates": self.finder.found}

    def ending(self) -> dict[str, Any]:
        """Return the members that follow the documents in JSON."""
        pairs = [] if self.finder is None else [asdict(pair) for pair in self.finder.pairs]
        job = self.rebuild.job
        communities = None if job is None else {"state": job["state"], "result": job["result"]}
        skipped = [{"path": key, "reason": _skipped_reason(key)} for key in self.extent.skipped_keys]
        return {"duplicates": pairs, "skipped": skipped, "summary": self.summary(), "communities": communities}


async def show_progress(
    client: Client,
    documents: Iterable[SourceDocument],
    processing: Processing,
    *,
    extent: Extent,
    wait: bool = True,
    on_ended: Callable[[Item], None] = lambda _: None,
) -> Results:
    """Submit ``documents`` and show on stderr how many have ended, their share of the bytes, and the stage of a running job.

    Args:
        extent: the files that the documents come from.
    """
    count = size = 0
    stage = "queued"
    with ProgressDisplay("ingest", total=extent.size or None, counted=False) as display:

        def show() -> None:
            done = f"{count_of(count, 'document')} of {count_of(extent.files, 'file')}"
            display.update(f"ingest: {done}, {stage}", completed=size)

        def polled(job: Job) -> None:
            nonlocal stage
            if job["state"] == "running":
                stage = job["stage"] or stage
            show()

        def ended(document: SourceDocument, item: Item) -> None:
            nonlocal count, size
            count, size = count + 1, size + document.size
            on_ended(item)
            show()

        return await Intake(client, processing, wait=wait, on_ended=ended, on_poll=polled).take(documents)


async def rebuild_communities(client: Client, *, changed: bool) -> Rebuild:
    """Rebuild the communities now, instead of after the delay of the automatic rebuild.

    A process that ingests by itself has ended by then, and a user of a server wants to search immediately. If no document
    ``changed``, communities are rebuilt only if an earlier command was interrupted before their rebuild.
    """
    flags = {flag["name"]: flag["value"] for flag in await client.get("/features")}
    if not changed and not (await client.get("/status"))["communities"]["stale"]:
        return Rebuild(omitted=CURRENT)
    if not flags.get("COMMUNITY_AUTO_REBUILD"):
        return Rebuild(omitted=OFF)
    try:
        accepted = await client.post("/admin/communities/rebuild")
    except Forbidden:
        return Rebuild(omitted=FORBIDDEN)
    return Rebuild(job=await follow(client, accepted["job_id"], title="communities"))


def select_sources(paths: Sequence[str], options: Mapping[str, Any]) -> SourceSelection:
    """Return the documents that ``paths`` and the options of `ingest` name.

    Raises:
        InvalidRequest: a path names nothing, keys collide, a table lacks a column, or options contradict one another.
    """
    columns = _columns(options)
    key = options.get("key")
    walk = Walk(paths, key=key, by_rows=columns is not None)
    extent = survey_sources(walk, columns)
    if key is not None and extent.by_rows:
        raise InvalidRequest("--key is for a single document; use --key-column for the rows of a table")
    return SourceSelection(walk=walk, columns=columns, extent=extent)


def _columns(options: Mapping[str, Any]) -> Columns | None:
    text, delimiter = options.get("text_column"), options.get("delimiter")
    names = [name.strip() for name in (options.get("metadata_columns") or "").split(",")]
    metadata = tuple(dict.fromkeys(name for name in names if name))
    if delimiter is not None:
        delimiter = "\t" if delimiter in ("tab", "\\t") else delimiter
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise InvalidRequest(f"--delimiter must be one character or 'tab', not a quote or line end; got {delimiter[:20]!r}")
    if text is None:
        table_options = ("key_column", "title_column", "metadata_columns", "delimiter")
        alone = next((name for name in table_options if options.get(name) is not None), None)
        if alone is not None:
            raise InvalidRequest(f"--{alone.replace('_', '-')} is for tables, which require --text-column")
        return None
    return Columns(
        text=text, key=options.get("key_column"), title=options.get("title_column"), metadata=metadata, delimiter=delimiter
    )


def _check_paths(context: typer.Context, paths: list[str]) -> list[str]:
    """Refuse paths that name nothing before any store is opened. Options are parsed before arguments."""
    select_sources(paths, context.params)
    return paths


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "ingest", work=True)(ingest)


_TABLES = "Tables: rows of .jsonl, .csv and .tsv"
Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", callback=_check_paths, help="Files, folders (recursively) or quoted patterns.")
]
Key = Annotated[str | None, typer.Option("--key", help="Key of a single document; default: its path below the folder.")]
WatchJob = Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until the documents are ready.")]
ReportDuplicates = Annotated[
    bool, typer.Option("--report-duplicates/--no-report-duplicates", help="Report duplicates and near duplicates.")
]
JsonLines = Annotated[
    bool, typer.Option("--json-lines", help="Print one line of JSON for each finished document, and one for the summary.")
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text-column",
        help="Column with the text: each row is a document. Default: a table is one document.",
        rich_help_panel=_TABLES,
    ),
]
KeyColumn = Annotated[
    str | None, typer.Option("--key-column", help="Column with the key; default: FILE#ROW.", rich_help_panel=_TABLES)
]
TitleColumn = Annotated[str | None, typer.Option("--title-column", help="Column with the title.", rich_help_panel=_TABLES)]
MetadataColumns = Annotated[
    str | None,
    typer.Option(
        "--metadata-columns", metavar="A,B,…", help="Columns for metadata; others are ignored.", rich_help_panel=_TABLES
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="Delimiter of CSV: a character or 'tab'; default: detected.", rich_help_panel=_TABLES),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of the command. ``wait`` is false if the jobs only start; ``counts`` are the finished documents by state."""

    session: Session
    wait: bool
    json_lines: bool
    counts: Counter[str] = field(default_factory=Counter)

    async def submit(self, selection: SourceSelection, processing: Processing, finder: DuplicateFinder | None) -> IngestReport:
        """Submit the documents, and rebuild the communities if any of them is new."""
        client = self.session.client
        documents = SourceReader(selection.walk, selection.columns, finder)
        extent, rebuild = selection.extent, Rebuild()
        await self._announce_cost(extent, processing.extraction)
        try:
            results = await show_progress(client, documents, processing, extent=extent, wait=self.wait, on_ended=self._ended)
            if self.wait and finder is not None:
                await _compare_parsed(client, results.first, finder)
            if self.wait and results.counts.keys() & _READABLE:
                rebuild = await rebuild_communities(client, changed=bool(results.counts.keys() & _CHANGED))
        except AgenticRagError:
            self.session.output.note(f"stopped after {_count_text(self.counts)}; {_AGAIN}")
            raise
        except asyncio.CancelledError:
            raise Interrupted(f"interrupted after {_count_text(self.counts)}; {_describe_others(client)}; {_AGAIN}") from None
        return IngestReport(results=results, extent=extent, finder=finder, rebuild=rebuild)

    def show(self, report: IngestReport) -> None:
        """Print the report, and notes about jobs that this command does not wait for."""
        output, in_process = self.session.output, self.session.client.in_process
        if self.json_lines:
            _print_line(report.ending())
        else:
            _show(output, report)
        if not self.wait and in_process:
            output.note("queued; the jobs run with 'agentic-rag serve' or the next 'agentic-rag ingest' on this DATA_DIR")
        if report.rebuild.omitted is not None and not (self.json_lines or output.as_json):
            output.note(report.rebuild.omitted)

    async def _announce_cost(self, extent: Extent, method: str | None) -> None:
        """Print what extraction by a language model will cost, if it will ask one."""
        models = (await self.session.client.get("/status"))["models"]
        used = method or models["extraction"]
        if used != "rules":
            cost = extraction_cost(extent.files, extent.size, used)
            self.session.output.note(
                f"extraction {used!r} asks {models['extraction_model']} about the chunks: about {cost.calls:,} calls, which "
                f"read {cost.tokens_read:,} and write {cost.tokens_written:,} tokens; --extraction rules asks no model"
            )

    def _ended(self, item: Item) -> None:
        self.counts[item.state] += 1
        if self.json_lines:
            _print_item(item)


async def ingest(
    session: Session,
    paths: Paths,
    key: Key = None,
    watch_job: WatchJob = True,
    chunk_size: ChunkSize = None,
    overlap: Overlap = None,
    unit: Unit = None,
    parent_size: ParentSize = None,
    chunking: Annotated[str | None, typer.Option("--chunking", help=STRATEGY_HELP)] = None,
    extraction: Annotated[
        str | None,
        typer.Option(
            "--extraction", help="Method of extraction: rules, llm, rules+llm or graphiti. Default: as the server is configured."
        ),
    ] = None,
    questions: QuestionsOption = None,
    questions_per_chunk: QuestionsPerChunk = None,
    attachments: Annotated[
        str | None, typer.Option("--attachments", help="Attachments of messages: documents (default), sections or ignore.")
    ] = None,
    text_column: TextColumn = None,
    key_column: KeyColumn = None,
    title_column: TitleColumn = None,
    metadata_columns: MetadataColumns = None,
    delimiter: Delimiter = None,
    report_duplicates: ReportDuplicates = True,
    json_lines: JsonLines = False,
) -> None:
    """Upload documents and wait until they can be searched."""
    tables = {"text_column": text_column, "key_column": key_column, "title_column": title_column, "delimiter": delimiter}
    selection = select_sources(paths, {"key": key, "metadata_columns": metadata_columns, **tables})
    chosen = given(strategy=chunking, chunk_size=chunk_size, overlap=overlap, unit=unit, parent_size=parent_size)
    question_options = questions_given(questions, questions_per_chunk)
    processing = Processing(chunking=chosen, extraction=extraction, questions=question_options, attachments=attachments)
    run = _Run(session=session, wait=watch_job, json_lines=json_lines)
    report = await run.submit(selection, processing, _make_finder() if report_duplicates else None)
    run.show(report)
    if not report.fine:
        raise typer.Exit(1)


async def _compare_parsed(client: Client, items: Sequence[Item], finder: DuplicateFinder) -> None:
    """Compare the texts that parsers made, such as those of a PDF and its DOCX, with all other texts."""
    for item in items:
        if item.row is None and item.document_id is not None and item.state in _READABLE and not is_plain_text(item.path):
            chunks = await client.every(f"/documents/{item.document_id}/chunks", limit=_COMPARED_CHUNKS)
            finder.add_document(item.key, _join_chunks(chunks).encode("utf-8", errors="surrogatepass"))


def _join_chunks(chunks: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of chunks in reading order, without the text that two of them share."""
    parts, end = [], 0
    for chunk in chunks:
        start = chunk["location"]["start_char"]
        parts.append(chunk["content"][max(0, end - start) :])
        end = max(end, chunk["location"]["end_char"])
    return "\n".join(parts)


def _describe_others(client: Client) -> str:
    """Return a message about the submitted documents that are not ready."""
    if client.in_process:
        return f"other documents continue with the next command on {client.where} that runs jobs, or 'agentic-rag serve'"
    return f"{client.where} continues with the other documents ('agentic-rag jobs list')"


def _make_finder() -> DuplicateFinder:
    from agentic_rag_backend.sources.duplicates import DuplicateFinder  # imports numpy, which other commands do not need

    return DuplicateFinder(expected=DUPLICATES)


def _skipped_reason(key: str) -> str:
    suffix = PurePath(key).suffix.lower()
    return f"{suffix} is not a supported type" if suffix else "the name has no suffix that tells its type"


def _print_item(item: Item) -> None:
    _print_line(asdict(item))


def _print_line(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, default=str, allow_nan=False) + "\n")
    sys.stdout.flush()


def _count_text(counts: Counter[str]) -> str:
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return count_of(counts.total(), "document") + (f": {states}" if states else "")


def _show(output: Output, report: IngestReport) -> None:
    results, finder, rebuilt = report.results, report.finder, report.rebuild.job
    if output.as_json:
        documents = {"documents": results.first, "failures": results.failures}
        output.result({**{name: [asdict(item) for item in items] for name, items in documents.items()}, **report.ending()})
        return
    shown = (results.first if results.documents <= _LISTED else results.failures)[:_LISTED]
    if shown:
        rows = [[item.key, item.state, item.error["message"] if item.error else item.document_id] for item in shown]
        output.show(table(["document", "state", "id or reason"], rows))
    _show_warnings(output, results.first)
    if finder is not None and finder.pairs:
        alike = [[pair.key, pair.of, "the same" if pair.exact else f"{pair.similarity:.0%}"] for pair in finder.pairs[:_LISTED]]
        output.show("", table(["document", "duplicate of", "#similarity"], alike))
        hidden = finder.found - len(alike)
        output.show(f"{finder.found} near duplicates{f', {hidden} of them not shown' if hidden else ''}")
    skipped_text = f"; {count_of(report.extent.skipped, 'file')} skipped" if report.extent.skipped else ""
    if report.extent.skipped_keys:
        skipped = report.extent.skipped_keys[:_LISTED]
        output.show("", table(["skipped file", "reason"], [[key, _skipped_reason(key)] for key in skipped]))
    output.show(f"{_count_text(results.counts)}{skipped_text}")
    if rebuilt is not None:
        reason = "" if succeeded(rebuilt) else f": {failure_reason(rebuilt)}"
        output.show(f"communities: {rebuilt['state']}{reason}")


def _show_warnings(output: Output, items: Sequence[Item]) -> None:
    rows = [[item.key, warning] for item in items for warning in item.warnings]
    if rows:
        output.show("", table(["document", "warning"], rows[:_LISTED]))
    if len(rows) > _LISTED:
        output.show(f"{len(rows) - _LISTED} more warnings are in the metadata of the documents")
