"""Extraction of a single chunk, without writing anything to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import Chunk, CodeRelation, DocumentVersion
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.media_types import FORMATS
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.ingestion.accept.uploads import checked_method
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.ingestion.prepare.reading import IsolatedReader
from agentic_rag_backend.knowledge.extraction.base import Origin
from agentic_rag_backend.knowledge.extraction.fields import with_fields
from agentic_rag_backend.knowledge.extraction.methods import RULES
from agentic_rag_backend.knowledge.model_calls import VersionRecord
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, ModelResultCatalogue, TenantDirectory

GROUP_SIZE = 64
"""Chunks of a document that are extracted together; see `IngestionOptions`."""


@dataclass(frozen=True, slots=True)
class ChunkExtraction:
    """Knowledge of a chunk of a visible version, and the method that found it."""

    document_id: str
    method: str
    found: Extraction


@dataclass(frozen=True, slots=True)
class ChunkExtractions:
    """Extracts from stored chunks. Replies of a model are recorded with the document, so that they are paid once."""

    documents: DocumentCatalogue
    tenants: TenantDirectory
    results: ModelResultCatalogue
    computation: Computation
    reader: IsolatedReader

    async def document_of(self, tenant: TenantId, chunk_id: str) -> str:
        """Return the document of a chunk. Raises `NotFound` if no visible version has the chunk."""
        chunks = await self.documents.hydrate(require_tenant(tenant), [chunk_id])
        if chunk_id not in chunks:
            raise _refuse_unknown_chunk(chunk_id)
        return chunks[chunk_id].chunk.document_id

    async def of_chunk(self, tenant: TenantId, chunk_id: str, method: str | None = None) -> ChunkExtraction:
        """Return the knowledge that an extraction of the chunk finds now.

        Args:
            method: None: the document's own.

        Raises:
            NotFound: no visible version has the chunk.
            InvalidRequest: the method is not known, or needs a language model.
            ModelUnavailable: the model does not answer.
        """
        document_id = await self.document_of(tenant, chunk_id)
        document = await self.documents.document(tenant, document_id)
        version = await self.documents.version(tenant, document_id, document.current_version)
        used = version.options.extraction
        if method is not None:
            used = checked_method(method, self.computation.extraction)
        ontology = await self.tenants.ontology(tenant)
        record = VersionRecord(self.results, tenant, document_id, version.version)
        group = await self._read_group(tenant, document_id, chunk_id)
        if used != RULES:  # the model is asked about this chunk only
            group = [chunk for chunk in group if chunk.id == chunk_id]
        code = await self._read_code_relations(tenant, version)
        origin = Origin(tenant, document_id, document_date("", document.metadata))
        computation = self.computation.make_computation(used, ontology, record, origin=origin, code=code)
        extractions = await computation.extract(version.title, group)
        with_names = with_fields(extractions, document.metadata, ontology)
        return ChunkExtraction(
            document_id, used, next(extraction for extraction in with_names if extraction.chunk_id == chunk_id)
        )

    async def _read_code_relations(self, tenant: TenantId, version: DocumentVersion) -> Sequence[CodeRelation]:
        """Return the relations of a file of source code, whose text is the file."""
        if FORMATS[version.media_type].language is None:
            return ()
        parsed, _ = await self.reader.read_version(tenant, version, version.text, waiting=True)
        return parsed.code

    async def _read_group(self, tenant: TenantId, document_id: str, chunk_id: str) -> list[Chunk]:
        """Return the chunks that are extracted together with a chunk."""
        order = (await self.documents.visible_chunk_ids(tenant, [document_id])).get(document_id, ())
        if chunk_id not in order:
            raise _refuse_unknown_chunk(chunk_id)
        start = order.index(chunk_id) // GROUP_SIZE * GROUP_SIZE
        group = order[start : start + GROUP_SIZE]
        chunks = await self.documents.hydrate(tenant, group)
        if chunk_id not in chunks:
            raise _refuse_unknown_chunk(chunk_id)
        return [chunks[member_id].chunk for member_id in group if member_id in chunks]


def _refuse_unknown_chunk(chunk_id: str) -> NotFound:
    return NotFound(f"chunk {chunk_id[:64]!r} does not exist")
