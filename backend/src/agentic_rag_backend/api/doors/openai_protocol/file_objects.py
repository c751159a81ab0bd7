"""Documents as files of OpenAI's protocol. The id of a file is the id of its document in another form."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Literal

from agentic_rag_backend.api.doors.openai_protocol.object_pages import ProtocolObject
from agentic_rag_backend.domain.document import Document, DocumentState
from agentic_rag_backend.domain.media_types import FORMATS
from agentic_rag_backend.errors import NotFound

_PREFIX = "file-"
_SUFFIXES = frozenset(suffix for format in FORMATS.values() for suffix in format.suffixes)


def file_id_of(document_id: str) -> str:
    """Return the id of a document's file."""
    return _PREFIX + document_id.replace("-", "")


def document_id_of(file_id: str) -> str:
    """Return the id of a file's document.

    Raises:
        NotFound: it is no id of a file.
    """
    try:
        document_id = str(uuid.UUID(hex=file_id.removeprefix(_PREFIX)))
    except ValueError:
        document_id = ""
    if file_id_of(document_id) != file_id:
        raise _unknown_file(file_id)
    return document_id


@contextmanager
def name_files(file_ids: Sequence[str]) -> Iterator[list[str]]:
    """Yield the ids of the files' documents. An unknown document of the block is reported by the file's id."""
    by_document = {document_id_of(file_id): file_id for file_id in file_ids}
    try:
        yield list(by_document)
    except NotFound as error:
        unknown = next((file_id for document_id, file_id in by_document.items() if document_id in error.message), None)
        raise (error if unknown is None else _unknown_file(unknown)) from None


@contextmanager
def name_file(file_id: str) -> Iterator[str]:
    """Yield the id of a file's document, as `name_files` does."""
    with name_files([file_id]) as document_ids:
        yield document_ids[0]


def _unknown_file(file_id: str) -> NotFound:
    return NotFound(f"there is no file {file_id[:80]!r}")


def file_name_of(key: str | None, title: str) -> str:
    """Return the last part of a document's key if it has the suffix of a format, or else the title."""
    last_part = PurePath((key or "").replace("\\", "/")).name
    return last_part if PurePath(last_part).suffix.lower() in _SUFFIXES else title


FileStatus = Literal["uploaded", "processed", "error"]


def _status_of(state: DocumentState) -> FileStatus:
    if state.in_processing:
        return "uploaded"
    return "processed" if state in (DocumentState.READY, DocumentState.PARTIAL) else "error"


def attributes_of(metadata: Mapping[str, Any]) -> dict[str, str | bool | float]:
    """Return the texts, numbers and booleans of a document's metadata."""
    return {name: value for name, value in metadata.items() if isinstance(value, str | bool | int | float)}


class FileObject(ProtocolObject):
    """A file. It is ``uploaded`` until its document is ready or has failed; ``status_details`` has the failure."""

    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: None = None
    filename: str
    purpose: Literal["assistants"] = "assistants"
    status: FileStatus
    status_details: str | None

    @classmethod
    def of(cls, document: Document) -> FileObject:
        """Return a document as a file."""
        return cls(
            id=file_id_of(document.id),
            bytes=document.size_bytes,
            created_at=int(document.created_at.timestamp()),
            filename=file_name_of(document.key, document.title),
            status=_status_of(document.state),
            status_details=document.failures[0].message if document.failures else None,
        )


class DeletedFile(ProtocolObject):
    """The reply to a deletion."""

    object: Literal["file"] = "file"
    deleted: bool = True
