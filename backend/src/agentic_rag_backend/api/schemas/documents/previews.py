"""Previews of chunking."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from agentic_rag_backend.api.schemas.base import Body, View, Whole
from agentic_rag_backend.api.schemas.documents.documents import Chunking, FailureView, Location
from agentic_rag_backend.api.schemas.questions.answers import UsageView
from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.ingestion.prepare.previewing import ChunkPreview

MAX_PREVIEWED_CHUNKS = 1000


class PreviewBody(Body):
    """A document as text, or the id of a stored one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": "# Harbour dredging\n\nThe harbour authority began dredging in May 2019.",
                    "chunking": {"strategy": "structure"},
                }
            ]
        }
    )

    text: str | None = Field(None, description="a text of `media_type`")
    document_id: str | None = Field(None, max_length=64, description="a stored document, instead of `text`")
    media_type: str = Field("text/markdown", max_length=200, description="media type of `text`; `text/x-python` is source code")
    chunking: Chunking | None = Field(None, description="default: the defaults of an upload")
    limit: Whole = Field(100, ge=1, le=MAX_PREVIEWED_CHUNKS, description="maximum chunks to return; `count` has all of them")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.text is None) == (self.document_id is None):
            raise ValueError("give either text or document_id")
        return self


class PreviewedChunk(View):
    ordinal: int
    parent_id: str | None = Field(description="chunks with the same one have one parent (strategy `parent_child`)")
    content: str
    size_tokens: int
    statements: list[str] = Field(description="what search finds it by, instead of its content (strategy `proposition`)")
    location: Location

    @classmethod
    def of(cls, chunk: Chunk) -> PreviewedChunk:
        """Return the view of a chunk."""
        return cls(
            ordinal=chunk.ordinal,
            parent_id=chunk.parent_id,
            content=chunk.text,
            size_tokens=chunk.size_tokens,
            statements=list(chunk.location.statements),
            location=Location.of(chunk),
        )


class AppliedChunking(View):
    """The options with all defaults."""

    strategy: str
    chunk_size: int
    overlap: int
    unit: str
    percentile: int
    parent_size: int


class PreviewView(View):
    """The chunks that a document would have. Nothing was stored."""

    media_type: str
    characters: int = Field(description="length of the document's text")
    chunking: AppliedChunking
    count: int = Field(description="number of chunks")
    size_tokens: int = Field(description="tokens of all chunks; an overlap counts in both")
    chunks: list[PreviewedChunk] = Field(description="the first `limit` chunks in reading order")
    warnings: list[str] = Field(description="how the text may differ from the file, such as: the encoding was detected")
    failures: list[FailureView] = Field(description="what could not be done as asked, such as a strategy whose model failed")
    usage: UsageView = Field(description="calls and tokens of the language model")

    @classmethod
    def of(cls, preview: ChunkPreview, *, limit: int) -> PreviewView:
        """Return the view of a preview, with the first ``limit`` chunks."""
        document = preview.document
        return cls(
            media_type=preview.media_type,
            characters=len(document.parsed.text),
            chunking=AppliedChunking.model_validate(preview.options),
            count=len(document.chunks),
            size_tokens=sum(chunk.size_tokens for chunk in document.chunks),
            chunks=[PreviewedChunk.of(chunk) for chunk in document.chunks[:limit]],
            warnings=list(document.parsed.warnings),
            failures=[FailureView.of(failure) for failure in document.failures],
            usage=UsageView.model_validate(document.usage),
        )
