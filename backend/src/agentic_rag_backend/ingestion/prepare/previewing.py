"""Previews of chunking: the chunks that a strategy makes of a document. Nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentic_rag_backend.documents.chunking.registry import check_options
from agentic_rag_backend.documents.parsing.base import sniff_content
from agentic_rag_backend.documents.parsing.registry import ATTACHMENT_READERS
from agentic_rag_backend.domain.document import AttachmentOptions, ChunkingOptions, DocumentVersion, Failure, ProcessingOptions
from agentic_rag_backend.domain.media_types import FORMATS, charset_of, media_type_of
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import NotFound, PayloadTooLarge
from agentic_rag_backend.ingestion.accept.originals import read_original
from agentic_rag_backend.ingestion.accept.uploads import DEFAULT_ATTACHMENTS
from agentic_rag_backend.ingestion.prepare.chunk_reading import ChunkedDocument, ChunkReader
from agentic_rag_backend.ingestion.prepare.estimating import IngestionEstimate, IngestionEstimator
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

MAX_PREVIEW_BYTES = 2 * 1024 * 1024
"""A request waits for the whole document, so it may have at most this many bytes."""


@dataclass(frozen=True, slots=True)
class ChunkPreview:
    """A chunked document. ``media_type`` is the type by which it was parsed."""

    document: ChunkedDocument
    media_type: str
    options: ChunkingOptions
    estimate: IngestionEstimate | None = None
    """Expected cost of the ingestion. None: it is not known."""


@dataclass(frozen=True, slots=True)
class ChunkPreviews:
    """Chunks documents without storing anything."""

    documents: DocumentCatalogue
    blobs: BlobStore
    chunks: ChunkReader
    estimator: IngestionEstimator

    async def of_content(
        self,
        tenant: TenantId,
        content: bytes,
        options: ChunkingOptions,
        *,
        media_type: str | None,
        file_name: str | None = None,
        method: str | None = None,
    ) -> ChunkPreview:
        """Return the chunks of a document that is not stored.

        Raises:
            PayloadTooLarge: it has more than `MAX_PREVIEW_BYTES`.
            UnsupportedMediaType: no parser reads its type.
            UnreadableDocument: it is not of that type, or contains no text.
            InvalidRequest: the options are outside their limits.
        """
        detected_type = media_type_of(media_type, file_name, sniff_content(content))
        attachments = AttachmentOptions(DEFAULT_ATTACHMENTS) if detected_type in ATTACHMENT_READERS else AttachmentOptions()
        processing = ProcessingOptions(chunking=options, charset=charset_of(media_type), attachments=attachments)
        return await self._cut_preview(tenant, content, detected_type, processing, method)

    async def of_document(
        self, tenant: TenantId, document_id: str, options: ChunkingOptions, method: str | None = None
    ) -> ChunkPreview:
        """Return the chunks of a stored document: of its original, or of its text if the original was not kept.

        Raises:
            NotFound: the document does not exist, or has no text yet.
            PayloadTooLarge, InvalidRequest: see `of_content`.
        """
        document = await self.documents.document(require_tenant(tenant), document_id)
        number = document.current_version or document.latest_version
        version = await self.documents.version(tenant, document_id, number)
        processing = replace(version.options, chunking=options)
        if method is None and not self.estimator.methods.unavailable(processing.extraction):
            method = processing.extraction
        if version.blob_key:
            original = await read_original(self.documents, self.blobs, tenant, document_id)
            return await self._cut_preview(tenant, original.content, original.media_type, processing, method)
        if not version.text:
            raise NotFound(f"document {document_id!r} has no text")
        return await self._cut_preview(tenant, version.text, version.media_type, processing, method)

    async def _cut_preview(
        self, tenant: TenantId, content: bytes | str, media_type: str, options: ProcessingOptions, method: str | None
    ) -> ChunkPreview:
        check_options(options.chunking)
        if len(content) > MAX_PREVIEW_BYTES:
            raise PayloadTooLarge(f"a document of a preview may have at most {MAX_PREVIEW_BYTES} bytes; it has {len(content)}")
        version = DocumentVersion(
            document_id="preview",
            version=1,
            title="",
            content_hash="",
            media_type=media_type,
            blob_key="",
            options=options,
            metadata={},
        )
        chunked = await self.chunks.read(require_tenant(tenant), version, content, waiting=True)
        if options.chunking.strategy == "ast" and FORMATS[media_type].language is None:
            reason = f"a document of type {media_type} is not source code; it was cut by 'recursive'"
            chunked = replace(chunked, failures=(*chunked.failures, Failure("chunk", "not_code", reason)))
        preview = ChunkPreview(chunked, media_type, options.chunking)
        title = chunked.parsed.title or ""
        return replace(preview, estimate=await self.estimator.estimate_usage(tenant, title, chunked.chunks, method))
