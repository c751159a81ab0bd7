"""Sets of documents as vector stores of OpenAI's protocol, and their documents as files of a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from pydantic import BaseModel

from agentic_rag_backend.api.doors.openai_protocol.file_objects import attributes_of, file_id_of
from agentic_rag_backend.api.doors.openai_protocol.object_pages import ProtocolObject
from agentic_rag_backend.domain.document import Document, DocumentState
from agentic_rag_backend.domain.document_sets import DocumentSet, MemberBatch, StateCounts
from agentic_rag_backend.errors import NotFound

_PREFIX = "vs_"
FileState = Literal["in_progress", "completed", "cancelled", "failed"]
STATES: Mapping[FileState, tuple[DocumentState, ...]] = {
    "in_progress": (DocumentState.PENDING, DocumentState.PROCESSING),
    "completed": (DocumentState.READY, DocumentState.PARTIAL),
    "cancelled": (DocumentState.CANCELLED,),
    "failed": (DocumentState.FAILED, DocumentState.UNREADABLE),
}
"""States of documents by the status of a file."""


@contextmanager
def name_store(store_id: str) -> Iterator[str]:
    """Yield the id of a store's set. An unknown set of the block is reported by the store's id."""
    set_id = store_id.removeprefix(_PREFIX)
    try:
        if set_id == store_id:
            raise NotFound(f"no set has the id {set_id[:80]!r}")
        yield set_id
    except NotFound as error:
        if set_id not in error.message:
            raise
        raise NotFound(f"there is no vector store {store_id[:80]!r}") from None


class FileCounts(BaseModel):
    """Number of files by status."""

    in_progress: int
    completed: int
    cancelled: int
    failed: int
    total: int

    @classmethod
    def of(cls, counts: StateCounts) -> FileCounts:
        """Return the counts of documents as those of files."""
        by_status = {status: counts.count_states(*states) for status, states in STATES.items()}
        return cls(**by_status, total=sum(by_status.values()))


class StoreObject(ProtocolObject):
    """A vector store. ``filter`` is not OpenAI's: it selects the files of a store that has no list of files."""

    object: Literal["vector_store"] = "vector_store"
    created_at: int
    name: str
    description: str
    usage_bytes: int
    file_counts: FileCounts
    status: Literal["in_progress", "completed"]
    expires_after: None = None
    expires_at: None = None
    last_active_at: int
    metadata: dict[str, str]
    filter: dict[str, Any] | None

    @classmethod
    def of(cls, document_set: DocumentSet, counts: StateCounts) -> StoreObject:
        """Return a set as a store. The time of its last use is not recorded, so that of its creation is returned."""
        file_counts = FileCounts.of(counts)
        created_at = int(document_set.created_at.timestamp())
        return cls(
            id=_PREFIX + document_set.id,
            created_at=created_at,
            name=document_set.name,
            description=document_set.description,
            usage_bytes=counts.size_bytes,
            file_counts=file_counts,
            status="in_progress" if file_counts.in_progress else "completed",
            last_active_at=created_at,
            metadata=dict(document_set.labels),
            filter=None if document_set.filter is None else dict(document_set.filter),
        )


class FileError(BaseModel):
    """The failure of a file."""

    code: Literal["server_error", "invalid_file"]
    message: str


class ChunkingKind(BaseModel):
    """The way in which a file is cut: one of the product's own."""

    type: Literal["other"] = "other"


class StoreFile(ProtocolObject):
    """A file of a store. ``attributes`` are the texts, numbers and booleans of the document's metadata."""

    object: Literal["vector_store.file"] = "vector_store.file"
    created_at: int
    vector_store_id: str
    usage_bytes: int
    status: FileState
    last_error: FileError | None
    attributes: dict[str, str | bool | float]
    chunking_strategy: ChunkingKind = ChunkingKind()

    @classmethod
    def of(cls, document: Document, store_id: str) -> StoreFile:
        """Return a document as a file of a store."""
        status: FileState = next((status for status, states in STATES.items() if document.state in states), "failed")
        error = None
        if status == "failed":
            invalid = document.state is DocumentState.UNREADABLE
            message = document.failures[0].message if document.failures else "the document could not be processed"
            error = FileError(code="invalid_file" if invalid else "server_error", message=message)
        return cls(
            id=file_id_of(document.id),
            created_at=int(document.created_at.timestamp()),
            vector_store_id=store_id,
            usage_bytes=document.size_bytes,
            status=status,
            last_error=error,
            attributes=attributes_of(document.metadata),
        )


class StoreFileBatch(ProtocolObject):
    """Files that one request added to a store."""

    object: Literal["vector_store.files_batch"] = "vector_store.files_batch"
    created_at: int
    vector_store_id: str
    status: Literal["in_progress", "completed"]
    file_counts: FileCounts

    @classmethod
    def of(cls, batch: MemberBatch, store_id: str) -> StoreFileBatch:
        """Return a batch of members."""
        counts = FileCounts.of(batch.counts)
        return cls(
            id=batch.id,
            created_at=int(batch.added_at.timestamp()),
            vector_store_id=store_id,
            status="in_progress" if counts.in_progress else "completed",
            file_counts=counts,
        )


class DeletedStore(ProtocolObject):
    """The reply to a deletion."""

    object: Literal["vector_store.deleted"] = "vector_store.deleted"
    deleted: bool = True


class DetachedFile(ProtocolObject):
    """The reply to a removal from a store."""

    object: Literal["vector_store.file.deleted"] = "vector_store.file.deleted"
    deleted: bool = True
