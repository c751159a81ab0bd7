"""Bodies of requests for vector stores. Parameters that are not listed are accepted, and have no effect."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.errors import InvalidRequest

MAX_FILES = 500
MAX_PAIRS = 16

FileId = Annotated[str, StringConstraints(max_length=64)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
_Text = Annotated[str, StringConstraints(max_length=512)]
Attributes = Annotated[dict[_Name, bool | int | float | _Text | None], Field(max_length=MAX_PAIRS)]
Labels = Annotated[dict[_Name, _Text], Field(max_length=MAX_PAIRS)]


class StoreModel(BaseModel):
    """A part of a body."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class _StaticSizes(StoreModel):
    """Sizes of chunks in tokens."""

    max_chunk_size_tokens: int
    chunk_overlap_tokens: int


class ChunkingChoice(StoreModel):
    """``auto`` keeps the chunks of a file. ``static`` cuts it again."""

    type: Literal["auto", "static"]
    static: _StaticSizes | None = None


class ChunkedFiles(StoreModel):
    """A body with files that may be cut again."""

    chunking_strategy: ChunkingChoice | None = None

    @property
    def chunking(self) -> ChunkingOptions | None:
        """Options of other chunks; None: the chunks stay."""
        choice = self.chunking_strategy
        if choice is None or choice.type == "auto":
            return None
        if choice.static is None:
            raise InvalidRequest("chunking_strategy 'static' needs 'static' with sizes", field="chunking_strategy")
        return ChunkingOptions(chunk_size=choice.static.max_chunk_size_tokens, overlap=choice.static.chunk_overlap_tokens)


class StoreChange(StoreModel):
    """Changes of a store. Null keeps a value."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Minutes of the council"}]})

    name: Annotated[str, StringConstraints(max_length=256)] | None = None
    description: _Text | None = None
    metadata: Labels | None = None
    expires_after: dict[str, Any] | None = None

    def require_no_expiry(self) -> None:
        """Refuse a time of expiry."""
        if self.expires_after is not None:
            raise InvalidRequest(
                "vector stores do not expire; delete them instead of sending 'expires_after'", field="expires_after"
            )


class NewStore(StoreChange, ChunkedFiles):
    """A store of some files, or of the files whose documents pass ``filter``, which is not OpenAI's."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "Minutes", "file_ids": ["file-5f0c7e1a9b2d5c3e8f60718293a4b5c6"]},
                {"name": "Reports of 2019", "filter": {"category": "report", "year": 2019}},
            ]
        }
    )

    file_ids: Annotated[list[FileId], Field(max_length=MAX_FILES)] | None = None
    filter: dict[str, Any] | None = Field(None, description="the filter grammar of searches; see docs/reference/filters.md")


class FileAttributes(StoreModel):
    """Attributes of a file, which are metadata of its document. Null removes an attribute."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"attributes": {"category": "minutes", "year": 2019}}]})

    attributes: Attributes | None = None


class AddedFile(FileAttributes, ChunkedFiles):
    """A file to add."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"file_id": "file-5f0c7e1a9b2d5c3e8f60718293a4b5c6", "attributes": {"category": "minutes"}}]
        }
    )

    file_id: FileId


class AddedFiles(FileAttributes, ChunkedFiles):
    """Files to add: ``file_ids`` with the same attributes, or ``files`` with their own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"file_ids": ["file-5f0c7e1a9b2d5c3e8f60718293a4b5c6"]}]})

    file_ids: Annotated[list[FileId], Field(min_length=1, max_length=MAX_FILES)] | None = None
    files: Annotated[list[AddedFile], Field(min_length=1, max_length=MAX_FILES)] | None = None

    def list_files(self) -> list[AddedFile]:
        """Return the files with their attributes."""
        if (self.file_ids is None) == (self.files is None):
            raise InvalidRequest("send either 'file_ids' or 'files'")
        shared = {"attributes": self.attributes, "chunking_strategy": self.chunking_strategy}
        return self.files or [AddedFile(file_id=file_id, **shared) for file_id in self.file_ids or ()]  # type: ignore[arg-type]
