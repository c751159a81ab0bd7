"""Readers of documents: they return the title at submission, and text and chunks during preparation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.parsing.base import Attachment, ParsedDocument
from agentic_rag_backend.documents.parsing.registry import WITH_PICTURES
from agentic_rag_backend.documents.recognition.base import RecognitionOptions
from agentic_rag_backend.documents.recognition.ocr import Ocr, OcrSettings
from agentic_rag_backend.domain.document import Chunk, DocumentVersion
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.isolation.call_limits import OcrTime, steps_of
from agentic_rag_backend.ingestion.isolation.calls import ReadingOptions, check_in_place
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation
from agentic_rag_backend.knowledge.extraction.base import Extractor

WAITING_OCR_S = 20.0
"""Seconds for the recognition of text while a request waits."""
SMALL_BYTES = 16 * 1024
"""Size of a document for which a call of a child process costs as much as its work."""
_PLAIN = "text/plain"


@dataclass(frozen=True, slots=True)
class FileSource:
    """What an upload says about its file. ``charset`` is the encoding that it declares for text."""

    media_type: str
    charset: str | None = None
    file_name: str | None = None


class IsolatedReader:
    """Reads documents in child processes. A document that exceeds the limits fails alone.

    All methods raise `UnsupportedMediaType`, and `UnreadableDocument` or its subclass `ResourceLimit`.
    """

    def __init__(self, isolation: Isolation, ocr: Ocr | None = None) -> None:
        self._isolation = isolation
        self._ocr = ocr or Ocr(OcrSettings(mode="off"))

    async def check_file(
        self, tenant: TenantId, head: bytes, source: FileSource, *, is_whole: bool
    ) -> tuple[str, tuple[str, ...]]:
        """Check the beginning of a file, or all of it if ``is_whole``. Return the title of the document, and warnings."""
        arguments = (head, source.media_type, source.charset, source.file_name, is_whole)
        if source.media_type == _PLAIN and source.charset is None and len(head) <= SMALL_BYTES and _is_utf8(head):
            return check_in_place(*arguments)  # nothing is parsed, and no library guesses an encoding
        preview = await self._isolation.call_worker("check", *arguments, size_bytes=len(head), tenant=tenant)
        return cast(tuple[str, tuple[str, ...]], preview)

    async def read_version(
        self, tenant: TenantId, version: DocumentVersion, content: bytes | str, *, waiting: bool = False
    ) -> tuple[ParsedDocument, list[Chunk]]:
        """Return the text of a version, and its chunks with the headings above them.

        ``content`` is the original, or the text that was made from it before (a str). ``waiting``: a request waits for it.
        """
        owner = (str(tenant), version.document_id, version.version)
        document = await self._call_worker("read", (tenant, version, content), owner, waiting=waiting)
        return cast(tuple[ParsedDocument, list[Chunk]], document)

    async def read_with_rules(
        self, tenant: TenantId, version: DocumentVersion, content: bytes | str
    ) -> tuple[ParsedDocument, list[Chunk], list[Extraction] | None]:
        """Return the text of a version, its chunks, and what the rules extract from these together. A job waits for it.

        A call of a child process costs as much as parsing a short text. None: the rules failed.
        """
        owner = (str(tenant), version.document_id, version.version)
        document = await self._call_worker("read_with_rules", (tenant, version, content), owner, version.title, waiting=False)
        return cast(tuple[ParsedDocument, list[Chunk], list[Extraction] | None], document)

    async def read_units(
        self, tenant: TenantId, version: DocumentVersion, content: bytes | str, *, waiting: bool = False
    ) -> tuple[ParsedDocument, list[Piece]]:
        """Return the text of a version with its regions, and its sentences and rows; see `chunking.read_units`."""
        document = await self._call_worker("units", (tenant, version, content), waiting=waiting)
        return cast(tuple[ParsedDocument, list[Piece]], document)

    async def read_attachments(self, version: DocumentVersion, content: bytes) -> list[Attachment]:
        """Return the files within the original of a version that become documents of their own. A job waits for it."""
        arguments = (content, version.media_type, version.options.attachments)
        return cast(list[Attachment], await self._isolation.call_worker("attachments", *arguments, size_bytes=len(content)))

    async def _call_worker(
        self, name: str, source: tuple[TenantId, DocumentVersion, bytes | str], *arguments: object, waiting: bool
    ) -> object:
        tenant, version, content = source
        options, time = ReadingOptions(version.options), None
        if version.media_type in WITH_PICTURES and isinstance(content, bytes):
            ocr = await self._ocr.choose_options()
            if not isinstance(ocr, str):
                time = _ocr_time(ocr, len(content), waiting=waiting)
                ocr = replace(ocr, cpu_s=time.cpu_s, timeout_s=time.timeout_s)
            options = ReadingOptions(version.options, ocr)
        return await self._isolation.call_worker(
            name,
            content,
            version.media_type,
            *arguments,
            options,
            size_bytes=len(content),
            tenant=tenant if waiting else None,
            ocr=time,
        )


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _ocr_time(options: RecognitionOptions, size_bytes: int, *, waiting: bool) -> OcrTime:
    if waiting:
        return OcrTime(min(options.cpu_s, WAITING_OCR_S), min(options.timeout_s, WAITING_OCR_S))
    steps = steps_of(size_bytes)
    return OcrTime(options.cpu_s * steps, options.timeout_s * steps)


class IsolatedExtractor:
    """`Extractor` that runs the rules of another extractor in child processes."""

    def __init__(self, extractor: Extractor, isolation: Isolation) -> None:
        self._extractor = extractor
        self._isolation = isolation

    @property
    def version(self) -> str:
        """Name of the method and its version, under which results are cached."""
        return self._extractor.version

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Extract from the chunks of one document, whose title is ``title``."""
        size = sum(len(chunk.text) for chunk in chunks)
        return cast(list[Extraction], await self._isolation.call_worker("extract", title, list(chunks), size_bytes=size))
