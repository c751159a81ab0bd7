"""The vectors' copy of a document's title and metadata."""

from __future__ import annotations

from agentic_rag_backend.domain.document import Document
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.vector.base import VectorStore


async def mirror_labels(documents: DocumentCatalogue, vectors: VectorStore, tenant: TenantId, document_id: str) -> None:
    """Copy title and metadata to the vectors until the copy equals the catalogue.

    Two writers may copy in another order than they wrote. The last one then reads the result of both. A version in processing
    has a title and metadata of its own, which its commit writes.
    """
    copied: Document | None = None
    while True:
        try:
            current = await documents.document(tenant, document_id)
        except NotFound:
            return  # its deletion removes everything
        if copied is not None and (copied.title, copied.metadata) == (current.title, current.metadata):
            return
        await vectors.update_metadata(
            tenant,
            current.id,
            current.metadata,
            title=current.title,
            key=current.key,
            up_to_version=current.latest_version - current.state.in_processing,
        )
        copied = current
