"""The catalogue's ports, one a noun, all answered by one SQL engine: the record of what exists and what is visible.

Contract, which `testing.catalogue` checks on every adapter: the tenant is the first argument wherever data is a
tenant's; unknown and foreign ids raise the same `NotFound`; every change that can alter an answer raises the tenant's
``state_version`` in its own transaction; times are aware and UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

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
from agentic_rag_backend.domain.graph import CommunitySummary, Extraction
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import ApiKey, Principal, Scope, Tenant, TenantId
from agentic_rag_backend.stores.catalogue.idempotency import IdempotencyKeys
from agentic_rag_backend.stores.catalogue.liveness import Fence
from agentic_rag_backend.stores.catalogue.outbox import Outbox
from agentic_rag_backend.stores.catalogue.trees import TreeCatalogue

Enqueue = Callable[[Connection, TenantId, Job], None]
"""Puts a job on its durable queue, through the open transaction it is given (a synchronous connection of it)."""

Expected = frozenset[str] | None
"""Revisions (`Document.revision`) one of which the document must have; `ANY_REVISION` for whichever; None: no matter.

Compared in the transaction that changes the document, so that of two writers who read the same revision one wins.
"""
ANY_REVISION = "*"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A slice of a list; ``next_cursor`` is None on the last one."""

    items: tuple[T, ...]
    next_cursor: str | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityPointer:
    """The current generation (0: none yet), and whether the graph has changed since."""

    generation: int
    stale: bool
    built_at: datetime | None = None
    state_version: int = 0
    """The ``built_from`` it was published with."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Counts per level, summaries reused and written, tokens, modularity."""


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


class JobCatalogue(Protocol):
    """Jobs as their owner sees them; the durable queue behind them is `jobs`' affair."""

    async def create(
        self, tenant: TenantId, kind: JobKind, arguments: Mapping[str, Any], enqueue: Enqueue, *, join: bool = False
    ) -> Job:
        """Record and enqueue a job that has no document; with ``join``, return one of that kind not yet ended instead."""

    async def job(self, tenant: TenantId, job_id: str) -> Job:
        """Return the job or raise `NotFound`."""

    async def jobs(
        self,
        tenant: TenantId,
        *,
        limit: int,
        cursor: str | None = None,
        state: JobState | None = None,
        kind: JobKind | None = None,
        document_id: str | None = None,
    ) -> Page[Job]:
        """List jobs, newest first."""

    async def start(self, tenant: TenantId, job_id: str) -> Job:
        """Mark the job running (repeatable) and return it."""

    async def progress(self, tenant: TenantId, job_id: str, *, stage: str, done: int, total: int, message: str = "") -> bool:
        """Record how far the job is; return whether cancelling was requested."""

    async def hand_back(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Mark a running job queued again: the process that ran it has ended. Another attempt, or another state, stays."""

    async def remember(self, tenant: TenantId, job_id: str, name: str, value: Any) -> Any:
        """Keep a JSON value with a job, for all its attempts; return what is kept: the first value of a name stands."""

    async def finish(
        self,
        tenant: TenantId,
        job_id: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        progress: tuple[str, int, int] | None = None,
    ) -> None:
        """Record how the job ended, and with ``progress`` its last stage, done and total; the first ending stands."""

    async def request_cancel(self, tenant: TenantId, job_id: str) -> Job:
        """Ask a job to stop; `Conflict` if it has ended."""

    async def retry(self, tenant: TenantId, job_id: str, enqueue: Enqueue) -> Job:
        """Queue a failed, partial or cancelled job again with the next attempt number; `Conflict` otherwise.

        An ingest job's version can be processed again then; one that is visible in part stays, and the job gets a new
        ``version`` of the same input. `Conflict` if the document was deleted or the version overtaken.
        """

    async def last(self, tenant: TenantId, kind: JobKind) -> Job | None:
        """Return the newest job of a kind."""

    async def pending_documents(self, tenant: TenantId, *, queued_before: datetime) -> int:
        """Count the jobs recorded by then that may still make a version of a document visible, and are not asked to stop."""

    async def hand_back_all(self) -> int:
        """Mark every running job queued again, of all tenants: where one process owns the database, none runs at its start."""


class TenantDirectory(Protocol):
    """Tenants, their keys and flags; not tenant-scoped itself, used by `tenancy` only."""

    async def create(self, name: str, *, tenant_id: TenantId | None = None) -> Tenant:
        """Create a tenant; `Conflict` if the name is taken."""

    async def tenant(self, tenant: TenantId) -> Tenant:
        """Return the tenant or raise `NotFound`."""

    async def tenant_by_name(self, name: str) -> Tenant | None:
        """Return the tenant of that name."""

    async def tenants(self, *, limit: int, cursor: str | None = None) -> Page[Tenant]:
        """List tenants by creation."""

    async def known(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return those of ``ids`` that are tenants here."""

    async def removed(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return those of ``ids`` whose removal is on record."""

    async def rebuilds_due(
        self, quiet_since: datetime, stale_since: datetime, asked_before: datetime, *, limit: int
    ) -> list[TenantId]:
        """Return tenants whose communities are stale and are to be rebuilt, those that wait longest first.

        Either their documents last changed at ``quiet_since`` or earlier, or they have been stale since ``stale_since`` or
        earlier; and neither does a rebuild wait or run, nor was one asked for after the last change and ``asked_before``.
        """

    async def mark_deleting(self, tenant: TenantId) -> None:
        """Refuse further requests of the tenant."""

    async def remove(self, tenant: TenantId) -> Mapping[str, int]:
        """Remove every row of the tenant in every table and record its removal; return the counts by table."""

    async def add_key(
        self, tenant: TenantId, *, name: str, secret_sha256: str, scopes: Sequence[Scope], key_id: str | None = None
    ) -> ApiKey:
        """Record a key by its secret's SHA-256 (hex). ``key_id``: its id, which only one of several processes can give;
        `Conflict` if it or the secret is in use, revoked keys included."""

    async def keys(self, tenant: TenantId) -> Sequence[ApiKey]:
        """List a tenant's keys, revoked ones included."""

    async def revoke_key(self, tenant: TenantId, key_id: str) -> None:
        """Make a key useless from the next request on, or raise `NotFound`."""

    async def authenticate(self, secret_sha256: str) -> Principal | None:
        """Return who holds the key, with tenant, flags and state_version, in one statement; None if nobody does."""

    async def flags(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the flags the tenant has set."""

    async def set_flags(self, tenant: TenantId, flags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set flags (None removes one) and raise ``state_version``; return those now set."""


class CommunityCatalogue(Protocol):
    """Summaries, and which generation of communities is current."""

    async def pointer(self, tenant: TenantId) -> CommunityPointer:
        """Return the current generation; generation 0 before the first build."""

    async def rebuild_asked(self, tenant: TenantId) -> None:
        """Note that a rebuild was asked for now, by itself."""

    async def next_generation(self, tenant: TenantId) -> int:
        """Return a generation number that was never used."""

    async def publish_generation(self, tenant: TenantId, generation: int, *, built_from: int, details: Mapping[str, Any]) -> None:
        """Make ``generation`` current and raise ``state_version``. ``built_from`` is the state_version the graph was
        read at (read it before the graph): if documents changed since, the pointer is stale at once; flags and
        generations do not make it stale. `Conflict` if a newer generation is current, or this one was never handed out."""

    async def summaries(
        self, tenant: TenantId, fingerprints: Sequence[str], *, prompt_version: str | None = None, model: str | None = None
    ) -> dict[str, CommunitySummary]:
        """Return the summaries that exist for those fingerprints under that prompt and model; the last written under any
        where they are not named (which is what readers show)."""

    async def save_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries; the same fingerprint, prompt and model again replaces."""

    async def summaries_resting_on(self, tenant: TenantId, document_id: str) -> list[CommunitySummary]:
        """Return the summaries of which anything rests on passages of the document, in the order in which they were written."""

    async def replace_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries in the place of all there are of their fingerprints, whatever wrote those."""

    async def drop_summaries(self, tenant: TenantId, *, keep: Sequence[str]) -> int:
        """Remove summaries whose fingerprint is not among ``keep``; return how many went."""


class Catalogue(Protocol):
    """The engine with its ports."""

    @property
    def documents(self) -> DocumentCatalogue: ...

    @property
    def jobs(self) -> JobCatalogue: ...

    @property
    def tenants(self) -> TenantDirectory: ...

    @property
    def communities(self) -> CommunityCatalogue: ...

    @property
    def trees(self) -> TreeCatalogue: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def idempotency(self) -> IdempotencyKeys: ...

    async def migrate(self) -> None:
        """Bring the schema to this release's version; repeatable."""

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the database answers."""

    async def close(self) -> None:
        """Release connections; further calls fail."""
