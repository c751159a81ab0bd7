"""The port of documents, their versions and their chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import (
    Chunk,
    ChunkingOptions,
    ChunkSpan,
    Document,
    DocumentState,
    DocumentVersion,
    Failure,
    ParentPassage,
    ProcessingOptions,
    QuestionOptions,
    VisibleChunk,
)
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.stores.catalogue.ports.jobs import Enqueue
from agentic_rag_backend.stores.catalogue.ports.leases import Fence
from agentic_rag_backend.stores.catalogue.ports.pages import Page
from agentic_rag_backend.stores.catalogue.ports.questions import ChunkQuestions

Expected = frozenset[str] | None
"""Revisions (`Document.revision`) that a write accepts. `ANY_REVISION` accepts any existing document. None skips the check.

The check runs in the transaction that changes the document. Of two writers that read the same revision, only one succeeds.
"""
ANY_REVISION = "*"


@dataclass(frozen=True, slots=True)
class Parent:
    """The visible version of a message, and the place of an attachment in it."""

    document_id: str
    version: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A submitted document. Its original is already in the blob store under ``blob_key``."""

    document_id: str
    """Proposed random id, used if the key is new. A document that already has the key keeps its id."""
    key: str
    """The caller's key. Defaults to the SHA-256 of the content. If another document has the key of an attachment, its key
    becomes the id of its message, ``#`` and its place."""
    title: str
    content_hash: str
    media_type: str
    size_bytes: int
    blob_key: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    options: ProcessingOptions = field(default_factory=ProcessingOptions)
    expected: Expected = None
    parent: Parent | None = None
    """The message that the document is attached to. Its place identifies the document, instead of its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change to a document that keeps its content. None leaves a field unchanged."""

    title: str | None = None
    metadata: Mapping[str, Any] | None = None
    """Keys to merge into the existing metadata. A value of None removes the key, even if the file itself sets it."""
    chunking: ChunkingOptions | None = None
    questions: QuestionOptions | None = None
    """Options of synthetic questions."""
    extraction: str | None = None
    """Method of extraction."""
    again: bool = False
    """Whether the content is processed again even if nothing else changes."""
    entity_fields: frozenset[str] = frozenset()
    """Metadata fields that name entities. If the value of one changes, the content is processed again."""
    expected: Expected = None
    check: Callable[[Mapping[str, Any]], object] = lambda merged: None
    """Validates the merged metadata before it is written. If it raises, nothing is changed."""

    @property
    def processes(self) -> bool:
        """Whether the content is processed again."""
        return self.again or self.chunking is not None or self.questions is not None or self.extraction is not None


@dataclass(frozen=True, slots=True)
class Submitted:
    """Outcome of a submission. ``unchanged`` if it equals the latest version in every field.

    If there is no job and ``unchanged`` is false, only the title or metadata differed. They were updated in place, and the
    outbox has an entry to update their copy in the vector store. Without a job, the submission's blob was not adopted.
    """

    document: Document
    job: Job | None
    unchanged: bool
    in_search: bool = False
    """Whether search already uses the new title and metadata, filters included. The caller that delivers them sets this."""
    warnings: tuple[str, ...] = ()
    """What the owner should know about the upload. The caller that checks it sets this."""


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk with its computed vector and extraction, which are expensive to make."""

    chunk: Chunk
    vector: NDArray[np.float32] | None
    """None if the embedder refused the chunk. Only lexical search finds it then, and ``failure`` gives the reason."""
    extraction: Extraction
    recipe: str | None = None
    """Hash of the inputs and models of vector and extraction. Equal recipes give equal results. None: do not reuse."""
    failure: Failure | None = None
    reused: bool = False
    """Copied from another version instead of computed."""
    questions: ChunkQuestions | None = None
    """Its synthetic questions. None: none were asked for."""

    @property
    def complete(self) -> bool:
        """Whether the chunk was embedded and its extraction succeeded."""
        return self.failure is None and self.extraction.failure is None

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failures of this chunk's embedding, extraction and synthetic questions."""
        of_questions = self.questions.failure if self.questions is not None else None
        return tuple(failure for failure in (self.failure, self.extraction.failure, of_questions) if failure is not None)


@dataclass(frozen=True, slots=True)
class ParsedVersion:
    """What a version was parsed to: its text, its title and its merged metadata."""

    text: str
    title: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HandOn:
    """Enqueues a job's next workflow, in the transaction that makes the job ready for it."""

    job: Job
    enqueue: Enqueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The final state of a job: see `JobCatalogue.finish`."""

    job_id: str
    state: JobState
    result: Mapping[str, Any]
    progress: tuple[str, int, int]
    """The last stage, the number of items done, and the total."""


@dataclass(frozen=True, slots=True)
class ReadyVersion:
    """A version at commit time, with its document and all its prepared chunks."""

    document: Document
    version: DocumentVersion
    prepared: Sequence[PreparedChunk]
    usage: Usage
    """Calls and tokens of language models that were paid for the version."""


@dataclass(frozen=True, slots=True)
class BegunJob:
    """A job that has started, its version (None if superseded or deleted), and the ontology of the tenant."""

    job: Job
    version: DocumentVersion | None
    ontology: Ontology | None


@dataclass(frozen=True, slots=True)
class Visibility:
    """The visible versions at ``state_version`` by document id: all if ``whole``, else only the changed documents.

    A changed document has its last version. Version 0 means that the document is no longer visible.
    """

    state_version: int
    versions: Mapping[str, int]
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentStatus:
    """State of a document, tombstoned documents included. Reconciliation compares the other stores with it."""

    document: Document
    deleted: bool
    in_flight: bool
    """True if a job of the document has not ended. The contents of the other stores may then change."""
    unfinished: bool
    """The newest version is waiting to be processed, or is being processed."""
    blob_key: str | None
    """Blob key of the visible version. None if there is no visible version, or if its original was not kept."""


class DocumentCatalogue(Protocol):
    """Documents, their versions and their chunks."""

    async def submit(self, tenant: TenantId, submission: Submission, enqueue: Enqueue) -> Submitted:
        """Record a new document, or a new version of a document, and enqueue its job in the same transaction.

        The content is processed again if content, media type, options or the value of a field of metadata that names entities
        in the tenant's ontology differ from the latest
        version, or if that version failed. A tombstoned document no longer owns its key: an upload under that key creates
        another document. `PreconditionFailed` if the document under the key has none of the expected revisions, or if no
        document has the key. `Conflict` if the key belongs to an attachment, and the submission has no parent.

        With a ``parent``, the document is the attachment at its place. If its content is the same, its title and the keys of
        its metadata that the submission does not have are kept. `NotFound` if the message was deleted, or shows another
        version.
        """

    async def revise(self, tenant: TenantId, document_id: str, change: Change, enqueue: Enqueue) -> Submitted:
        """Change title and metadata in place, or add a version of the same original with its job.

        A version is added for other chunking, questions or extraction, for another value of an entity field, and if the change
        asks for it.

        A version in processing is superseded by a version with the new title or metadata, because its job may have read the old
        ones. `NotFound` if the document does not exist. `PreconditionFailed` if it has none of the expected revisions.
        `Conflict` if the content is to be processed again and no version of the document was ever readable.
        """

    async def document(self, tenant: TenantId, document_id: str) -> Document:
        """Return a document that is not deleted, or raise `NotFound`."""

    async def documents(
        self,
        tenant: TenantId,
        *,
        limit: int,
        cursor: str | None = None,
        state: DocumentState | None = None,
        key: str | None = None,
        filter: Filter | None = None,
        parent_id: str | None = None,
    ) -> Page[Document]:
        """List documents, newest first; of ``parent_id`` if given, its attachments."""

    async def version(self, tenant: TenantId, document_id: str, version: int) -> DocumentVersion:
        """Return one version, text included, or raise `NotFound`."""

    async def begin_job(self, tenant: TenantId, job_id: str, attempt: int) -> BegunJob:
        """Start a job, as `JobCatalogue.start` does, and move its version to ``processing``, as `begin_processing` does.

        The version of a job that has ended, or has another attempt, is not moved. `NotFound` if there is no such job.
        """

    async def begin_processing(self, tenant: TenantId, document_id: str, version: int) -> DocumentVersion | None:
        """Move a version that is not visible to ``processing`` and return it. Idempotent. None if superseded or deleted.

        A version that is already visible is returned unchanged.
        """

    async def save_parsed(self, tenant: TenantId, document_id: str, version: int, parsed: ParsedVersion) -> None:
        """Record a version's parsed text, its title and its merged metadata. Idempotent.

        If the text differs from the recorded text, chunks prepared from the old text are dropped. A version that is
        visible, or older than a visible one, is not changed. `NotFound` if the document was deleted.
        """

    async def save_prepared(
        self,
        tenant: TenantId,
        document_id: str,
        version: int,
        prepared: Sequence[PreparedChunk],
        *,
        parsed: ParsedVersion | None = None,
        hand_on: HandOn | None = None,
    ) -> None:
        """Record chunks of a version that is not visible yet, with vectors and extractions. Idempotent.

        The chunks may come in batches of any size. A version that is visible, or older than a visible one, is not changed.
        ``parsed`` is recorded before, as by `save_parsed`, and ``hand_on`` enqueues the job's next workflow, in the same
        transaction. `NotFound` if the document was deleted.
        """

    async def reuse(
        self, tenant: TenantId, document_id: str, version: int, wanted: Sequence[tuple[Chunk, str]]
    ) -> frozenset[str]:
        """Stage the chunks of ``wanted``, (chunk, recipe), that have recorded results. Return their chunk ids.

        A result counts if it has the same recipe and no failure. It may belong to this version, or to another version of
        the document; then it is copied. `NotFound` if the document was deleted.
        """

    async def save_extractions(self, tenant: TenantId, document_id: str, version: int, extractions: Sequence[Extraction]) -> None:
        """Replace the extractions of staged chunks. Chunks that are not staged are skipped. Idempotent.

        A version that is visible, or older than a visible one, is not changed. `NotFound` if the document was deleted.
        """

    async def prepared(self, tenant: TenantId, document_id: str, version: int) -> list[PreparedChunk]:
        """Return the prepared chunks in chunk order. Works for the visible version and for newer versions that have ended."""

    async def ready(self, tenant: TenantId, document_id: str, version: int) -> ReadyVersion:
        """Return a version with its document and prepared chunks, from one snapshot. Raises `NotFound` as `version` does."""

    async def publish(
        self,
        tenant: TenantId,
        document_id: str,
        version: int,
        *,
        failures: Sequence[Failure] = (),
        fence: Fence | None = None,
        ending: Ending | None = None,
        keep_original: bool = True,
    ) -> bool:
        """Make the version visible by compare-and-set, drop prepared chunks of older versions, raise ``state_version``.

        With a ``fence``, raise `StoreUnavailable` unless the fence is the newest of its lease. With an ``ending``, the job ends
        in the same transaction if the result is True; a job that was asked to stop does not make its version visible.

        Return False and change nothing if the document was deleted, a newer version is visible, this version has failed, or its
        job was asked to stop. A repeated call returns True.

        Without ``keep_original``, the version no longer names an original, and the outbox has an entry to remove the blob.
        Later versions of the same content are made from its text.
        """

    async def fail(self, tenant: TenantId, document_id: str, version: int, *, state: DocumentState, failure: Failure) -> None:
        """End a version that could not be made visible, as ``failed`` or ``unreadable``. The first ending is final.

        An older visible version stays visible in its own state (``ready`` or ``partial``), with the failure listed.
        """

    async def tombstone(self, tenant: TenantId, document_id: str, enqueue: Enqueue, *, expected: Expected = None) -> Job:
        """Hide a document and its attachments, and record a delete job for each, in one transaction that also enqueues the jobs.

        The documents' open jobs are asked to stop. The ``version`` of a job is the newest version, for `purge`. Return the job
        of the document itself. Its arguments have ``attachments``: a list of ``document_id`` and ``job_id``, those of attached
        messages included. `NotFound` if the document does not exist or was deleted before. `PreconditionFailed` if it has none
        of the expected revisions.
        """

    async def retire_attachments(
        self, tenant: TenantId, parent_id: str, version: int, kept: Sequence[str], enqueue: Enqueue
    ) -> int:
        """Delete, as `tombstone` does, the attachments of a message that are at none of the ``kept`` places. Return their number.

        `NotFound` if the message was deleted, or shows another version.
        """

    async def forget_original(self, tenant: TenantId, document_id: str, version: int) -> None:
        """Remove the name of a visible version's original, as `publish` does without ``keep_original``. Idempotent."""

    async def blob_keys(self, tenant: TenantId, document_id: str, *, up_to_version: int) -> Sequence[str]:
        """Return the blob keys of versions ≤ ``up_to_version``, also of a tombstoned document. Call this before `purge`."""

    async def unknown_blobs(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        """Return the ``keys`` that no version names. Tombstoned documents count."""

    async def purge(self, tenant: TenantId, document_id: str, *, up_to_version: int) -> Mapping[str, int]:
        """Remove the rows of a tombstoned document for versions ≤ ``up_to_version``. Return the counts by table.

        A document that is not tombstoned is not changed.
        """

    async def remains(self, tenant: TenantId, document_id: str) -> Mapping[str, int]:
        """Count the rows of a document by table, tombstoned or not. All counts are 0 after its last `purge`."""

    async def drop_versions(self, tenant: TenantId, document_id: str, *, below: int) -> Sequence[str]:
        """Remove versions < ``below`` that a visible version superseded. Return the blob keys that are no longer needed.

        Raises ``state_version`` if there were any: the caller has removed their data from the other stores before.
        """

    async def visible_versions(self, tenant: TenantId) -> dict[str, int]:
        """Return the visible version of every visible document."""

    async def visibility(self, tenant: TenantId, *, since: int | None = None) -> Visibility:
        """Return the changes after state_version ``since``, at a cost that depends on their number.

        If these changes are no longer recorded, return every visible version. The result is one snapshot: the versions
        visible at ``since``, with the changes applied, are the versions visible now.
        """

    async def statuses(
        self, tenant: TenantId, *, ids: Sequence[str] | None = None, after: str = "", limit: int = 100
    ) -> list[DocumentStatus]:
        """Return up to ``limit`` documents with id > ``after``, tombstoned ones too, ordered by id; of ``ids`` if given."""

    async def visible_chunk_ids(self, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the chunk ids of each document's visible version, in reading order. Documents without one are absent."""

    async def visible_chunks_in_order(self, tenant: TenantId) -> list[str]:
        """Return the ids of all visible chunks, ordered by the key of their document and in reading order.

        The order depends on the documents alone. Ids are random.
        """

    async def take_up(self, tenant: TenantId, document_id: str, enqueue: Callable[[JobKind], Enqueue]) -> Job | None:
        """Give a document a new job, in one transaction, if the job to finish its processing or deletion is missing.

        A tombstoned document gets a delete job. A document whose newest version waits to be processed gets an ingest job.
        ``enqueue`` returns the function that enqueues a job of a kind. None, with no change, if the document has an
        unfinished job, needs none, or does not exist.
        """

    async def record_repair(self, tenant: TenantId, document_id: str | None, *, knowledge: bool) -> None:
        """Raise ``state_version`` after a repair: another store changed its data of a document, which may be deleted.

        None stands for data of no document in particular, such as communities.
        With ``knowledge``, the graph changed, and communities that depend on it become stale, as after `publish`.
        """

    async def hydrate(self, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, VisibleChunk]:
        """Return the chunks that belong to a visible version. Other chunks are absent."""

    async def parents(self, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, ParentPassage]:
        """Return the parents of chunks of visible versions, by their ids. Chunks without a parent are ignored."""

    async def passages(self, tenant: TenantId, spans: Sequence[ChunkSpan]) -> dict[ChunkSpan, ParentPassage]:
        """Return the text of neighbouring chunks of visible versions. Spans without a chunk are absent."""

    async def chunks(self, tenant: TenantId, document_id: str, *, limit: int, cursor: str | None = None) -> Page[VisibleChunk]:
        """List a visible document's chunks in reading order. `NotFound` if the document does not exist."""

    async def counts(self, tenant: TenantId) -> Mapping[str, int]:
        """Count ``documents`` by state, visible ``chunks`` and their synthetic ``questions``.

        The keys are ``documents``, ``documents_<state>``, ``chunks`` and ``questions``.
        """
