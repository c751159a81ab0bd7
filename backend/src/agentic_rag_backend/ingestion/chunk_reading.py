"""Reads a document and cuts it into chunks. A strategy that needs a model gets its advice here, outside of the child process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agentic_rag_backend.domain.document import Chunk, DocumentVersion, Failure
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ModelInputRefused
from agentic_rag_backend.ingestion.chunking.base import Piece
from agentic_rag_backend.ingestion.chunking.passages import chunks_from
from agentic_rag_backend.ingestion.chunking.registry import SEMANTIC
from agentic_rag_backend.ingestion.chunking.semantic import breakpoints, pieces_of
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.reading import Reader
from agentic_rag_backend.models.embedding.base import TextEncoder, Vectors

FALLBACK = "recursive"
MAX_UNITS = 20_000
"""Sentences of a document that are embedded to find its breakpoints. A longer document is cut by `FALLBACK`."""
_BATCH = 64


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's text and its chunks. ``failures`` say why another strategy cut it than the one that was asked for."""

    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    failures: tuple[Failure, ...] = ()


class ChunkReader:
    """Reads documents with a `Reader`, and cuts them by the strategy of their options."""

    def __init__(self, reader: Reader, encoder: TextEncoder) -> None:
        self._reader = reader
        self._encoder = encoder

    async def read(
        self, tenant: TenantId, version: DocumentVersion, content: bytes | str, *, waiting: bool = False
    ) -> ChunkedDocument:
        """Return the text of a version, and its chunks. ``waiting``: a request waits for it.

        Raises:
            UnsupportedMediaType, UnreadableDocument: see `Reader`.
            ModelUnavailable: the encoder does not answer.
        """
        if version.options.chunking.strategy != SEMANTIC:
            parsed, chunks = await self._reader.read(tenant, version, content, waiting=waiting)
            return ChunkedDocument(parsed, chunks)
        parsed, units = await self._reader.units(tenant, version, content, waiting=waiting)
        if len(units) > MAX_UNITS:
            reason = f"semantic chunking reads at most {MAX_UNITS} sentences; the document has {len(units)}"
            return await self._fallback(tenant, version, content, Failure("chunk", "too_long", reason), waiting=waiting)
        try:
            vectors = await self._embed(parsed.text, units)
        except ModelInputRefused as error:
            return await self._fallback(tenant, version, content, Failure("chunk", error.code, error.message), waiting=waiting)
        return ChunkedDocument(parsed, await asyncio.to_thread(_chunks, tenant, version, parsed, units, vectors))

    async def _embed(self, text: str, units: Sequence[Piece]) -> Vectors:
        groups = [units[start : start + _BATCH] for start in range(0, len(units), _BATCH)]
        return np.concatenate([await self._encoder.embed([text[unit.start : unit.end] for unit in group]) for group in groups])

    async def _fallback(
        self, tenant: TenantId, version: DocumentVersion, content: bytes | str, failure: Failure, *, waiting: bool
    ) -> ChunkedDocument:
        """Return the document as `FALLBACK` cuts it, with the reason."""
        options = version.options
        other = replace(version, options=replace(options, chunking=replace(options.chunking, strategy=FALLBACK)))
        parsed, chunks = await self._reader.read(tenant, other, content, waiting=waiting)
        said = replace(failure, message=f"{failure.message}; the document was cut by {FALLBACK!r} instead")
        return ChunkedDocument(parsed, chunks, (said,))


def _chunks(
    tenant: TenantId, version: DocumentVersion, parsed: ParsedDocument, units: Sequence[Piece], vectors: Vectors
) -> list[Chunk]:
    options = version.options.chunking
    pieces = pieces_of(breakpoints(vectors, units, options), units, options)
    return chunks_from(tenant, version.document_id, version.version, parsed, pieces)
