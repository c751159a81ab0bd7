"""The transfer port: reads a snapshot of a tenant for an archive, stages an archive unseen, and opens it.

A tenant during an import is in the state ``importing``. Its documents are staged with version 0 visible, so that readers do
not find them. `TransferCatalogue.open` makes all of them visible in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from agentic_rag_backend.domain.document import Chunk, DocumentState, Failure, ProcessingOptions
from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.graph_edits import GraphEdit
from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.stores.catalogue.base import PreparedChunk
from agentic_rag_backend.stores.catalogue.ports.generations import GenerationPointer


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


class TransferCatalogue(Protocol):
    """Export and import of a tenant's record."""

    async def snapshot(self, tenant: TenantId) -> TenantSnapshot:
        """Return the tenant without its documents, or raise `NotFound`."""

    async def headers(self, tenant: TenantId) -> dict[str, DocumentHeader]:
        """Return the headers of visible documents by id, in order of submission."""

    async def record(self, tenant: TenantId, document_id: str) -> DocumentRecord | None:
        """Return a document with its visible version. None if it has no visible version or is deleted."""

    async def revector(self, tenant: TenantId, document_id: str, version: int, prepared: Sequence[PreparedChunk]) -> None:
        """Replace the vectors, recipes and failures of chunks of a visible version. Removed chunks are not recreated."""

    async def summaries(self, tenant: TenantId) -> list[CommunitySummary]:
        """Return all recorded community summaries, of every prompt and model, in the order of writing."""

    async def reserve(self, tenant: TenantId) -> None:
        """Put an active, empty tenant into the state ``importing``. A tenant already in that state must have no job.

        Raises:
            NotFound: the tenant does not exist.
            Conflict: it has documents or open jobs, or is not active.
        """

    async def staged(self, tenant: TenantId) -> frozenset[str]:
        """Return the ids of the staged documents."""

    async def stage(self, tenant: TenantId, record: DocumentRecord) -> None:
        """Record a document of a tenant in the state ``importing``, unseen by readers. A staged document is not changed.

        Raises:
            Conflict: the tenant is not being imported, or another document has the key.
        """

    async def open(self, tenant: TenantId, opening: Opening) -> None:
        """Make all staged documents visible and the tenant active, in one transaction. Idempotent.

        An attachment whose message was not staged becomes a document that was uploaded by itself.
        ``state_version`` rises so far that readers discard everything they cached before.
        """

    async def abandon(self, tenant: TenantId) -> None:
        """Remove all staged documents, and make the tenant active and empty. An opened tenant is not changed."""
