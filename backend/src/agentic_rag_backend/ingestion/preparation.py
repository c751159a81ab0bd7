"""The first half of an ingestion: parse, chunk, embed, extract; staged in the catalogue, invisible to everyone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from agentic_rag_backend.domain.document import Chunk, DocumentState, DocumentVersion, Failure
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import (
    AgenticRagError,
    ModelUnavailable,
    NotFound,
    StoreUnavailable,
    UnreadableDocument,
    UnsupportedMediaType,
)
from agentic_rag_backend.ingestion.chunking.passages import chunks_of, passage_text
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.parsing.registry import parse
from agentic_rag_backend.ingestion.runs import Run, Stopped
from agentic_rag_backend.knowledge.extraction.base import Extractor
from agentic_rag_backend.models.embedding.base import Embedder, Tokenizer
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, PreparedChunk

IN_LOOP_BYTES = 32_768
"""Smaller files are parsed and cut where they are: a thread costs more than the work."""

_log = structlog.get_logger(__name__)
T = TypeVar("T")
HandOn = Callable[[TenantId, str, int], Awaitable[None]]
"""Queues the next workflow of a job, given tenant, job and attempt."""


def superseded(run: Run) -> Stopped:
    """Return what ends the job of a version that nobody will see."""
    return Stopped("superseded", f"version {run.version} was overtaken by a newer version, or its document was deleted")


async def fail_version(documents: DocumentCatalogue, run: Run, error: AgenticRagError | Stopped) -> None:
    """Note with the document why its version will not be visible."""
    unreadable = isinstance(error, UnreadableDocument | UnsupportedMediaType)
    await documents.fail(
        run.tenant,
        run.document_id,
        run.version,
        state=DocumentState.UNREADABLE if unreadable else DocumentState.FAILED,
        failure=Failure(run.stage, error.code, error.message),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The work of ``ingest_v1``; ends by handing the job on to its commit."""

    documents: DocumentCatalogue
    blobs: BlobStore
    embedder: Embedder
    tokenizer: Tokenizer
    extractor: Extractor
    hand_on: HandOn
    group_size: int = 64

    async def run(self, run: Run) -> None:
        """Prepare the job's version. What an interrupted attempt had staged is not computed again."""
        if not await self.documents.begin_processing(run.tenant, run.document_id, run.version):
            raise superseded(run)
        try:
            version = await self.documents.version(run.tenant, run.document_id, run.version)
            await self._prepare(run, version)
        except NotFound:
            raise superseded(run) from None
        await self.hand_on(run.tenant, run.job.id, run.job.attempt)

    async def failed(self, run: Run, error: AgenticRagError | Stopped) -> None:
        """Note the error with the document; what was prepared stays for another attempt, unless the job was stopped."""
        await fail_version(self.documents, run, error)
        if isinstance(error, Stopped):
            await self.documents.discard_prepared(run.tenant, run.document_id, run.version)

    async def _prepare(self, run: Run, version: DocumentVersion) -> None:
        await run.progress("parse", 0, 0)
        content = await self._original(run, version)
        small = len(content) <= IN_LOOP_BYTES
        parsed = await _off_loop(lambda: parse(content, version.media_type), small=small)
        # A text that is there already was parsed by an attempt that was interrupted: it may have staged chunks, too.
        resumed = bool(version.text)
        await self.documents.save_parsed(
            run.tenant,
            run.document_id,
            run.version,
            text=parsed.text,
            title=version.title,
            # A null is how the document's owner removes what the file itself says.
            metadata={name: value for name, value in {**parsed.metadata, **version.metadata}.items() if value is not None},
        )
        await run.progress("chunk", 0, 0)
        chunks = await _off_loop(lambda: self._chunks(run, version, parsed), small=small)
        staged = await self._staged(run) if resumed else frozenset()
        done = 0
        for start in range(0, len(chunks), self.group_size):
            group = chunks[start : start + self.group_size]
            missing = [chunk for chunk in group if chunk.id not in staged]
            if missing:
                await self._stage(run, version.title, missing)
            done += len(group)
            await run.progress("embed", done, len(chunks))

    async def _original(self, run: Run, version: DocumentVersion) -> bytes:
        try:
            return await self.blobs.get(run.tenant, version.blob_key)
        except NotFound:
            if await self.documents.begin_processing(run.tenant, run.document_id, run.version):
                raise UnreadableDocument("the document's original is not in the blob store") from None
            raise

    def _chunks(self, run: Run, version: DocumentVersion, parsed: ParsedDocument) -> list[Chunk]:
        return chunks_of(run.tenant, run.document_id, run.version, parsed, version.options.chunking, tokenizer=self.tokenizer)

    async def _staged(self, run: Run) -> frozenset[str]:
        prepared = await self.documents.prepared(run.tenant, run.document_id, run.version)
        return frozenset(item.chunk.id for item in prepared)

    async def _stage(self, run: Run, title: str, chunks: Sequence[Chunk]) -> None:
        """Embed and extract a group of chunks at the same time, and record the results."""
        embedding = asyncio.ensure_future(self.embedder.embed([passage_text(title, chunk) for chunk in chunks]))
        try:
            await asyncio.sleep(0)  # the embedder's threads begin before the extractor takes the loop
            extractions = await self._extract(title, chunks)
            vectors = await embedding
        finally:
            embedding.cancel()
        prepared = [
            PreparedChunk(chunk, vector, extraction)
            for chunk, vector, extraction in zip(chunks, vectors, extractions, strict=True)
        ]
        await self.documents.save_prepared(run.tenant, run.document_id, run.version, prepared)

    async def _extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Return what the chunks say; where that fails, chunk by chunk, so that one bad chunk costs only itself."""
        try:
            return await self.extractor.extract(title, chunks)
        except (StoreUnavailable, ModelUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 - part of the job's boundary: the failure is listed, not hidden
            if len(chunks) > 1:
                return [extraction for chunk in chunks for extraction in await self._extract(title, [chunk])]
            _log.exception("extraction failed", document=chunks[0].document_id, chunk=chunks[0].id)
            code = error.code if isinstance(error, AgenticRagError) else "extraction_failed"
            message = error.message if isinstance(error, AgenticRagError) else f"unexpected {type(error).__name__}"
            return [Extraction(chunk_id=chunks[0].id, failure=Failure("extract", code, message, chunks[0].id))]


async def _off_loop(work: Callable[[], T], *, small: bool) -> T:
    return work() if small else await asyncio.to_thread(work)
