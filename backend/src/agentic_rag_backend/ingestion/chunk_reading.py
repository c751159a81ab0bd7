"""Reads a document and cuts it into chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import Chunk, DocumentVersion, Failure
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.reading import Reader


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's text and its chunks. ``failures`` name what could not be done as the options ask."""

    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    failures: tuple[Failure, ...] = ()


class ChunkReader:
    """Reads documents with a `Reader`, and cuts them by the strategy of their options."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def read(
        self, tenant: TenantId, version: DocumentVersion, content: bytes | str, *, waiting: bool = False
    ) -> ChunkedDocument:
        """Return the text of a version, and its chunks. ``waiting``: a request waits for it.

        Raises:
            UnsupportedMediaType, UnreadableDocument: see `Reader`.
        """
        parsed, chunks = await self._reader.read(tenant, version, content, waiting=waiting)
        return ChunkedDocument(parsed, chunks)
