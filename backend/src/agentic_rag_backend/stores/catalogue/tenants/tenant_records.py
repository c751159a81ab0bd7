"""Values of an export and an import: a tenant, its documents, and what opens it.

A tenant during an import is in the state ``importing``. Its documents are staged with version 0 visible, so that readers do
not find them. `TransferCatalogue.open` makes all of them visible in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from agentic_rag_backend.domain.document import Chunk, DocumentState, Failure, ProcessingOptions
from agentic_rag_backend.domain.evaluation import EvaluationCase
from agentic_rag_backend.domain.graph_edits import GraphEdit
from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.stores.catalogue.documents.document_values import PreparedChunk
from agentic_rag_backend.stores.catalogue.summaries.generations import GenerationPointer


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSnapshot:
    """A tenant at ``tenant.state_version``, without its documents."""

    tenant: Tenant
    flags: Mapping[str, Any]
    ontology: Ontology | None
    """The ontology that the tenant has set."""
    pointer: GenerationPointer
    last_generation: int
    """The highest generation number that was ever allocated."""


@dataclass(frozen=True, slots=True)
class DocumentHeader:
    """Identifies the state of a visible document, to detect a change since it was read."""

    version: int
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """A document with its complete visible version.

    ``state`` is the state of the version, ``ready`` or ``partial``. ``key`` is the caller's key, or the content's SHA-256.
    ``title`` and ``metadata`` are shown to readers; ``submitted_title`` and ``submitted_metadata`` come from the caller.
    """

    id: str
    version: int
    key: str
    state: DocumentState
    title: str
    submitted_title: str
    metadata: Mapping[str, Any]
    submitted_metadata: Mapping[str, Any]
    content_hash: str
    media_type: str
    size_bytes: int
    blob_key: str
    options: ProcessingOptions
    text: str
    created_at: datetime
    updated_at: datetime
    version_created_at: datetime
    failures: tuple[Failure, ...] = ()
    parent_id: str | None = None
    place: str | None = None
    chunks: tuple[Chunk, ...] = ()
    prepared: tuple[PreparedChunk, ...] = ()
    """The chunks with recorded results. A record to stage has results for all its chunks."""

    @property
    def header(self) -> DocumentHeader:
        """The header of this document."""
        return DocumentHeader(self.version, self.updated_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The state of a tenant after an import, without its documents. ``state_version`` comes from the archive."""

    state_version: int
    flags: Mapping[str, Any] = field(default_factory=dict)
    ontology: Ontology | None = None
    edits: tuple[GraphEdit, ...] = ()
    """Edits of the graph, with their numbers."""
    generation: int = 0
    """The current generation of communities. 0 means none."""
    stale: bool = False
    built_at: datetime | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    tree_stale: bool = False
    """Whether documents changed since the passage tree was built. False without a tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedDataset:
    """A dataset without its cases."""

    id: str
    name: str
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedCase:
    """A case of the versions from ``added_in`` to before ``removed_in``. ``case.documents`` are those whose texts it has."""

    dataset_id: str
    number: int
    id: str
    added_in: int
    removed_in: int | None
    case: EvaluationCase


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFeedback:
    """Feedback, with the documents that its texts may quote."""

    id: str
    answer_id: str
    key_id: str
    citation: int | None
    result: str | None
    chunk_id: str | None
    strategy: str
    generator: str
    confidence: float
    estimate: float | None
    grounded: bool
    question_hash: str | None
    rating: str
    reason: str | None
    correction: str | None
    question: str | None
    texts_removed: bool
    created_at: datetime
    updated_at: datetime
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedScore:
    """One score of a submission."""

    id: str
    metric: str
    day: date
    strategy: str
    configuration: str
    value: float
    computed: bool


EvaluationRecord = ArchivedDataset | ArchivedCase | ArchivedFeedback | ArchivedScore
