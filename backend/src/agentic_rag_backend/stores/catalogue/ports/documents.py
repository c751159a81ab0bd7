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
    Document,
    DocumentState,
    DocumentVersion,
    Failure,
    ProcessingOptions,
    VisibleChunk,
)
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.ports.jobs import Enqueue
from agentic_rag_backend.stores.catalogue.ports.leases import Fence
from agentic_rag_backend.stores.catalogue.ports.pages import Page

Expected = frozenset[str] | None
"""Revisions (`Document.revision`) one of which the document must have; `ANY_REVISION` for whichever; None: no matter.

Compared in the transaction that changes the document, so that of two writers who read the same revision one wins.
"""
ANY_REVISION = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A document as it was handed in; its original is already in the blob store under ``blob_key``."""

    document_id: str
    """Proposed id, fresh and random; used if the key is new. For a known key the existing document's id is kept."""
    key: str
    """The caller's key, or the content's SHA-256 where none was given."""
    title: str
    content_hash: str
    media_type: str
    size_bytes: int
    blob_key: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    options: ProcessingOptions = field(default_factory=ProcessingOptions)
    expected: Expected = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to become of a document whose content stays; None leaves a part as it is."""

    title: str | None = None
    metadata: Mapping[str, Any] | None = None
    """Merged by key into what there is; None as a value removes the key, also one that the file itself sets."""
    chunking: ChunkingOptions | None = None
    expected: Expected = None
    check: Callable[[Mapping[str, Any]], object] = lambda merged: None
    """Given the merged metadata before it is written; what it raises leaves everything as it was."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission; ``unchanged`` where it equals the latest version in everything.

    Without a job and not ``unchanged``, title or metadata alone were other ones and were updated in place: the outbox says so
    of the vector store's copy of them. Unless there is a job, the submission's blob was not adopted.
    """

    document: Document
    job: Job | None
    unchanged: bool
    in_search: bool = False
    """Whether search has title and metadata by now, filters included; set by who delivers them."""


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk with everything that was computed for it at a price."""

    chunk: Chunk
    vector: NDArray[np.float32] | None
    """None where the embedder refused the chunk: it is found by its words alone, and ``failure`` says why."""
    extraction: Extraction
    recipe: str | None = None
    """What vector and extraction were made from and with, as a hash: equal recipes have equal results. None: do not reuse."""
    failure: Failure | None = None
    reused: bool = False
    """Copied from another version instead of computed."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What went wrong with this chunk."""
        return tuple(failure for failure in (self.failure, self.extraction.failure) if failure is not None)


@dataclass(frozen=True, slots=True)
class HandOn:
    """What queues a job's next workflow, inside the transaction that makes it ready for it."""

    job: Job
    enqueue: Enqueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a job ends: see `JobCatalogue.finish`."""

    job_id: str
    state: JobState
    result: Mapping[str, Any]
    progress: tuple[str, int, int]
    """Its last stage, done and total."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A version as a commit finds it: with its document, and everything that was prepared of it."""

    document: Document
    version: DocumentVersion
    prepared: Sequence[PreparedChunk]


@dataclass(frozen=True, slots=True)
class Visibility:
    """What is visible at ``state_version``: every visible document's version if ``whole``, else what changed, last state only.

    Among changes, version 0 says that nothing of the document is visible any more.
    """

    state_version: int
    versions: Mapping[str, int]
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a document stands, a tombstoned one too: what the other stores are compared with."""

    document: Document
    deleted: bool
    in_flight: bool
    """One of its jobs has not ended, so what the other stores hold of it may be about to change."""
    unfinished: bool
    """Its newest version waits to be processed, or for the end of it."""
    blob_key: str | None
    """Of the visible version; None where there is none, or its original was not kept."""


class DocumentCatalogue(Protocol):
    """Documents, their versions and their chunks."""

    async def submit(self, tenant: TenantId, submission: Submission, enqueue: Enqueue) -> Submitted:
        """Record a document or a new version of it, with its job, in one transaction that also enqueues the job.

        The content is processed again where content, media type or options differ from the latest version, or that one
        failed. A tombstoned document does not count: its key is free, and the upload becomes another document.
        `PreconditionFailed` if the document under the key has none of the expected revisions, or there is none.
        """

    async def revise(self, tenant: TenantId, document_id: str, change: Change, enqueue: Enqueue) -> Submitted:
        """Change title and metadata in place, or make a version of the same original with other chunking and its job.

        A version on its way is superseded by one with the other title or metadata: its job may have read the old ones.
        `NotFound` if there is no such document, `PreconditionFailed` if it has none of the expected revisions,
        `Conflict` if it is to be cut again and no version of it was ever readable.
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
    ) -> Page[Document]:
        """List documents, newest first."""

    async def version(self, tenant: TenantId, document_id: str, version: int) -> DocumentVersion:
        """Return one version, text included, or raise `NotFound`."""

    async def begin_processing(self, tenant: TenantId, document_id: str, version: int) -> DocumentVersion | None:
        """Move a version that is not visible to ``processing`` (repeatable) and return it; None if overtaken or deleted.

        A version that is visible already stays as it is, and is returned.
        """

    async def save_parsed(
        self, tenant: TenantId, document_id: str, version: int, *, text: str, title: str, metadata: Mapping[str, Any]
    ) -> None:
        """Record a version's parsed text, its title and merged metadata; repeatable.

        Another text than last time drops what was prepared from that one. A version that is visible, or overtaken by a
        visible one, keeps what it has. `NotFound` if the document was deleted.
        """

    async def save_prepared(
        self,
        tenant: TenantId,
        document_id: str,
        version: int,
        prepared: Sequence[PreparedChunk],
        *,
        hand_on: HandOn | None = None,
    ) -> None:
        """Record chunks of a version that is not visible yet, with their vectors and extractions; repeatable, in any batches.

        A version that is visible, or overtaken by a visible one, keeps what it has. With ``hand_on`` the version is whole
        now, and its job goes on its next queue in the same transaction. `NotFound` if the document was deleted.
        """

    async def reuse(
        self, tenant: TenantId, document_id: str, version: int, wanted: Sequence[tuple[Chunk, str]]
    ) -> frozenset[str]:
        """Stage those of ``wanted``, (chunk, recipe), whose results are on record; return their chunk ids.

        On record is what was prepared by the same recipe, without a failure, for this version or, then copied, for another
        one of the document. `NotFound` if the document was deleted.
        """

    async def prepared(self, tenant: TenantId, document_id: str, version: int) -> list[PreparedChunk]:
        """Return what was prepared, in the chunks' order: also of the visible version, and of newer ones that have ended."""

    async def ready(self, tenant: TenantId, document_id: str, version: int) -> Ready:
        """Return a version with its document and what was prepared of it, of one snapshot; `NotFound` as `version`."""

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
        """Make the version the visible one by compare-and-set; drop what older ones had prepared; raise ``state_version``.

        With a ``fence``, `StoreUnavailable` unless that is still the newest of its lease. With an ``ending``, the job ends
        in the same transaction, where the answer is True; asked to stop before, it keeps the version from becoming visible.

        False, with nothing changed, if the document was deleted, a newer version is visible, this one has failed or its job
        was asked to stop.
        Repeating it is True.

        Unless ``keep_original``, the version names no original any more, and the outbox says which one to remove. Later versions
        of the same content are made from its text.
        """

    async def fail(self, tenant: TenantId, document_id: str, version: int, *, state: DocumentState, failure: Failure) -> None:
        """End a version that could not be made visible, as ``failed`` or ``unreadable``; the first ending stands.

        An older visible version stays visible, in its own state (``ready`` or ``partial``), with the failure listed.
        """

    async def tombstone(self, tenant: TenantId, document_id: str, enqueue: Enqueue, *, expected: Expected = None) -> Job:
        """Hide a document at once and record its delete job, in one transaction that also enqueues the job.

        The document's open jobs are asked to stop. The job's ``version`` is the newest one there was, for `purge`.
        `NotFound` if there is none, or it was deleted before; `PreconditionFailed` if it has none of the expected revisions.
        """

    async def blob_keys(self, tenant: TenantId, document_id: str, *, up_to_version: int) -> Sequence[str]:
        """Return the blob keys of versions ≤ ``up_to_version``, a tombstoned document's too; read them before `purge`."""

    async def unknown_blobs(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        """Return those of ``keys`` that no version names, tombstoned documents included."""

    async def purge(self, tenant: TenantId, document_id: str, *, up_to_version: int) -> Mapping[str, int]:
        """Remove a tombstoned document's rows for versions ≤ ``up_to_version``; return the counts by table.

        A document that is not tombstoned keeps everything.
        """

    async def remains(self, tenant: TenantId, document_id: str) -> Mapping[str, int]:
        """Count the rows there are of a document, by table, tombstoned or not: all 0 after its last `purge`."""

    async def drop_versions(self, tenant: TenantId, document_id: str, *, below: int) -> Sequence[str]:
        """Remove versions < ``below`` that a visible one superseded; return the blob keys no version needs any more."""

    async def visible_versions(self, tenant: TenantId) -> dict[str, int]:
        """Return the visible version of every visible document."""

    async def visibility(self, tenant: TenantId, *, since: int | None = None) -> Visibility:
        """Return what changed after state_version ``since``, at the cost of that; everything where that is not on record.

        One snapshot: what is visible now is what was visible at ``since`` with the changes applied.
        """

    async def standings(
        self, tenant: TenantId, *, ids: Sequence[str] | None = None, after: str = "", limit: int = 100
    ) -> list[Standing]:
        """Return up to ``limit`` documents, tombstoned ones too, ordered by id, from behind ``after`` on; of ``ids`` if given."""

    async def visible_chunk_ids(self, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the chunk ids, in reading order, of the visible version of each of those documents that has one."""

    async def take_up(self, tenant: TenantId, document_id: str, enqueue: Callable[[JobKind], Enqueue]) -> Job | None:
        """Give a document a new job, in one transaction, where it lacks the one that would finish what was begun.

        A delete job if it is tombstoned, an ingest job if its newest version waits to be processed; ``enqueue`` is asked
        for what queues it. None, with nothing changed, if it has a job that has not ended, needs none or is gone.
        """

    async def mended(self, tenant: TenantId, document_id: str, *, knowledge: bool) -> None:
        """Raise ``state_version``: another store says other things of a document now, or of one that is gone.

        With ``knowledge`` the graph does, as after `publish`, and communities that rest on it are stale.
        """

    async def hydrate(self, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, VisibleChunk]:
        """Return the chunks that belong to a visible version; others are simply absent."""

    async def chunks(self, tenant: TenantId, document_id: str, *, limit: int, cursor: str | None = None) -> Page[VisibleChunk]:
        """List a visible document's chunks in reading order; `NotFound` if there is no such document."""

    async def counts(self, tenant: TenantId) -> Mapping[str, int]:
        """Count ``documents`` by state and visible ``chunks``: keys ``documents``, ``chunks``, ``documents_<state>``."""
