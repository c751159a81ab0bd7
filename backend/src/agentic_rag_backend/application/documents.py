"""Documents of a caller's tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.document import (
    MAX_ATTACHMENTS,
    ChunkingOptions,
    Document,
    ParentPassage,
    QuestionOptions,
    SyntheticQuestion,
    VisibleChunk,
)
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.errors import NotFound, StoreUnavailable
from agentic_rag_backend.ingestion.accept.originals import Original
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.ingestion.document_pages import DocumentPage
from agentic_rag_backend.ingestion.prepare.extracting import ChunkExtraction
from agentic_rag_backend.ingestion.prepare.previewing import ChunkPreview
from agentic_rag_backend.ingestion.service import Deleting
from agentic_rag_backend.knowledge.visible.entity_reader import ChunkKnowledge
from agentic_rag_backend.stores.catalogue.base import EVERY_DOCUMENT, Expected, Matching, Page, Submitted


@dataclass(frozen=True, slots=True)
class ChunkDetail:
    """A chunk, the ids of its document's chunks in reading order, the parent around it, and what the graph has from it.

    ``warnings`` say what could not be read.
    """

    visible: VisibleChunk
    order: Sequence[str]
    parent: ParentPassage | None
    questions: Sequence[SyntheticQuestion]
    knowledge: ChunkKnowledge
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentService:
    """Accepts, changes, reads and deletes documents. A document of another tenant does not exist: `NotFound`."""

    container: Container

    @requires(Scope.WRITE)
    async def submit_document(self, caller: Principal, upload: Upload) -> Submitted:
        """Accept a document. See `IngestionService.submit`."""
        return await self.container.ingestion.submit(caller.tenant.id, upload)

    @requires(Scope.READ, filtered=True)
    async def list_documents(
        self,
        caller: Principal,
        matching: Matching = EVERY_DOCUMENT,
        *,
        limit: int,
        cursor: str | None = None,
        after: str | None = None,
        oldest_first: bool = False,
    ) -> Page[Document]:
        """List documents, newest first. ``after`` is the id of the document before the page."""
        return await self.container.catalogue.documents.documents(
            caller.tenant.id, matching, limit=limit, cursor=cursor, after=after, oldest_first=oldest_first
        )

    @requires(Scope.READ, filtered=True)
    async def get_document(self, caller: Principal, document_id: str) -> tuple[Document, Sequence[Document]]:
        """Return a document, and the documents of its attachments, oldest first."""
        documents = self.container.catalogue.documents
        document = await documents.document(caller.tenant.id, document_id)
        attachments = await documents.documents(caller.tenant.id, Matching(parent_id=document_id), limit=MAX_ATTACHMENTS)
        return document, attachments.items

    @requires(Scope.READ, filtered=True)
    async def list_chunks(
        self, caller: Principal, document_id: str, *, limit: int, cursor: str | None = None
    ) -> tuple[Page[VisibleChunk], Mapping[str, Sequence[SyntheticQuestion]]]:
        """List the visible version's chunks in reading order, with the synthetic questions of each by its id."""
        page = await self.container.catalogue.documents.chunks(caller.tenant.id, document_id, limit=limit, cursor=cursor)
        ids = [visible.chunk.id for visible in page.items]
        return page, await self.container.catalogue.questions.of_chunks(caller.tenant.id, ids)

    @requires(Scope.READ, filtered=True)
    async def get_chunk(self, caller: Principal, chunk_id: str) -> ChunkDetail:
        """Return a chunk of a visible version. If the graph store does not answer, what it has is left out."""
        documents, tenant = self.container.catalogue.documents, caller.tenant.id
        visible = (await documents.hydrate(tenant, [chunk_id])).get(chunk_id)
        if visible is None:
            raise NotFound(f"chunk {chunk_id[:64]!r} does not exist")
        document_id, parent_id = visible.chunk.document_id, visible.chunk.parent_id
        order = (await documents.visible_chunk_ids(tenant, [document_id])).get(document_id, ())
        parents = await documents.parents(tenant, [chunk_id]) if parent_id is not None else {}
        questions = await self.container.catalogue.questions.of_chunks(tenant, [chunk_id])
        knowledge, warnings = ChunkKnowledge(), tuple[str, ...]()
        try:
            knowledge = await self.container.entities.of_chunk(caller.tenant, visible)
        except StoreUnavailable as error:  # the text can be read without the graph
            warnings = (f"entities and relationships are left out: {error.code}",)
        return ChunkDetail(visible, order, parents.get(parent_id or ""), questions.get(chunk_id, ()), knowledge, warnings)

    @requires(Scope.READ, filtered=True)
    async def read_original(self, caller: Principal, document_id: str) -> Original:
        """Return the uploaded bytes of the visible version, or of the newest if none is visible."""
        return await self.container.ingestion.read_original(caller.tenant.id, document_id)

    @requires(Scope.READ, filtered=True)
    async def read_page(self, caller: Principal, document_id: str, number: int) -> DocumentPage:
        """Return a page of the visible version, with the place of each line."""
        return await self.container.pages.read_page(caller.tenant.id, document_id, number)

    @requires(Scope.READ, filtered=True)
    async def draw_page(
        self, caller: Principal, document_id: str, number: int, *, scale: float, boxes: Sequence[Box] = ()
    ) -> bytes:
        """Return a picture of a page as PNG, with ``boxes`` marked."""
        return await self.container.pages.draw_page(caller.tenant.id, document_id, number, scale=scale, boxes=boxes)

    @requires(Scope.WRITE)
    async def change_document(
        self,
        caller: Principal,
        document_id: str,
        *,
        title: str | None = None,
        fields: Mapping[str, Any] | None = None,
        expected: Expected = None,
    ) -> Submitted:
        """Change title and metadata. See `IngestionService.update`."""
        return await self.container.ingestion.update(caller.tenant.id, document_id, title=title, fields=fields, expected=expected)

    @requires(Scope.WRITE)
    async def chunk_again(
        self,
        caller: Principal,
        document_id: str,
        chunking: ChunkingOptions,
        *,
        questions: QuestionOptions | None = None,
        expected: Expected = None,
    ) -> Submitted:
        """Queue a version with other chunks. See `IngestionService.chunk_again`."""
        return await self.container.ingestion.chunk_again(
            caller.tenant.id, document_id, chunking, questions=questions, expected=expected
        )

    @requires(Scope.WRITE)
    async def extract_again(
        self, caller: Principal, document_id: str, extraction: str | None = None, *, expected: Expected = None
    ) -> Submitted:
        """Queue a version whose knowledge is extracted again. See `IngestionService.extract_again`."""
        return await self.container.ingestion.extract_again(caller.tenant.id, document_id, extraction, expected=expected)

    @requires(Scope.WRITE)
    async def extract_document_of(self, caller: Principal, chunk_id: str, extraction: str | None = None) -> Submitted:
        """Queue a version of a chunk's document, whose knowledge is extracted again."""
        document_id = await self.container.extractions.document_of(caller.tenant.id, chunk_id)
        return await self.container.ingestion.extract_again(caller.tenant.id, document_id, extraction)

    @requires(Scope.WRITE)
    async def try_extraction(self, caller: Principal, chunk_id: str, extraction: str | None = None) -> ChunkExtraction:
        """Return what an extraction of a chunk finds now. Nothing is written to the graph."""
        return await self.container.extractions.of_chunk(caller.tenant.id, chunk_id, extraction)

    @requires(Scope.WRITE)
    async def preview_document(
        self, caller: Principal, document_id: str, chunking: ChunkingOptions, *, method: str | None = None
    ) -> ChunkPreview:
        """Return the chunks that a stored document would have, and the expected cost. Nothing is stored."""
        return await self.container.previews.of_document(caller.tenant.id, document_id, chunking, method)

    @requires(Scope.WRITE)
    async def preview_content(
        self,
        caller: Principal,
        content: bytes,
        chunking: ChunkingOptions,
        *,
        media_type: str | None,
        file_name: str | None = None,
        method: str | None = None,
    ) -> ChunkPreview:
        """Return the chunks that a document would have, and the expected cost. Nothing is stored."""
        return await self.container.previews.of_content(
            caller.tenant.id, content, chunking, media_type=media_type, file_name=file_name, method=method
        )

    @requires(Scope.WRITE)
    async def delete_document(self, caller: Principal, document_id: str, *, expected: Expected = None) -> Job:
        """Hide a document and queue its removal. The job's result is the receipt."""
        return await self.container.ingestion.delete(caller.tenant.id, document_id, expected=expected)

    @requires(Scope.WRITE)
    async def delete_documents(self, caller: Principal, matching: Matching) -> Deleting:
        """Hide matching documents, at most 1,000, and queue the removal of each."""
        return await self.container.ingestion.delete_matching(caller.tenant.id, matching)
