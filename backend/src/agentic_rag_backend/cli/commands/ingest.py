"""``ingest``: uploads files, folders, patterns and rows of tables, and reports the result of each."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.following import Job, explain_failure, follow_job, is_successful
from agentic_rag_backend.cli.intake import Intake, Item, Processing, Results, extraction_cost
from agentic_rag_backend.cli.options import CHUNKING_HELP, ChunkSizes, QuestionOptions, split_names
from agentic_rag_backend.cli.output import Output, count_of, table
from agentic_rag_backend.cli.progress import Interrupted, ProgressDisplay
from agentic_rag_backend.domain.media_types import is_plain_text
from agentic_rag_backend.errors import AgenticRagError, Forbidden, InvalidRequest
from agentic_rag_backend.sources.files import Walk
from agentic_rag_backend.sources.reading import Extent, SourceDocument, SourceReader, survey_sources
from agentic_rag_backend.sources.table_rows import Columns

if TYPE_CHECKING:
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
_PANEL = "Tables: rows of .jsonl, .csv and .tsv"


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Columns of tables whose rows become documents."""

    text_column: Annotated[
        str | None,
        typer.Option(
            "--text-column",
            help="Column with the text: each row is a document. Default: a table is one document.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    key_column: Annotated[
        str | None, typer.Option("--key-column", help="Column with the key; default: FILE#ROW.", rich_help_panel=_PANEL)
    ] = None
    title_column: Annotated[str | None, typer.Option("--title-column", help="Column with the title.", rich_help_panel=_PANEL)] = (
        None
    )
    metadata_columns: Annotated[
        str | None,
        typer.Option(
            "--metadata-columns", metavar="A,B,…", help="Columns for metadata; others are ignored.", rich_help_panel=_PANEL
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", help="Delimiter of CSV: a character or 'tab'; default: detected.", rich_help_panel=_PANEL),
    ] = None

    def read_columns(self) -> Columns | None:
        """Return the columns. None: a table is one document.

        Raises:
            InvalidRequest: the delimiter is not one character, or there is no column of texts.
        """
        delimiter = "\t" if self.delimiter in ("tab", "\\t") else self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise InvalidRequest(f"--delimiter must be one character or 'tab', not a quote or line end; got {delimiter[:20]!r}")
        if self.text_column is None:
            useless = next((name for name, value in asdict(self).items() if value is not None), None)
            if useless is not None:
                raise InvalidRequest(f"--{useless.replace('_', '-')} is for tables, which require --text-column")
            return None
        metadata = tuple(dict.fromkeys(split_names(self.metadata_columns or "")))
        return Columns(
            text=self.text_column, key=self.key_column, title=self.title_column, metadata=metadata, delimiter=delimiter
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSelection:
    """The documents to read, from the options."""

    walk: Walk
    columns: Columns | None
    extent: Extent


def select_sources(paths: Sequence[str], key: str | None, tables: TableOptions) -> SourceSelection:
    """Return the documents that ``paths`` and the options of `ingest` name.

    Raises:
        InvalidRequest: a path names nothing, keys collide, a table lacks a column, or options contradict one another.
    """
    columns = tables.read_columns()
    walk = Walk(paths, key=key, by_rows=columns is not None)
    extent = survey_sources(walk, columns)
    if key is not None and extent.by_rows:
        raise InvalidRequest("--key is for a single document; use --key-column for the rows of a table")
    return SourceSelection(walk=walk, columns=columns, extent=extent)


def _check_paths(context: typer.Context, paths: list[str]) -> list[str]:
    """Refuse paths that name nothing before any store is opened. Options are parsed before arguments."""
    tables = TableOptions(**{option.name: context.params.get(option.name) for option in fields(TableOptions)})
    select_sources(paths, context.params.get("key"), tables)
    return paths


async def ingest_sources(
    session: Session,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", callback=_check_paths, help="Files, folders (recursively) or quoted patterns."),
    ],
    *,
    key: Annotated[
        str | None, typer.Option("--key", help="Key of a single document; default: its path below the folder.")
    ] = None,
    watch_job: Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until the documents are ready.")] = True,
    sizes: ChunkSizes,
    chunking: Annotated[str | None, typer.Option("--chunking", help=CHUNKING_HELP)] = None,
    extraction: Annotated[
        str | None,
        typer.Option(
            "--extraction", help="Method of extraction: rules, llm, rules+llm or graphiti. Default: as the server is configured."
        ),
    ] = None,
    questions: QuestionOptions,
    attachments: Annotated[
        str | None, typer.Option("--attachments", help="Attachments of messages: documents (default), sections or ignore.")
    ] = None,
    tables: TableOptions,
    report_duplicates: Annotated[
        bool, typer.Option("--report-duplicates/--no-report-duplicates", help="Report duplicates and near duplicates.")
    ] = True,
    json_lines: Annotated[
        bool, typer.Option("--json-lines", help="Print one line of JSON for each finished document, and one for the summary.")
    ] = False,
) -> None:
    """Upload documents and wait until they can be searched."""
    ingestion = _Ingestion(
        session=session,
        selection=select_sources(paths, key, tables),
        finder=_create_finder() if report_duplicates else None,
        wait=watch_job,
        json_lines=json_lines,
    )
    processing = Processing(
        chunking=sizes.as_body(chunking), extraction=extraction, questions=questions.as_body(), attachments=attachments
    )
    await ingestion.submit_documents(processing)
    ingestion.show_report()
    if not ingestion.is_successful:
        raise typer.Exit(1)


async def show_progress(
    client: Client,
    documents: Iterable[SourceDocument],
    processing: Processing,
    *,
    extent: Extent,
    results: Results | None = None,
    wait: bool = True,
    on_ended: Callable[[Item], None] = lambda _: None,
) -> Results:
    """Submit ``documents`` and show on stderr how many have ended, their share of the bytes, and the stage of a running job.

    Args:
        extent: the files that the documents come from.
        results: to fill and return.
    """
    results = Results() if results is None else results
    size = 0
    stage = "queued"
    with ProgressDisplay("ingest", total=extent.size or None, counted=False) as display:

        def update_display() -> None:
            progress = f"{count_of(results.documents, 'document')} of {count_of(extent.files, 'file')}"
            display.update(f"ingest: {progress}, {stage}", completed=size)

        def show_stage(job: Job) -> None:
            nonlocal stage
            if job["state"] == "running":
                stage = job["stage"] or stage
            update_display()

        def count_document(document: SourceDocument, item: Item) -> None:
            nonlocal size
            size += document.size
            on_ended(item)
            update_display()

        intake = Intake(client, processing, wait=wait, on_ended=count_document, on_poll=show_stage)
        return await intake.submit_documents(documents, results)


async def rebuild_communities(client: Client, *, changed: bool) -> Job | str:
    """Rebuild the communities now, instead of after the delay of the automatic rebuild. Return the finished job.

    A process that ingests by itself has ended by then, and a user of a server wants to search immediately. If no document
    ``changed``, communities are rebuilt only if an earlier command was interrupted before their rebuild. If they are not
    rebuilt, the reason is returned.
    """
    flags = {flag["name"]: flag["value"] for flag in await client.get("/features")}
    if not changed and not (await client.get("/status"))["communities"]["stale"]:
        return CURRENT
    if not flags.get("COMMUNITY_AUTO_REBUILD"):
        return OFF
    try:
        accepted = await client.post("/admin/communities/rebuild")
    except Forbidden:
        return FORBIDDEN
    return await follow_job(client, accepted["job_id"], title="communities")


@dataclass(slots=True, kw_only=True)
class _Ingestion:
    """One run of the command. ``wait`` is false if the jobs only start."""

    session: Session
    selection: SourceSelection
    finder: DuplicateFinder | None
    wait: bool
    json_lines: bool
    results: Results = field(default_factory=Results)
    rebuild: Job | str | None = None
    """The finished job that rebuilt the communities, or the reason why there is none."""

    async def submit_documents(self, processing: Processing) -> None:
        """Submit the documents, and rebuild the communities if any of them is new."""
        client, extent, results = self.session.client, self.selection.extent, self.results
        documents = SourceReader(self.selection.walk, self.selection.columns, self.finder)
        await self._announce_cost(processing.extraction)
        try:
            await show_progress(
                client, documents, processing, extent=extent, results=results, wait=self.wait, on_ended=self._print_item
            )
            if self.wait and self.finder is not None:
                await _compare_texts(client, results.items, self.finder)
            if self.wait and results.counts.keys() & _READABLE:
                self.rebuild = await rebuild_communities(client, changed=bool(results.counts.keys() & _CHANGED))
        except AgenticRagError:
            self.session.output.note(f"stopped after {_count_states(results.counts)}; {_AGAIN}")
            raise
        except asyncio.CancelledError:
            progress = f"interrupted after {_count_states(results.counts)}; {_describe_unfinished_documents(client)}"
            raise Interrupted(f"{progress}; {_AGAIN}") from None

    @property
    def rebuild_job(self) -> Job | None:
        """The job that rebuilt the communities."""
        return self.rebuild if isinstance(self.rebuild, dict) else None

    @property
    def is_successful(self) -> bool:
        """Whether everything succeeded."""
        return self.results.fine and (self.rebuild_job is None or is_successful(self.rebuild_job))

    def show_report(self) -> None:
        """Print the results, and notes about jobs that this command does not wait for."""
        output = self.session.output
        if self.json_lines:
            _print_line(self._summarize())
        elif output.as_json:
            documents = {"documents": self.results.items, "failures": self.results.failures}
            output.result({name: [asdict(item) for item in items] for name, items in documents.items()} | self._summarize())
        else:
            self._show_tables(output)
        if not self.wait and self.session.client.in_process:
            output.note("queued; the jobs run with 'agentic-rag serve' or the next 'agentic-rag ingest' on this DATA_DIR")
        if isinstance(self.rebuild, str) and not (self.json_lines or output.as_json):
            output.note(self.rebuild)

    async def _announce_cost(self, method: str | None) -> None:
        """Print what extraction by a language model will cost, if it will ask one."""
        models = (await self.session.client.get("/status"))["models"]
        used = method or models["extraction"]
        if used != "rules":
            cost = extraction_cost(self.selection.extent.files, self.selection.extent.size, used)
            self.session.output.note(
                f"extraction {used!r} asks {models['extraction_model']} about the chunks: about {cost.calls:,} calls, which "
                f"read {cost.tokens_read:,} and write {cost.tokens_written:,} tokens; --extraction rules asks no model"
            )

    def _print_item(self, item: Item) -> None:
        if self.json_lines:
            _print_line(asdict(item))

    def _summarize(self) -> dict[str, Any]:
        """Return the members that follow the documents in JSON."""
        extent, finder, job = self.selection.extent, self.finder, self.rebuild_job
        counts = {"documents": self.results.documents, "skipped": extent.skipped, **self.results.counts}
        return {
            "duplicates": [] if finder is None else [asdict(pair) for pair in finder.pairs],
            "skipped": [{"path": key, "reason": _explain_skip(key)} for key in extent.skipped_keys],
            "summary": counts if finder is None else {**counts, "duplicates": finder.found},
            "communities": None if job is None else {"state": job["state"], "result": job["result"]},
        }

    def _show_tables(self, output: Output) -> None:
        results, finder, extent, job = self.results, self.finder, self.selection.extent, self.rebuild_job
        items = (results.items if results.documents <= _LISTED else results.failures)[:_LISTED]
        if items:
            rows = [[item.key, item.state, item.error["message"] if item.error else item.document_id] for item in items]
            output.show(table(["document", "state", "id or reason"], rows))
        warnings = [[item.key, warning] for item in results.items for warning in item.warnings]
        if warnings:
            output.show("", table(["document", "warning"], warnings[:_LISTED]))
        if len(warnings) > _LISTED:
            output.show(f"{len(warnings) - _LISTED} more warnings are in the metadata of the documents")
        if finder is not None and finder.pairs:
            pairs = [
                [pair.key, pair.of, "the same" if pair.exact else f"{pair.similarity:.0%}"] for pair in finder.pairs[:_LISTED]
            ]
            output.show("", table(["document", "duplicate of", "#similarity"], pairs))
            hidden = finder.found - len(pairs)
            output.show(f"{finder.found} near duplicates{f', {hidden} of them not shown' if hidden else ''}")
        if extent.skipped_keys:
            rows = [[key, _explain_skip(key)] for key in extent.skipped_keys[:_LISTED]]
            output.show("", table(["skipped file", "reason"], rows))
        skipped = f"; {count_of(extent.skipped, 'file')} skipped" if extent.skipped else ""
        output.show(f"{_count_states(results.counts)}{skipped}")
        if job is not None:
            reason = "" if is_successful(job) else f": {explain_failure(job)}"
            output.show(f"communities: {job['state']}{reason}")


async def _compare_texts(client: Client, items: Sequence[Item], finder: DuplicateFinder) -> None:
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


def _describe_unfinished_documents(client: Client) -> str:
    """Return a message about the submitted documents that are not ready."""
    if client.in_process:
        return f"other documents continue with the next command on {client.where} that runs jobs, or 'agentic-rag serve'"
    return f"{client.where} continues with the other documents ('agentic-rag jobs list')"


def _create_finder() -> DuplicateFinder:
    from agentic_rag_backend.sources.duplicates import DuplicateFinder  # imports numpy, which other commands do not need

    return DuplicateFinder(max_pairs=DUPLICATES)


def _explain_skip(key: str) -> str:
    suffix = PurePath(key).suffix.lower()
    return f"{suffix} is not a supported type" if suffix else "the name has no suffix that tells its type"


def _print_line(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, default=str, allow_nan=False) + "\n")
    sys.stdout.flush()


def _count_states(counts: Counter[str]) -> str:
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return count_of(counts.total(), "document") + (f": {states}" if states else "")
