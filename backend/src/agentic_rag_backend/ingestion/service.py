"""The ingestion service: accepts and deletes documents, and owns the workflows that process them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentic_rag_backend.documents import metadata_checks
from agentic_rag_backend.documents.chunking.registry import check_options
from agentic_rag_backend.documents.chunking.strategies.proposition import IsStated
from agentic_rag_backend.domain.document import ChunkingOptions, DocumentState, QuestionOptions
from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.size_limits import MAX_TITLE_CHARACTERS, short_text
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import (
    AgenticRagError,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    ResourceLimit,
    StoreUnavailable,
)
from agentic_rag_backend.ingestion.accept.originals import Original, read_original
from agentic_rag_backend.ingestion.accept.uploads import Upload, UploadCheck, checked_questions
from agentic_rag_backend.ingestion.commit.attaching import Attaching
from agentic_rag_backend.ingestion.commit.batches import Batches, PreparedJob
from agentic_rag_backend.ingestion.commit.commitment import Commitment
from agentic_rag_backend.ingestion.commit.settlement import Settlement
from agentic_rag_backend.ingestion.commit.unsettled_names import UnsettledNames
from agentic_rag_backend.ingestion.deletion import Deletion
from agentic_rag_backend.ingestion.prepare.chunk_reading import ChunkReader
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.ingestion.prepare.preparation import Preparation
from agentic_rag_backend.ingestion.prepare.reading import IsolatedExtractor, IsolatedReader
from agentic_rag_backend.ingestion.questions.asking import Questioner, writers_with
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.ingestion.vectors.mirroring import mirror_labels
from agentic_rag_backend.jobs.base import PATIENCE_S, Continuation, QueueName, Workflow
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.relay import Handler, Relay
from agentic_rag_backend.jobs.runner import Run, Runner, end_with_error
from agentic_rag_backend.knowledge.extraction.methods import RULES, ExtractionMethods
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import (
    EVERY_DOCUMENT,
    BegunJob,
    Catalogue,
    Change,
    Expected,
    Matching,
    Submission,
    Submitted,
    Topic,
)
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.local_files import DiskSpace
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.themes.communities.generations import CommunityScrubber, Restorer
from agentic_rag_backend.themes.raptor.tree_publication import NodePoints, TreeScrubber

INGEST = "ingest_v1"
COMMIT = "commit_v1"
ATTACH = "attach_v1"
DELETE = "delete_v1"

DELIVERED_WITHIN_S = 2.0
"""Seconds that a request waits until search has its change. The change may take longer during the tenant's commits."""
MAX_DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Deleting:
    """Delete jobs of one request. ``remaining`` is true if more documents may match."""

    jobs: tuple[Job, ...]
    remaining: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestionOptions:
    """Limits and sizes.

    ``group_size`` chunks are embedded, extracted and recorded together. ``patience_s`` is the number of seconds without
    progress for which a job waits for stores and models that do not answer. ``commit_together``: a flush of the vector store
    costs the same for one document as for many. Unless ``keep_originals``, a document's bytes are removed when it becomes
    visible. ``extraction`` and ``questions`` are the method of extraction and the synthetic questions of documents that do not
    ask for others.
    """

    max_upload_mb: int = 50
    group_size: int = 64
    patience_s: float = PATIENCE_S
    commit_together: bool = True
    keep_originals: bool = True
    extraction: str = RULES
    questions: QuestionOptions = field(default_factory=QuestionOptions)


class IngestionService:
    """Accepts documents and owns the workflows that process and delete them."""

    def __init__(  # noqa: PLR0913 - the container hands in every collaborator by name
        self,
        *,
        catalogue: Catalogue,
        graph: GraphStore,
        vectors: VectorStore,
        blobs: BlobStore,
        embedder: Embedder,
        reader: IsolatedReader,
        extraction: ExtractionMethods,
        resolver: Resolver,
        queue: JobQueue,
        model: DocumentModel | None = None,
        is_stated: IsStated | None = None,
        relay: Relay | None = None,
        options: IngestionOptions | None = None,
        disk_space: DiskSpace | None = None,
    ) -> None:
        self._options = options or IngestionOptions()
        self.relay = relay or Relay(catalogue.outbox, queue, flush=vectors.flush)
        self._catalogue = catalogue
        self._vectors = vectors
        self._blobs = blobs
        self._disk_space = disk_space or DiskSpace({})
        self._queue = queue
        self._check = UploadCheck(
            reader,
            self._options.max_upload_mb,
            extraction=self._options.extraction,
            methods=extraction,
            questions=self._options.questions,
        )
        self._runner = Runner(catalogue.jobs, self._options.patience_s)
        names = UnsettledNames(resolver.identities, catalogue.outbox, self.relay.wake)
        facts = FactPoints(graph, vectors, names)
        documents = catalogue.documents
        computation = Computation(embedder=embedder, extraction=extraction)
        self._preparation = Preparation(
            documents=documents,
            tenants=catalogue.tenants,
            results=catalogue.model_results,
            blobs=blobs,
            computation=computation,
            questions=catalogue.questions,
            questioner=Questioner(computation=computation, writers=writers_with(model)),
            reader=ChunkReader(
                reader,
                embedder,
                model,
                is_stated,
                reader if isinstance(reader, IsolatedReader) and isinstance(extraction.rules, IsolatedExtractor) else None,
            ),
            enqueue_commit=lambda: queue.enqueuer(COMMIT),
            group_size=self._options.group_size,
        )
        commitment = Commitment(
            documents=documents,
            questions=catalogue.questions,
            outbox=catalogue.outbox,
            tenants=catalogue.tenants,
            blobs=blobs,
            resolver=resolver,
            facts=facts,
            keep_originals=self._options.keep_originals,
            recorded=self.relay.wake,
            enqueue_attach=lambda run: queue.enqueue(ATTACH, run.tenant, run.job.id, run.job.attempt),
        )
        self._attaching = Attaching(
            documents=documents,
            blobs=blobs,
            reader=reader,
            accept=self._accept_upload,
            enqueue_delete=lambda: queue.enqueuer(DELETE),
            keep_originals=self._options.keep_originals,
            recorded=self.relay.wake,
        )
        # Without `names`: the names that a repeated resolution leaves unsettled were recorded when they became so.
        self._settlement = Settlement(
            documents=documents,
            tenants=catalogue.tenants,
            outbox=catalogue.outbox,
            edits=catalogue.graph_edits,
            resolver=resolver,
            facts=FactPoints(graph, vectors),
        )
        self._batches: Batches = Batches(self._runner, commitment, self._settlement, together=self._options.commit_together)
        self._deletion = _make_deletion(catalogue, graph, blobs=blobs, facts=facts, embedder=embedder)
        self.relay.register_handlers(self.list_deliveries())

    def list_deliveries(self) -> Mapping[Topic, Handler]:
        """Return the handlers that the container registers with the relay. They update other stores after a catalogue change."""

        async def mirror_document_labels(tenant: TenantId, document_id: str) -> None:
            await mirror_labels(self._catalogue.documents, self._vectors, tenant, document_id)

        async def delete_original(tenant: TenantId, key: str) -> None:
            # A pending version of the same content may name the blob. Its own publication records the entry again.
            for unknown in await self._catalogue.documents.unknown_blobs(tenant, [key]):
                await self._blobs.delete(tenant, unknown)

        return {
            Topic.ORIGINAL: delete_original,
            Topic.LABELS: mirror_document_labels,
            Topic.LEFTOVERS: self._batches.commitment.sweep,
            Topic.EDITS: self._settlement.record_edit,
            Topic.NAMES: self._settlement.record_name,
            Topic.KNOWLEDGE: self._settlement.rewrite_document,
        }

    def list_workflows(self) -> Mapping[str, tuple[QueueName, Workflow]]:
        """Return the workflows that the container registers with the queue. Deletes and commits share a queue, in order."""
        return {
            INGEST: (QueueName.PREPARE, self.ingest_v1),
            COMMIT: (QueueName.COMMIT, self.commit_v1),
            ATTACH: (QueueName.PREPARE, self.attach_v1),
            DELETE: (QueueName.COMMIT, self.delete_v1),
        }

    async def submit(self, tenant: TenantId, upload: Upload) -> Submitted:
        """Accept a document: a new one, a new version, new metadata, or no change. A refused document writes nothing.

        Raises:
            PayloadTooLarge: the content is larger than MAX_UPLOAD_MB.
            UnsupportedMediaType: no parser reads its type.
            UnreadableDocument: it is not of that type, or contains no text.
            InvalidRequest: key, title, metadata or options are outside their limits.
            PreconditionFailed: the document that has the key has another revision, or does not exist.
            Conflict: the key belongs to an attachment of a message.
            StorageFull: the disk of a store has no room.
        """
        require_tenant(tenant)
        submitted = await self._accept_upload(tenant, upload)
        return await self._deliver_change(tenant, submitted)

    async def _accept_upload(self, tenant: TenantId, upload: Upload) -> Submitted:
        submission, warnings = await self._check.make_submission(tenant, upload)
        # If the caller disconnects, neither an original without its row nor a row without its original may remain.
        submitted = await asyncio.shield(self._record_submission(tenant, submission, upload.content))
        return replace(submitted, warnings=warnings)

    async def update(
        self,
        tenant: TenantId,
        document_id: str,
        *,
        title: str | None = None,
        fields: Mapping[str, Any] | None = None,
        expected: Expected = None,
    ) -> Submitted:
        """Change a document's title, and its metadata by key (None removes a key). Vectors stay.

        If a version is in processing, or the value of a field changes that names entities in the tenant's ontology, a version
        with the change follows, and the result has its job.

        Raises:
            NotFound: the document does not exist.
            InvalidRequest: title or metadata are outside their limits.
            PreconditionFailed: the document has another revision.
        """
        short = None if title is None else short_text("title", title, MAX_TITLE_CHARACTERS)
        if short == "":
            raise InvalidRequest("title is blank")
        plain = None if fields is None else metadata_checks.check_metadata(fields)
        entity_fields = await self._entity_fields(require_tenant(tenant))
        change = Change(
            title=short, metadata=plain, entity_fields=entity_fields, expected=expected, check=metadata_checks.check_metadata
        )
        return await self._revise_document(require_tenant(tenant), document_id, change)

    async def chunk_again(
        self,
        tenant: TenantId,
        document_id: str,
        chunking: ChunkingOptions,
        *,
        questions: QuestionOptions | None = None,
        expected: Expected = None,
    ) -> Submitted:
        """Add a version of the same original, title and metadata with other chunking or synthetic questions.

        ``questions`` None keeps the document's options.

        Raises:
            NotFound: the document does not exist.
            InvalidRequest: the options are outside their limits.
            Conflict: no version of the document was ever readable.
            PreconditionFailed: the document has another revision.
        """
        check_options(chunking)
        question_options = None if questions is None else checked_questions(questions)
        change = Change(chunking=chunking, questions=question_options, expected=expected)
        return await self._revise_document(require_tenant(tenant), document_id, change)

    async def extract_again(
        self, tenant: TenantId, document_id: str, extraction: str | None = None, *, expected: Expected = None
    ) -> Submitted:
        """Add a version of the same original, title and metadata, whose knowledge is extracted again.

        Results on record are reused as long as text, ontology and method are the same: no vector and no reply of a model is
        computed twice. None keeps the document's method of ``extraction``.

        Raises:
            NotFound: the document does not exist.
            InvalidRequest: the method is not known, or needs a language model.
            Conflict: no version of the document was ever readable.
            PreconditionFailed: the document has another revision.
        """
        method = None if extraction is None else self._check.choose_method(extraction)
        change = Change(extraction=method, again=True, expected=expected)
        return await self._revise_document(require_tenant(tenant), document_id, change)

    async def _entity_fields(self, tenant: TenantId) -> frozenset[str]:
        ontology = await self._catalogue.tenants.ontology(tenant)
        return ontology.field_names if ontology is not None else frozenset()

    async def _revise_document(self, tenant: TenantId, document_id: str, change: Change) -> Submitted:
        revised = await self._catalogue.documents.revise(tenant, document_id, change, self._queue.enqueuer(INGEST))
        return await self._deliver_change(tenant, revised)

    async def _deliver_change(self, tenant: TenantId, submitted: Submitted) -> Submitted:
        """Deliver a change that needs no job, and pending earlier changes. Report whether search has them."""
        if submitted.job is not None:
            return submitted
        delivery = await self.relay.deliver(tenant, within_s=DELIVERED_WITHIN_S)
        return replace(submitted, in_search=delivery.done)

    async def _record_submission(self, tenant: TenantId, submission: Submission, content: bytes) -> Submitted:
        async with self._disk_space.reserve(len(content)):
            return await self._write_submission(tenant, submission, content)

    async def _write_submission(self, tenant: TenantId, submission: Submission, content: bytes) -> Submitted:
        await self._blobs.put(tenant, submission.blob_key, content)
        try:
            submitted = await self._catalogue.documents.submit(tenant, submission, self._queue.enqueuer(INGEST))
        except StoreUnavailable:
            raise  # the outcome is unknown: an extra original is better than a missing one
        except AgenticRagError:
            await self._blobs.delete(tenant, submission.blob_key)
            raise
        if submitted.job is None:
            await self._blobs.delete(tenant, submission.blob_key)  # its key belongs to this submission only
        return submitted

    async def read_original(self, tenant: TenantId, document_id: str) -> Original:
        """Return the original of a document's visible version. Without a visible version, the newest one's.

        Raises:
            NotFound: the document does not exist, or has no original.
        """
        return await read_original(self._catalogue.documents, self._blobs, require_tenant(tenant), document_id)

    async def delete(self, tenant: TenantId, document_id: str, *, expected: Expected = None) -> Job:
        """Hide a document with its attachments, and enqueue their removal. The job's result is the deletion receipt.

        Raises:
            NotFound: the document does not exist.
            PreconditionFailed: the document has another revision.
        """
        documents, enqueue = self._catalogue.documents, self._queue.enqueuer(DELETE)
        return await documents.tombstone(require_tenant(tenant), document_id, enqueue, expected=expected)

    async def delete_matching(self, tenant: TenantId, matching: Matching, *, limit: int = MAX_DELETED_AT_ONCE) -> Deleting:
        """Delete up to ``limit`` documents, newest first, each with its own job; see `delete`.

        A document that changes meanwhile, and may no longer match, is skipped.

        Raises:
            InvalidRequest: no field selects documents, or the selection is documents in deletion.
        """
        if matching == EVERY_DOCUMENT:
            raise InvalidRequest(
                "select the documents to delete by a filter, metadata, a key, a state or a parent_id; none was given"
            )
        if DocumentState.DELETING in matching.states:
            raise InvalidRequest("documents in the state 'deleting' are already being deleted")
        documents, enqueue = self._catalogue.documents, self._queue.enqueuer(DELETE)
        page = await documents.documents(require_tenant(tenant), matching, limit=limit)
        jobs: list[Job] = []
        changed = False
        for document in page.items:
            try:
                revisions = frozenset({document.revision})
                jobs.append(await documents.tombstone(tenant, document.id, enqueue, expected=revisions))
            except NotFound:
                continue
            except PreconditionFailed:
                changed = True
        return Deleting(tuple(jobs), remaining=changed or page.next_cursor is not None)

    async def ingest_v1(self, tenant: TenantId, job_id: str, attempt: int) -> Continuation | None:
        """Workflow: parse, chunk, embed and extract a version, then commit it, or queue its commit."""
        with self._batches.count_preparation():
            begun_job: BegunJob | None = None
            prepared: PreparedJob | None = None

            async def start_job() -> Job:
                nonlocal begun_job
                begun_job = await self._catalogue.documents.begin_job(tenant, job_id, attempt)
                return begun_job.job

            def hand_on(run: Run, enqueued: bool) -> None:
                nonlocal prepared
                prepared = self._batches.add(run, enqueued=enqueued)

            run = await self._runner.begin_job(tenant, job_id, attempt, start=start_job)
            if run is not None:
                await self._runner.run_step(
                    run, self._preparation.make_step(begun_job, hand_on), self._preparation.record_failure
                )
            return self._batches.choose_continuation(prepared) if prepared is not None else None

    async def commit_v1(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow: write a prepared version to graph and vectors, and make it visible."""
        await self._batches.commit(tenant, job_id, attempt)

    async def attach_v1(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow: make documents of the attachments of a visible message."""
        run = await self._runner.begin_job(tenant, job_id, attempt, started=True)
        if run is not None:
            await self._runner.run_step(run, self._attaching.run)

    async def delete_v1(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow: remove a tombstoned document from every store."""
        # After a failure, the document stays hidden. Retrying the job retries the deletion.
        await self._runner.run_job(tenant, job_id, attempt, self._deletion.run)

    async def given_up(self, tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        """Fail a job, and its document, that the queue will not run again.

        Nothing changes if the job has ended or has another attempt, or if the tenant is gone.
        """
        try:
            job = await self._catalogue.jobs.job(tenant, job_id)
        except NotFound:
            return
        if job.state.ended or job.attempt != attempt:
            return
        run = Run(tenant, job, self._catalogue.jobs, stage=job.stage or "start")
        failed = self._batches.commitment.record_failure if job.kind is JobKind.INGEST else None
        # A document that repeatedly kills its process is unreadable. Any other job has failed.
        unreadable = job.kind is JobKind.INGEST and isinstance(error, ResourceLimit)
        ending = ResourceLimit if unreadable else AgenticRagError
        await end_with_error(run, failed, ending(f"attempt {attempt} was given up: {error}"))


def _make_deletion(
    catalogue: Catalogue, graph: GraphStore, *, blobs: BlobStore, facts: FactPoints, embedder: Embedder
) -> Deletion:
    """Return what deletes a document from every store, and from trees and communities that contain its text."""
    documents, vectors = catalogue.documents, facts.vectors
    restorer = Restorer(communities=catalogue.communities, vectors=vectors, embedder=embedder)
    return Deletion(
        documents=documents,
        blobs=blobs,
        facts=facts,
        tree=TreeScrubber(documents, catalogue.trees, NodePoints(vectors, embedder)),
        communities=CommunityScrubber(documents=documents, graph=graph, restorer=restorer),
    )
