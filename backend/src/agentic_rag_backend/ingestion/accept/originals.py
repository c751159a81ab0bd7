"""A document's original: the submitted bytes, and a file name for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from agentic_rag_backend.domain.document import Document
from agentic_rag_backend.domain.media_types import FORMATS
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The submitted content. ``file_name`` is the owner's name for it: any text except a path."""

    content: bytes
    media_type: str
    file_name: str
    revision: str


async def read_original(documents: DocumentCatalogue, blobs: BlobStore, tenant: TenantId, document_id: str) -> Original:
    """Return the original of the visible version. Without a visible version, of the newest one.

    Raises:
        NotFound: the document does not exist, or has no original.
    """
    tried = 0
    while True:
        document = await documents.document(tenant, document_id)
        number = document.current_version or document.latest_version
        if number == tried:
            raise NotFound(f"the original of document {document_id!r} is gone")
        try:
            version = await documents.version(tenant, document_id, number)
            content = await blobs.get(tenant, version.blob_key) if version.blob_key else None
        except NotFound:
            tried = number  # a newer version may have superseded it between these reads
            continue
        if content is None:
            raise NotFound(
                f"the original of document {document_id!r} was not kept (KEEP_ORIGINALS=false); its chunks have its text"
            )
        name = file_name(document, version.media_type)
        return Original(content=content, media_type=version.media_type, file_name=name, revision=document.revision)


def file_name(document: Document, media_type: str) -> str:
    """Return the last part of the key if it has the suffix of the media type, else the title with that suffix."""
    suffixes = FORMATS[media_type].suffixes if media_type in FORMATS else ()
    called = PurePath((document.key or "").replace("\\", "/")).name
    if PurePath(called).suffix.lower() in suffixes:
        return called
    return document.title + (suffixes[0] if suffixes else "")
