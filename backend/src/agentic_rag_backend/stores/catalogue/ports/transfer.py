"""The port that moves a tenant's whole record: read as it stands for an archive, staged out of sight from one, shown at once.

A tenant that is being filled is in the state ``importing``. Its documents are staged with version 0 visible, so that no
reader finds them, and `TransferCatalogue.open` shows all of them in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from agentic_rag_backend.domain.document import Chunk, DocumentState, Failure, ProcessingOptions
from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.stores.catalogue.base import PreparedChunk
from agentic_rag_backend.stores.catalogue.ports.generations import GenerationPointer


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSnapshot:
    """What a tenant is at ``tenant.state_version``, beside its documents."""

    tenant: Tenant
    flags: Mapping[str, Any]
    pointer: GenerationPointer
    last_generation: int
    """Of those that were ever handed out."""


@dataclass(frozen=True, slots=True)
class DocumentHeader:
    """By what a visible document that was read is known to be the one that is there now."""

    version: int
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """A document with its visible version, whole.

    ``state`` is the version's, ``ready`` or ``partial``. ``key`` is the caller's, or the content's SHA-256. ``title`` and
    ``metadata`` are what is shown, ``submitted_title`` and ``submitted_metadata`` what was handed in.
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
    chunks: tuple[Chunk, ...] = ()
    prepared: tuple[PreparedChunk, ...] = ()
    """Of those chunks whose results are on record; of all of them when it is staged."""

    @property
    def header(self) -> DocumentHeader:
        """By what it is known."""
        return DocumentHeader(self.version, self.updated_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a tenant becomes beside its documents; ``state_version`` is that of the archive."""

    state_version: int
    flags: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 0
    """The current generation of communities, 0 for none."""
    stale: bool = False
    built_at: datetime | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    tree_stale: bool = False
    """Whether documents changed since the tree over passages was built, where there is one."""


class TransferCatalogue(Protocol):
    """What leaves with a tenant, and what arrives with one."""

    async def snapshot(self, tenant: TenantId) -> TenantSnapshot:
        """Return the tenant without its documents, or raise `NotFound`."""

    async def headers(self, tenant: TenantId) -> dict[str, DocumentHeader]:
        """Return the visible documents by id, in the order in which they were handed in."""

    async def record(self, tenant: TenantId, document_id: str) -> DocumentRecord | None:
        """Return a document with its visible version; None where it has none, or is deleted."""

    async def revector(self, tenant: TenantId, document_id: str, version: int, prepared: Sequence[PreparedChunk]) -> None:
        """Replace the vectors of chunks of a visible version, with recipe and failure; what is no more stays away."""

    async def summaries(self, tenant: TenantId) -> list[CommunitySummary]:
        """Return every community summary on record, under whichever prompt and model, the last written last."""

    async def reserve(self, tenant: TenantId) -> None:
        """Make an active, empty tenant one that is being filled; one that is that already must have no job.

        Raises:
            NotFound: there is no such tenant.
            Conflict: it has documents or work under way, or is not active.
        """

    async def staged(self, tenant: TenantId) -> frozenset[str]:
        """Return the ids of the documents that are staged."""

    async def stage(self, tenant: TenantId, record: DocumentRecord) -> None:
        """Record a document of a tenant that is being filled, out of sight; one that is staged already stays as it is.

        Raises:
            Conflict: the tenant is not being filled, or another document has the key.
        """

    async def open(self, tenant: TenantId, opening: Opening) -> None:
        """Show everything that is staged, and make the tenant active, in one transaction; repeatable.

        Every reader finds its ``state_version`` so much higher that nothing read before is taken for current.
        """

    async def abandon(self, tenant: TenantId) -> None:
        """Remove everything that is staged and make the tenant active, and empty; one that was opened keeps all it has."""
