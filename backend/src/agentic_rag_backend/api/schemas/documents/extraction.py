"""Extraction of documents and chunks that are already stored."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, View
from agentic_rag_backend.api.schemas.documents.documents import FailureView, Method
from agentic_rag_backend.domain.graph import Extraction, normalise_name
from agentic_rag_backend.ingestion.prepare.extracting import ChunkExtraction


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
        known = entities.get(normalise_name(alias.name))
        if known is not None and alias.alias not in known.aliases:
            known.aliases.append(alias.alias)
    return list(entities.values())
