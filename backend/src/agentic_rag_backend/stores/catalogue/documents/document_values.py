"""Values that the catalogue takes and returns for documents, their versions, chunks and synthetic questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
    QuestionOptions,
    SyntheticQuestion,
)
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage

Enqueue = Callable[[Connection, TenantId, Job], None]
"""Enqueues a job on its durable queue, in the open transaction that it is given (a synchronous connection)."""
Expected = frozenset[str] | None
"""Revisions (`Document.revision`) that a write accepts. `ANY_REVISION` accepts any existing document. None skips the check.

The check runs in the transaction that changes the document. Of two writers that read the same revision, only one succeeds.
"""
ANY_REVISION = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Selects documents that match every given field. A document has one of ``states``, if there are any."""

    filter: Filter | None = None
    states: frozenset[DocumentState] = frozenset()
    key: str | None = None
    parent_id: str | None = None
    set_id: str | None = None
    """Only members of this set of documents."""
    batch_id: str | None = None
    """Only members of a set that were added by this request."""
    name: str | None = None
    """Only documents with this title, or with a key that is this name of a file, with or without folders. Case does not count."""


EVERY_DOCUMENT = Matching()


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
class PreparedQuestion:
    """A question with its vector. None: the embedder refused the question, so search does not find it."""

    question: SyntheticQuestion
    vector: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class ChunkQuestions:
    """The questions of a chunk, 0 to 3, each text once.

    ``recipe`` is a hash of their inputs and models. Questions with a ``failure``, such as that of a model that patterns
    replaced, are not reused.
    """

    recipe: str
    items: tuple[PreparedQuestion, ...] = ()
    failure: Failure | None = None


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
class JobEnding:
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
