"""The first half of an ingestion: parse, chunk, embed, extract. Results are staged in the catalogue, invisible to readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.document import Chunk, DocumentState, DocumentVersion, Failure
from agentic_rag_backend.domain.limits import storable
from agentic_rag_backend.domain.metadata import beside
from agentic_rag_backend.domain.periods import document_date
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.text.languages import ENGLISH, foreign_script_of, language_of
from agentic_rag_backend.errors import AgenticRagError, NotFound, UnreadableDocument, UnsupportedMediaType
from agentic_rag_backend.ingestion.chunk_reading import ChunkReader
from agentic_rag_backend.ingestion.computation import Computation
from agentic_rag_backend.ingestion.metadata import kept
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.questions.asking import Asking, Questioner
from agentic_rag_backend.jobs.runner import CANCELLED, Run, Stopped
from agentic_rag_backend.knowledge.extraction.base import Origin
from agentic_rag_backend.knowledge.extraction.methods import RULES
from agentic_rag_backend.knowledge.model_calls import VersionRecord
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import (
    DocumentCatalogue,
    Enqueue,
    HandOn,
    ModelResultCatalogue,
    PreparedChunk,
    QuestionCatalogue,
    TenantDirectory,
)

MAX_WARNINGS = 10
"""Warnings of a parser that are kept with the document."""
MAX_WARNING_CHARACTERS = 200
MAX_WARNINGS_BYTES = 2048
"""Bytes of these warnings. They leave most of the metadata's 8,192 bytes to the file and its owner."""
LANGUAGE = "language"
"""Metadata key of the language of a document that is not English. The owner's value, and the file's own, take precedence."""
WARNINGS = "warnings"
"""Metadata key of the warnings about a document. The owner's value takes precedence."""
ATTACHMENTS = "attachments"
"""Argument of a job: the number of attachments that become documents, if there are any."""
_PAGE_GROUPS = 8
"""Number of groups whose recorded results are looked up together."""


def superseded(run: Run) -> Stopped:
    """Return the exception that ends the job of a superseded version."""
    return Stopped("superseded", f"version {run.version} was replaced by a newer version, or its document was deleted")


async def fail_version(documents: DocumentCatalogue, run: Run, error: AgenticRagError | Stopped) -> None:
    """Record with the document why its version will not be visible."""
    state = DocumentState.FAILED
    if isinstance(error, UnreadableDocument | UnsupportedMediaType):
        state = DocumentState.UNREADABLE
    elif isinstance(error, Stopped) and error.code == CANCELLED:
        state = DocumentState.CANCELLED
    await documents.fail(
        run.tenant,
        run.document_id,
        run.version,
        state=state,
        failure=Failure(run.stage, error.code, error.message),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The work of ``ingest_v1``. Its last write also enqueues the commit of the job.

    Args:
        enqueue_commit: returns the function that enqueues a job's commit.
        handed_on: called with each job whose commit was enqueued.
    """

    documents: DocumentCatalogue
    tenants: TenantDirectory
    results: ModelResultCatalogue
    blobs: BlobStore
    computation: Computation
    questions: QuestionCatalogue
    questioner: Questioner
    reader: ChunkReader
    enqueue_commit: Callable[[], Enqueue]
    handed_on: Callable[[Run], None]
    group_size: int = 64
    _turns: WeakValueDictionary[tuple[TenantId, str], asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def run(self, run: Run) -> None:
        """Prepare the job's version. Results recorded for any version of the document are reused."""
        await run.until_cancelled(self._run(run))

    async def failed(self, run: Run, error: AgenticRagError | Stopped) -> None:
        """Record the error with the document. Computed results stay recorded."""
        await fail_version(self.documents, run, error)

    async def _run(self, run: Run) -> None:
        try:
            version = await self.documents.begin_processing(run.tenant, run.document_id, run.version)
            if version is None:
                raise superseded(run)
            await self._prepare(run, version)
        except NotFound:
            raise superseded(run) from None
        self.handed_on(run)

    async def _prepare(self, run: Run, version: DocumentVersion) -> None:
        await run.progress("parse", 0, 0)
        # Without an original, use the text that an earlier version was parsed to.
        content = await self._original(run, version) if version.blob_key else version.text
        record = VersionRecord(self.results, run.tenant, run.document_id, run.version)
        document = await self.reader.read(run.tenant, version, content, record=record)
        parsed, chunks = document.parsed, document.chunks
        del content
        # Only then can results be recorded: a text is present if an interrupted attempt parsed it.
        known = bool(version.text) or run.version > 1
        metadata = _metadata(parsed, version)
        await self.documents.save_parsed(
            run.tenant, run.document_id, run.version, text=parsed.text, title=version.title, metadata=metadata
        )
        if parsed.attachments:
            await run.jobs.remember(run.tenant, run.job.id, ATTACHMENTS, parsed.attachments)
        await run.progress("chunk", 0, 0)
        origin = Origin(run.tenant, run.document_id, document_date("", metadata))
        ontology = await self.tenants.ontology(run.tenant)
        computation = self.computation.of(version.options.extraction, ontology, record, origin=origin, code=parsed.code)
        for start in range(0, len(chunks), self.group_size * _PAGE_GROUPS):
            # Waiting for the lock lets this version reuse the results that another version of the document is computing.
            async with self._turn(run):
                await self._prepare_page(run, version, computation, chunks, start, known=known, failures=document.failures)
        if not chunks:
            await self._save(run, (), last=True)

    def _turn(self, run: Run) -> asyncio.Lock:
        return self._turns.setdefault((run.tenant, run.document_id), asyncio.Lock())

    async def _prepare_page(
        self,
        run: Run,
        version: DocumentVersion,
        computation: Computation,
        chunks: Sequence[Chunk],
        start: int,
        *,
        known: bool,
        failures: Sequence[Failure] = (),
    ) -> None:
        title, asking = version.title, self.questioner.asking(version.options.questions)
        page = chunks[start : start + self.group_size * _PAGE_GROUPS]
        recipes = {chunk.id: computation.recipe(title, chunk) for chunk in page}
        held = await self._on_record(run, page, recipes) if known else frozenset()
        if failures:  # the first chunk carries the document's failure, so a result of another version cannot stand for it
            held -= {chunks[0].id}
        # Groups are equal at every attempt, because the result of a chunk may depend on its neighbours.
        for first in range(0, len(page), self.group_size):
            group = page[first : first + self.group_size]
            done = start + first + len(group)
            last = done == len(chunks)
            found = await computation.complete(title, group, recipes, held)
            if found.renewed:
                await self.documents.save_extractions(run.tenant, run.document_id, run.version, found.renewed)
            if found.prepared or last:
                await self._save(run, _with_failures(found.prepared, chunks[0].id, failures), last=last and asking is None)
            if asking is not None:
                await self._ask(run, asking, title, group, known=known)
                if last:
                    await self._save(run, (), last=True)
            if not last:  # after the last write, the commit reports the progress
                await run.progress("embed", done, len(chunks))

    async def _ask(self, run: Run, asking: Asking, title: str, group: Sequence[Chunk], *, known: bool) -> None:
        """Record the questions of staged chunks. Questions of any version of the document are reused."""
        recipes = {chunk.id: self.questioner.recipe(asking, title, chunk) for chunk in group}
        held = await self.questions.reuse(run.tenant, run.document_id, run.version, recipes) if known else frozenset()
        missing = [chunk for chunk in group if chunk.id not in held]
        first = group[0].id
        if asking.failure is not None and group[0].ordinal == 0 and first in held:
            missing.insert(0, group[0])  # the first chunk carries the failure of the whole document
        if not missing:
            return
        record = VersionRecord(self.results, run.tenant, run.document_id, run.version)
        asked = await self.questioner.ask(asking, title, missing, record)
        if asking.failure is not None and group[0].ordinal == 0:
            asked[first] = replace(asked[first], failure=replace(asking.failure, chunk_id=first))
        await self.questions.save(run.tenant, run.document_id, run.version, asked)
        await run.saved()

    async def _original(self, run: Run, version: DocumentVersion) -> bytes:
        try:
            return await self.blobs.get(run.tenant, version.blob_key)
        except NotFound:
            if await self.documents.begin_processing(run.tenant, run.document_id, run.version):
                raise UnreadableDocument("the document's original is not in the blob store") from None
            raise

    async def _on_record(self, run: Run, page: Sequence[Chunk], recipes: Mapping[str, str]) -> frozenset[str]:
        wanted = [(chunk, recipes[chunk.id]) for chunk in page]
        return await self.documents.reuse(run.tenant, run.document_id, run.version, wanted)

    async def _save(self, run: Run, prepared: Sequence[PreparedChunk], *, last: bool) -> None:
        hand_on = HandOn(run.job, self.enqueue_commit()) if last else None
        await self.documents.save_prepared(run.tenant, run.document_id, run.version, prepared, hand_on=hand_on)
        await run.saved()


def _metadata(parsed: ParsedDocument, version: DocumentVersion) -> dict[str, Any]:
    """Return the metadata of a version: what its file gives, as far as it fits, and the owner's values, which win."""
    owned, fields = version.metadata, _facts(parsed, version)
    found = beside(owned, fields)
    if found != fields:
        cut = ", ".join(name for name, value in fields.items() if found.get(name) != value)
        notice = f"metadata of the file that is too long is shortened or left out: {cut}"
        found = beside(owned, _facts(replace(parsed, warnings=(notice, *parsed.warnings)), version))
    # The owner of a document uses null to remove a value that the file itself sets.
    return {name: value for name, value in (found | dict(owned)).items() if value is not None}


def _facts(parsed: ParsedDocument, version: DocumentVersion) -> dict[str, Any]:
    """Return the valid metadata that a file gives, its language unless it is English, and its first warnings."""
    language = language_of(parsed.text) if parsed.language is None else None
    fields = {**({LANGUAGE: language} if language not in (None, ENGLISH) else {}), **kept(parsed.metadata)}
    warnings = list(parsed.warnings)
    script = foreign_script_of(parsed.text)
    if script is not None and version.options.extraction == RULES:
        warnings.insert(0, f"the rules of extraction do not read {script} script well; extraction 'llm' does")
    if not warnings:
        return fields
    shown = list_warnings(warnings)
    # First, so that they are kept if not everything fits, and above a value of the file with this name.
    return {WARNINGS: shown} | fields | {WARNINGS: shown}


def list_warnings(warnings: Sequence[str]) -> list[str]:
    """Return the warnings that a document keeps: the first ones, shortened, and the number of the others."""
    shown, room = [], MAX_WARNINGS_BYTES
    for warning in warnings[:MAX_WARNINGS]:
        short = storable(warning if len(warning) <= MAX_WARNING_CHARACTERS else f"{warning[: MAX_WARNING_CHARACTERS - 1]}…")
        room -= len(short.encode())
        if room < 0:
            break
        shown.append(short)
    if len(shown) < len(warnings):
        shown[MAX_WARNINGS - 1 :] = [f"{len(warnings) - min(len(shown), MAX_WARNINGS - 1)} more warnings are not kept"]
    return shown


def _with_failures(prepared: Sequence[PreparedChunk], first: str, failures: Sequence[Failure]) -> Sequence[PreparedChunk]:
    """Return the chunks, the document's first one with a failure of the whole document, unless it has its own."""
    if not failures:
        return prepared
    return [replace(each, failure=each.failure or failures[0]) if each.chunk.id == first else each for each in prepared]
