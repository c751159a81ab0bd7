"""The second half of an ingestion: writes the prepared version to graph and vector store, then makes it visible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.document import Document, DocumentVersion, Failure
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.size_limits import MAX_KEYS, MAX_METADATA_BYTES, size_of
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import calls_and_tokens
from agentic_rag_backend.errors import AgenticRagError, NotFound
from agentic_rag_backend.ingestion.prepare.preparation import ATTACHMENTS, WARNINGS, fail_version, list_warnings, superseded_error
from agentic_rag_backend.ingestion.vectors.chunk_points import PointFields
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.jobs.coordination.tenant_locks import confirm_lock, current_fence
from agentic_rag_backend.jobs.runner import START, JobStopped, Run
from agentic_rag_backend.knowledge.extraction.fields import with_fields
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import (
    DocumentCatalogue,
    JobEnding,
    Matching,
    Outbox,
    ParsedVersion,
    QuestionCatalogue,
    ReadyVersion,
    TenantDirectory,
    Topic,
)
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.telemetry.logs import get_logger

FEW_CHUNKS = 4
_PAGE = 500
_MAX_REASONS = 3

_log = get_logger(__name__)


@dataclass(slots=True)
class WrittenVersion:
    """A version whose knowledge and vectors are written, not yet visible."""

    run: Run
    failures: tuple[Failure, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)
    published: bool = False
    """True if the version is already visible: the process ended before the job did."""
    attaches: bool = False
    """Whether attachments have to become documents, or documents of attachments have to go."""


@dataclass(frozen=True, slots=True)
class Order:
    """Locks for documents that are written concurrently, so that each document sees the writes of earlier ones.

    Args:
        graph: held from resolving a document's names until they are in the graph, which does not change meanwhile.
        facts: held from reading the sentence that the graph shows of a fact until the fact can be found by it. It may be
            acquired with or without ``graph``, but never before it.
    """

    graph: asyncio.Lock = field(default_factory=asyncio.Lock)
    facts: asyncio.Lock = field(default_factory=asyncio.Lock)
    _documents: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def document_lock(self, document_id: str) -> asyncio.Lock:
        """Return the lock between versions of one document. Acquire it before the other locks."""
        return self._documents.setdefault(document_id, asyncio.Lock())


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """The steps of ``commit_v1``. A tenant has one commit at a time; the documents in it follow an `Order`.

    Before each write, a step confirms that it still has the tenant's lock. A process that was paused for a while may have
    lost it. Another process then writes instead.

    Args:
        recorded: called when the outbox has a new entry to deliver.
        enqueue_attach: enqueues the part of a job that follows the publication of a message with attachments. Idempotent.
    """

    documents: DocumentCatalogue
    questions: QuestionCatalogue
    outbox: Outbox
    tenants: TenantDirectory
    blobs: BlobStore
    resolver: Resolver
    facts: FactPoints
    keep_originals: bool = True
    recorded: Callable[[], None] = lambda: None
    enqueue_attach: Callable[[Run], Awaitable[None]]

    async def write(self, run: Run, order: Order) -> WrittenVersion:
        """Write the prepared version to the graph and the vector store."""
        try:
            # Names may resolve differently than in an earlier try. That is an earlier attempt, or an earlier run of this
            # attempt that got past the start stage.
            again = run.job.attempt > 1 or run.stage != START
            ready = await self.documents.ready(run.tenant, run.document_id, run.version)
            document = ready.document
            if document.latest_version != run.version:
                raise superseded_error(run)
            attaches = await self._has_attachments(run, ready.version)
            if document.current_version >= run.version:
                result = {"chunks": document.chunk_count, **_report_failures(ready.version, (), document.failures)}
                return WrittenVersion(run, document.failures, result, published=True, attaches=attaches)
            if again:
                async with order.graph, order.facts:
                    await self._take_back(run.tenant, document, run.version)
            version = await self._write_version(run, ready, order)
            version.attaches = attaches
            return version
        except NotFound:
            raise superseded_error(run) from None

    async def publish(self, version: WrittenVersion, settle: Callable[[], Awaitable[None]]) -> None:
        """Make a version with flushed vectors visible, remove superseded versions, and finish the job.

        Args:
            settle: called after the removal of superseded versions, before the job ends.
        """
        run = version.run
        chunks = version.result["chunks"]
        # Without older versions to remove and attachments to take, the job ends with the publication.
        is_first, at_once = run.version == 1, run.version == 1 and not version.attaches
        if at_once and chunks <= FEW_CHUNKS:
            # The job ends before anybody could read its progress. `publish` records the end and checks for cancellation.
            run.stage = "publish"
        else:
            await run.report_progress("publish", chunks, chunks, at_once=True)
        await confirm_lock()
        ending = JobEnding(
            job_id=run.job.id,
            state=JobState.PARTIAL if version.failures else JobState.SUCCEEDED,
            result={"document_id": run.document_id, "version": run.version, **version.result},
            progress=("publish", chunks, chunks),
        )
        if not version.published and not await self.documents.publish(
            run.tenant,
            run.document_id,
            run.version,
            failures=version.failures,
            fence=current_fence(),
            ending=ending if at_once else None,
            keep_original=self.keep_originals or version.attaches,
        ):
            await run.check_cancellation()
            raise superseded_error(run)
        if not self.keep_originals:
            self.recorded()
        is_finished, version.published = at_once and not version.published, True
        if is_finished:
            run.count_end(ending.state)
        if not is_first:
            run.stage = "supersede"
            # A document that was deleted since: its deletion removes everything.
            with suppress(NotFound):
                await self._forget_older(run.tenant, run.document_id, run.version)
            await settle()
        if version.attaches:
            await run.jobs.remember(run.tenant, run.job.id, _result_name(run), ending.result)
            await self.enqueue_attach(run)
        elif not is_finished:
            await run.finish(ending.state, result=ending.result, progress=ending.progress)

    async def _has_attachments(self, run: Run, version: DocumentVersion) -> bool:
        """Return whether the version has attachments for documents, or an older one had.

        The original of a version that is made from the text of an older one is gone. Its attachments stay as they are.
        """
        if not version.blob_key:
            return False
        if run.job.arguments.get(ATTACHMENTS):
            return True
        if run.version == 1:
            return False
        return bool((await self.documents.documents(run.tenant, Matching(parent_id=run.document_id), limit=1)).items)

    async def record_failure(self, run: Run, error: AgenticRagError | JobStopped, order: Order | None = None) -> None:
        """Record the error with the document, and remove what was written for the version, which will not become visible.

        Computed results stay recorded. If a store does not answer now, the outbox relay cleans it later.
        """
        await fail_version(self.documents, run, error)
        order = order or Order()
        try:
            async with order.graph, order.facts:
                await self._remove_invisible(run.tenant, run.document_id, run.version)
        except AgenticRagError as problem:
            _log.warning("version_left", document=run.document_id, version=run.version, reason=problem.message)
            await self.outbox.add(run.tenant, Topic.LEFTOVERS, f"{run.document_id}@{run.version}")

    async def sweep(self, tenant: TenantId, subject: str) -> None:
        """Finish the cleanup that `record_failure` could not do. ``subject`` is ``document_id@version``."""
        document_id, _, version = subject.rpartition("@")
        await self._remove_invisible(tenant, document_id, int(version))

    async def _remove_invisible(self, tenant: TenantId, document_id: str, version: int) -> None:
        """Remove the data of a version that is not visible. If it is visible, remove the versions that it superseded."""
        try:
            document = await self.documents.document(tenant, document_id)
            if document.current_version < version:
                await self._take_back(tenant, document, version)
            elif document.current_version > 1:
                await self._forget_older(tenant, document_id, document.current_version)
        except NotFound:
            return  # its deletion removes everything

    async def _take_back(self, tenant: TenantId, document: Document, version: int) -> None:
        await confirm_lock()
        visible_points = await self._shown_points(tenant, document.id) if document.current_version else []
        vectors = self.facts.vectors
        await vectors.delete_document(tenant, document.id, up_to_version=version, keep=visible_points)
        await self.facts.remove_knowledge(tenant, document.id, up_to_version=version, above=document.current_version)
        if visible_points:  # chunks of both versions may carry the newer version's title and metadata
            await vectors.update_metadata(
                tenant, document.id, document.metadata, title=document.title, key=document.key, up_to_version=version
            )
        await self.documents.record_repair(tenant, document.id, knowledge=False)

    async def _write_version(self, run: Run, ready: ReadyVersion, order: Order) -> WrittenVersion:
        document, version, prepared = ready.document, ready.version, ready.prepared
        await run.report_progress("graph", 0, len(prepared))
        ontology = await self.tenants.ontology(run.tenant) if version.metadata else None
        extractions = with_fields([item.extraction for item in prepared], version.metadata, ontology)
        async with order.graph:
            knowledge = await self.resolver.resolve(run.tenant, run.document_id, run.version, version.title, extractions)
            await confirm_lock()
            await self.facts.graph.write_document(run.tenant, knowledge)
            if self.facts.names is not None:
                await self.facts.names.record_names(run.tenant, knowledge.unsettled)
        version = await self._add_warnings(run, version, knowledge.warnings)
        await run.report_progress("vectors", 0, len(prepared))
        await confirm_lock()
        fields = points_of(document, version)
        for start in range(0, len(prepared), _PAGE):
            points = fields.make_points(prepared[start : start + _PAGE])
            await self.facts.vectors.upsert(run.tenant, Collection.CHUNKS, points)
        async with order.facts:
            await confirm_lock()
            nodes = await self.facts.write_points(run.tenant, knowledge)
        failures = tuple(failure for item in prepared for failure in item.failures)
        rejected = sum(item.extraction.rejected for item in prepared)
        result = {
            "chunks": len(prepared),
            "reused": sum(item.reused for item in prepared),
            "entities": len(knowledge.entities),
            "relationships": len(knowledge.relationships),
            "mentions": len(knowledge.mentions),
            "nodes": nodes,
            "questions": sum(len(item.questions.items) for item in prepared if item.questions is not None),
            **_report_failures(version, knowledge.warnings, failures),
            **({"rejected": rejected} if rejected else {}),
            **(calls_and_tokens(ready.usage) if ready.usage.calls else {}),
        }
        return WrittenVersion(run, failures, result)

    async def _add_warnings(self, run: Run, version: DocumentVersion, warnings: Sequence[str]) -> DocumentVersion:
        """Add warnings to the metadata of a version, unless its owner uses their key or the metadata has no room."""
        earlier = version.metadata.get(WARNINGS, [])
        if WARNINGS in version.submitted_metadata or set(warnings) <= set(earlier):
            return version
        listed_warnings = list_warnings([*warnings, *(warning for warning in earlier if warning not in warnings)])
        metadata = {**version.metadata, WARNINGS: listed_warnings}
        if size_of(metadata) > MAX_METADATA_BYTES or len(metadata) > MAX_KEYS:
            return version
        owner = (run.tenant, run.document_id, run.version)
        await self.documents.save_parsed(*owner, ParsedVersion(version.text, version.title, metadata))
        return replace(version, metadata=metadata)

    async def _forget_older(self, tenant: TenantId, document_id: str, current: int) -> None:
        """Remove from every store the data that belongs only to versions before ``current``, the visible one."""
        await confirm_lock()
        visible_points = await self._shown_points(tenant, document_id)
        await self.facts.vectors.delete_document(tenant, document_id, up_to_version=current - 1, keep=visible_points)
        await self.facts.remove_knowledge(tenant, document_id, up_to_version=current - 1)
        for key in await self.documents.drop_versions(tenant, document_id, below=current):
            await self.blobs.delete(tenant, key)

    async def _shown_points(self, tenant: TenantId, document_id: str) -> list[str]:
        """Return the ids of the visible version's points: of its chunks and of their questions."""
        questions = (await self.questions.embedded(tenant, [document_id])).get(document_id, [])
        cursor: str | None = None
        while True:
            page = await self.documents.chunks(tenant, document_id, limit=_PAGE, cursor=cursor)
            questions.extend(item.chunk.id for item in page.items)
            cursor = page.next_cursor
            if cursor is None:
                return questions


def _report_failures(version: DocumentVersion, warnings: Sequence[str], failures: Sequence[Failure]) -> dict[str, Any]:
    """Return the members of a job's result about failures, with the first reasons, and ``warnings`` and those of the parser.

    A version keeps the warnings of its commit only if its metadata have room for them. The job's result always has them.
    """
    reasons = list(dict.fromkeys(failure.message for failure in failures))[:_MAX_REASONS]
    of_version = () if WARNINGS in version.submitted_metadata else version.metadata.get(WARNINGS, ())
    all_warnings = list_warnings(list(dict.fromkeys([*warnings, *of_version])))
    return {
        "failures": len(failures),
        **({"reasons": reasons} if reasons else {}),
        **({WARNINGS: all_warnings} if all_warnings else {}),
    }


def committed_result(run: Run) -> dict[str, Any]:
    """Return the result of a job's commit, which the job remembers until its attachments are taken."""
    return dict(run.job.arguments[_result_name(run)])


def _result_name(run: Run) -> str:
    return f"committed_{run.job.attempt}"  # a retry commits another version


def points_of(document: Document, version: DocumentVersion) -> PointFields:
    """Return the fields of a version's points."""
    return PointFields(
        document_id=document.id, version=version.version, key=document.key, title=version.title, metadata=version.metadata
    )
