"""The first half of an ingestion: parse, chunk, embed, extract. Results are staged in the catalogue, invisible to readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from agentic_rag_backend.documents.metadata_checks import keep_valid_fields
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import Chunk, DocumentState, DocumentVersion, Failure
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.quota import QuotaName
from agentic_rag_backend.domain.size_limits import make_storable, merge_file_fields
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, NotFound, UnreadableDocument, UnsupportedMediaType
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.ingestion.prepare.chunk_reading import ChunkReader
from agentic_rag_backend.ingestion.prepare.computation import Completed, Computation
from agentic_rag_backend.ingestion.questions.asking import Asking, Questioner
from agentic_rag_backend.jobs.runner import CANCELLED, JobStopped, Run, Step
from agentic_rag_backend.knowledge.extraction.base import Origin
from agentic_rag_backend.knowledge.extraction.methods import RULES
from agentic_rag_backend.knowledge.model_calls import VersionRecord
from agentic_rag_backend.language.languages import ENGLISH, foreign_script_of, language_of
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import (
    BegunJob,
    DocumentCatalogue,
    Enqueue,
    HandOn,
    ModelResultCatalogue,
    ParsedVersion,
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


def superseded_error(run: Run) -> JobStopped:
    """Return the exception that ends the job of a superseded version."""
    return JobStopped("superseded", f"version {run.version} was replaced by a newer version, or its document was deleted")


async def fail_version(documents: DocumentCatalogue, run: Run, error: AgenticRagError | JobStopped) -> None:
    """Record with the document why its version will not be visible."""
    state = DocumentState.FAILED
    if isinstance(error, UnreadableDocument | UnsupportedMediaType):
        state = DocumentState.UNREADABLE
    elif isinstance(error, JobStopped) and error.code == CANCELLED:
        state = DocumentState.CANCELLED
    await documents.fail(
        run.tenant,
        run.document_id,
        run.version,
        state=state,
        failure=Failure(run.stage, error.code, error.message),
    )


@dataclass(slots=True, kw_only=True)
class _Work:
    """A version in preparation.

    Args:
        known: whether results for it may be on record.
        parsed: its text, until it is recorded.
        enqueues: whether its last write enqueues the commit.
        by_rules: what the rules extract from all chunks, if they have read them.
    """

    run: Run
    version: DocumentVersion
    chunks: Sequence[Chunk]
    computation: Computation
    asking: Asking | None
    failures: Sequence[Failure]
    known: bool
    parsed: ParsedVersion | None
    enqueues: bool
    by_rules: Sequence[Extraction] | None

    @property
    def costs_money(self) -> bool:
        """Whether results of language models are recorded while it is prepared. A later attempt must look for them."""
        return self.asking is not None or self.version.options.extraction != RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The first part of ``ingest_v1``. The last write of a large document also enqueues the commit of the job.

    A large document has several groups of chunks. After a crash during its commit, it is not prepared again. A small document
    is, from the results on record. In exchange, it needs no second workflow.

    Args:
        enqueue_commit: returns the function that enqueues a job's commit.
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
    group_size: int = 64
    _turns: WeakValueDictionary[tuple[TenantId, str], asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def make_step(self, begun_job: BegunJob | None, hand_on: Callable[[Run, bool], None]) -> Step:
        """Return the step that prepares a job's version. Results recorded for any version of the document are reused.

        Args:
            begun_job: what the first try of the step need not read.
            hand_on: called with the prepared job, and whether a workflow of its own commits it.
        """
        waiting_jobs = [begun_job]

        async def run(run: Run) -> None:
            enqueued = await run.run_until_cancellation(self._run_job(run, waiting_jobs.pop() if waiting_jobs else None))
            hand_on(run, enqueued)

        return run

    async def record_failure(self, run: Run, error: AgenticRagError | JobStopped) -> None:
        """Record the error with the document. Computed results stay recorded."""
        await fail_version(self.documents, run, error)

    async def _run_job(self, run: Run, begun_job: BegunJob | None) -> bool:
        """Prepare the job's version. Return whether the commit of the job was enqueued."""
        try:
            if begun_job is None:
                version = await self.documents.begin_processing(run.tenant, run.document_id, run.version)
                begun_job = BegunJob(run.job, version, await self.tenants.ontology(run.tenant))
            if begun_job.version is None:
                raise superseded_error(run)
            return await self._prepare_version(run, begun_job.version, begun_job.ontology)
        except NotFound:
            raise superseded_error(run) from None

    async def _prepare_version(self, run: Run, version: DocumentVersion, ontology: Ontology | None) -> bool:
        await run.report_progress("parse", 0, 0)
        # Without an original, use the text that an earlier version was parsed to.
        content = await self._read_original(run, version) if version.blob_key else version.text
        record = VersionRecord(self.results, run.tenant, run.document_id, run.version, run.pause_attempts)
        document = await self.reader.read(run.tenant, version, content, record=record)
        parsed, chunks = document.parsed, document.chunks
        del content
        metadata = _merge_metadata(parsed, version)
        if parsed.attachments:
            await run.jobs.remember(run.tenant, run.job.id, ATTACHMENTS, parsed.attachments)
        origin = Origin(run.tenant, run.document_id, document_date("", metadata))
        work = _Work(
            run=run,
            version=version,
            chunks=chunks,
            computation=self.computation.make_computation(
                version.options.extraction, ontology, record, origin=origin, code=parsed.code
            ),
            asking=self.questioner.asking(version.options.questions),
            by_rules=document.extractions if len(chunks) <= self.group_size else None,
            failures=document.failures,
            # Only then can results be recorded: a text is present if an interrupted attempt parsed it.
            known=bool(version.text) or run.version > 1,
            parsed=ParsedVersion(parsed.text, version.title, metadata),
            enqueues=len(chunks) > self.group_size or bool(parsed.attachments),
        )
        limits = current_actor().effective_limits
        if limits is not None and QuotaName.CHUNKS in limits.of_tenant:  # before anything is paid for
            await self.documents.reserve_chunks(run.tenant, run.document_id, run.version, chunks=len(chunks))
        await self._prepare_chunks(work)
        return work.enqueues

    async def _prepare_chunks(self, work: _Work) -> None:
        run, chunks = work.run, work.chunks
        if work.known or work.costs_money or len(chunks) > self.group_size:
            await self._save_text(work)
        await run.report_progress("chunk", 0, 0)
        for start in range(0, len(chunks), self.group_size * _PAGE_GROUPS):
            # Waiting for the lock lets this version reuse the results that another version of the document is computing.
            async with self._turn_lock(run):
                await self._prepare_page(work, start)
        if not chunks:
            await self._save_chunks(work, (), is_last=True)

    async def _save_text(self, work: _Work) -> None:
        """Record the text, unless it is recorded already. The text of a small document is recorded with its chunks."""
        if work.parsed is not None:
            parsed, work.parsed = work.parsed, None
            await self.documents.save_parsed(work.run.tenant, work.run.document_id, work.run.version, parsed)

    def _turn_lock(self, run: Run) -> asyncio.Lock:
        return self._turns.setdefault((run.tenant, run.document_id), asyncio.Lock())

    async def _prepare_page(self, work: _Work, start: int) -> None:
        run, title, asking = work.run, work.version.title, work.asking
        page = work.chunks[start : start + self.group_size * _PAGE_GROUPS]
        recipes = {chunk.id: work.computation.make_recipe(title, chunk) for chunk in page}
        recorded_ids = await self._on_record(run, page, recipes) if work.known else frozenset()
        if work.failures:  # the first chunk carries the document's failure, so a result of another version cannot stand for it
            recorded_ids -= {work.chunks[0].id}
        # Groups are equal at every attempt, because the result of a chunk may depend on its neighbours.
        for offset in range(0, len(page), self.group_size):
            group = page[offset : offset + self.group_size]
            count_done = start + offset + len(group)
            is_last = count_done == len(work.chunks)
            completed = await self._complete_group(work, group, recipes, recorded_ids)
            if completed.renewed:
                await self.documents.save_extractions(run.tenant, run.document_id, run.version, completed.renewed)
            if completed.prepared or is_last:
                await self._save_chunks(work, completed.prepared, is_last=is_last and asking is None)
            if asking is not None:
                await self._ask_questions(run, asking, title, group, may_reuse=work.known)
                if is_last:
                    await self._save_chunks(work, (), is_last=True)
            if not is_last:  # after the last write, the commit reports the progress
                await run.report_progress("embed", count_done, len(work.chunks))

    async def _complete_group(
        self, work: _Work, group: Sequence[Chunk], recipes: Mapping[str, str], recorded_ids: frozenset[str]
    ) -> Completed:
        try:
            return await work.computation.complete(work.version.title, group, recipes, recorded_ids, work.by_rules)
        except AgenticRagError:
            await self._save_text(work)  # a document whose models fail is readable nevertheless
            raise

    async def _ask_questions(self, run: Run, asking: Asking, title: str, group: Sequence[Chunk], *, may_reuse: bool) -> None:
        """Record the questions of staged chunks. Questions of any version of the document are reused."""
        recipes = {chunk.id: self.questioner.recipe(asking, title, chunk) for chunk in group}
        recorded_ids = await self.questions.reuse(run.tenant, run.document_id, run.version, recipes) if may_reuse else frozenset()
        missing_chunks = [chunk for chunk in group if chunk.id not in recorded_ids]
        first_id = group[0].id
        if asking.failure is not None and group[0].ordinal == 0 and first_id in recorded_ids:
            missing_chunks.insert(0, group[0])  # the first chunk carries the failure of the whole document
        if not missing_chunks:
            return
        record = VersionRecord(self.results, run.tenant, run.document_id, run.version, run.pause_attempts)
        answers = await self.questioner.ask(asking, title, missing_chunks, record)
        if asking.failure is not None and group[0].ordinal == 0:
            answers[first_id] = replace(answers[first_id], failure=replace(asking.failure, chunk_id=first_id))
        await self.questions.save(run.tenant, run.document_id, run.version, answers)
        await run.count_save()

    async def _read_original(self, run: Run, version: DocumentVersion) -> bytes:
        try:
            return await self.blobs.get(run.tenant, version.blob_key)
        except NotFound:
            if await self.documents.begin_processing(run.tenant, run.document_id, run.version):
                raise UnreadableDocument("the document's original is not in the blob store") from None
            raise

    async def _on_record(self, run: Run, page: Sequence[Chunk], recipes: Mapping[str, str]) -> frozenset[str]:
        chunk_recipes = [(chunk, recipes[chunk.id]) for chunk in page]
        return await self.documents.reuse(run.tenant, run.document_id, run.version, chunk_recipes)

    async def _save_chunks(self, work: _Work, prepared: Sequence[PreparedChunk], *, is_last: bool) -> None:
        run, parsed, work.parsed = work.run, work.parsed, None
        hand_on = HandOn(run.job, self.enqueue_commit()) if is_last and work.enqueues else None
        with_failures = _with_failures(prepared, work.chunks, work.failures)
        if with_failures or parsed is not None or hand_on is not None:
            await self.documents.save_prepared(
                run.tenant, run.document_id, run.version, with_failures, parsed=parsed, hand_on=hand_on
            )
        # Results that each attempt computes again are no progress: a document that kills its process would never be given up.
        if hand_on is not None or any(item.complete for item in with_failures):
            await run.count_save()


def _merge_metadata(parsed: ParsedDocument, version: DocumentVersion) -> dict[str, Any]:
    """Return the metadata of a version: what its file gives, as far as it fits, and the owner's values, which win."""
    owner_fields, fields = version.metadata, _list_facts(parsed, version)
    merged = merge_file_fields(owner_fields, fields)
    if merged != fields:
        cut = ", ".join(name for name, value in fields.items() if merged.get(name) != value)
        notice = f"metadata of the file that is too long is shortened or left out: {cut}"
        merged = merge_file_fields(owner_fields, _list_facts(replace(parsed, warnings=(notice, *parsed.warnings)), version))
    # The owner of a document uses null to remove a value that the file itself sets.
    return {name: value for name, value in (merged | dict(owner_fields)).items() if value is not None}


def _list_facts(parsed: ParsedDocument, version: DocumentVersion) -> dict[str, Any]:
    """Return the valid metadata that a file gives, its language unless it is English, and its first warnings."""
    language = language_of(parsed.text) if parsed.language is None else None
    fields = {**({LANGUAGE: language} if language not in (None, ENGLISH) else {}), **keep_valid_fields(parsed.metadata)}
    warnings = list(parsed.warnings)
    script = foreign_script_of(parsed.text)
    if script is not None and version.options.extraction == RULES:
        warnings.insert(0, f"the rules of extraction do not read {script} script well; extraction 'llm' does")
    if not warnings:
        return fields
    listed_warnings = list_warnings(warnings)
    # First, so that they are kept if not everything fits, and above a value of the file with this name.
    return {WARNINGS: listed_warnings} | fields | {WARNINGS: listed_warnings}


def list_warnings(warnings: Sequence[str]) -> list[str]:
    """Return the warnings that a document keeps: the first ones, shortened, and the number of the others."""
    listed_warnings, room = [], MAX_WARNINGS_BYTES
    for warning in warnings[:MAX_WARNINGS]:
        short = make_storable(warning if len(warning) <= MAX_WARNING_CHARACTERS else f"{warning[: MAX_WARNING_CHARACTERS - 1]}…")
        room -= len(short.encode())
        if room < 0:
            break
        listed_warnings.append(short)
    if len(listed_warnings) < len(warnings):
        listed_warnings[MAX_WARNINGS - 1 :] = [
            f"{len(warnings) - min(len(listed_warnings), MAX_WARNINGS - 1)} more warnings are not kept"
        ]
    return listed_warnings


def _with_failures(
    prepared: Sequence[PreparedChunk], chunks: Sequence[Chunk], failures: Sequence[Failure]
) -> Sequence[PreparedChunk]:
    """Return the prepared chunks, the document's first one with a failure of the whole document, unless it has its own."""
    if not failures:
        return prepared
    first_id = chunks[0].id
    return [
        replace(prepared_chunk, failure=prepared_chunk.failure or failures[0])
        if prepared_chunk.chunk.id == first_id
        else prepared_chunk
        for prepared_chunk in prepared
    ]
