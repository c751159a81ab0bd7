"""Extraction of stored chunks, and previews of chunking."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from agentic_rag_backend.api.schemas.base import Body, View
from agentic_rag_backend.api.schemas.documents.documents import Chunking, FailureView, Location, Method
from agentic_rag_backend.api.schemas.questions.answers import UsageView
from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import Extraction, normalise_name
from agentic_rag_backend.ingestion.prepare.estimating import IngestionEstimate
from agentic_rag_backend.ingestion.prepare.extracting import ChunkExtraction
from agentic_rag_backend.ingestion.prepare.previewing import ChunkPreview
from agentic_rag_backend.retrieval.options.filters import Whole


class ExtractionBody(Body):
    """Options of extraction."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"extraction": "rules"}]})

    extraction: Method | None = Field(None, description="method, which the document keeps; default: the document's own")


class ChunkExtractionBody(ExtractionBody):
    """Options of the extraction of a chunk."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"extraction": "rules", "dry_run": True}]})

    dry_run: bool = Field(False, strict=True, description="return the knowledge of the chunk and write nothing to the graph")


class FoundEntity(View):
    """A name of the chunk."""

    name: str
    type: str
    aliases: list[str] = Field(description="other names for it in the chunk")
    count: int = Field(description="number of its occurrences in the chunk's text; 0: title, heading or metadata name it")
    about: bool = Field(description="whether the document's title, a heading or metadata names it")


class FoundRelationship(View):
    """A relationship between two names."""

    source: str
    relation: str
    target: str
    fact: str = Field(description="the text that states it, as the chunk has it")
    confidence: float
    valid_at: str | None
    invalid_at: str | None


class ChunkExtractionView(View):
    """Knowledge that an extraction finds in a chunk. Names are not resolved to entities of the graph."""

    chunk_id: str
    document_id: str
    extraction: str = Field(description="method that found it")
    entities: list[FoundEntity]
    relationships: list[FoundRelationship]
    rejected: int = Field(description="names and relationships of the language model that the chunk does not contain")
    failure: FailureView | None

    @classmethod
    def of(cls, extracted: ChunkExtraction) -> ChunkExtractionView:
        """Return the view of a chunk's knowledge."""
        extraction = extracted.found
        return cls(
            chunk_id=extraction.chunk_id,
            document_id=extracted.document_id,
            extraction=extracted.method,
            entities=_entities(extraction),
            relationships=[
                FoundRelationship(
                    source=relationship.source,
                    relation=relationship.relation,
                    target=relationship.target,
                    fact=relationship.fact,
                    confidence=relationship.confidence,
                    valid_at=relationship.valid_at,
                    invalid_at=relationship.invalid_at,
                )
                for relationship in extraction.relationships
            ],
            rejected=extraction.rejected,
            failure=FailureView.of(extraction.failure) if extraction.failure else None,
        )


def _entities(extraction: Extraction) -> list[FoundEntity]:
    """Return an entity for each name, in the order of their first mentions."""
    entities: dict[str, FoundEntity] = {}
    for mention in extraction.mentions:
        key = normalise_name(mention.name)
        entity = entities.setdefault(key, FoundEntity(name=mention.name, type=mention.type, aliases=[], count=0, about=False))
        entities[key] = entity.model_copy(
            update={"count": entity.count + (not mention.about), "about": entity.about or mention.about}
        )
    for alias in extraction.aliases:
        base_entity = entities.get(normalise_name(alias.name))
        if base_entity is not None and alias.alias not in base_entity.aliases:
            base_entity.aliases.append(alias.alias)
    return list(entities.values())


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
    extraction: Method | None = Field(None, description="method of extraction for `ingestion`; default: that of an upload")
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


class IngestionEstimateView(View):
    """What models would cost to ingest the document, except synthetic questions and later summaries."""

    extraction: str = Field(description="method of extraction")
    model_calls: int
    prompt_tokens: int
    completion_tokens: int = Field(description="by the average length of a reply")
    embedding_tokens: int = Field(description="tokens of all passages; 0 for an embedder in the server's process")
    cost: float | None = Field(description="by MODEL_PRICES; null if the price of a model is unknown")

    @classmethod
    def of(cls, estimate: IngestionEstimate) -> IngestionEstimateView:
        """Return the view of an estimate."""
        usage = estimate.extraction
        return cls(
            extraction=estimate.method,
            model_calls=usage.calls,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            embedding_tokens=estimate.embedding_tokens,
            cost=estimate.cost,
        )


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
    ingestion: IngestionEstimateView | None = Field(description="expected cost; null for `graphiti`, whose calls are not known")

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
            ingestion=None if preview.estimate is None else IngestionEstimateView.of(preview.estimate),
        )
