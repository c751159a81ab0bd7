"""Reads a document and cuts it into chunks. A strategy that needs a model gets its advice here, outside of the child process."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np

from agentic_rag_backend.domain.document import Chunk, DocumentVersion, Failure
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelInputRefused
from agentic_rag_backend.ingestion.chunking import agentic
from agentic_rag_backend.ingestion.chunking.base import Piece
from agentic_rag_backend.ingestion.chunking.joining import pieces_of
from agentic_rag_backend.ingestion.chunking.numbering import windows_of
from agentic_rag_backend.ingestion.chunking.passages import chunks_from
from agentic_rag_backend.ingestion.chunking.registry import AGENTIC, SEMANTIC
from agentic_rag_backend.ingestion.chunking.semantic import breakpoints
from agentic_rag_backend.ingestion.model_calls import NO_MODEL, Advice, DocumentModel, ResultRecord, Unrecorded
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.reading import Reader
from agentic_rag_backend.models.embedding.base import Embedder, Vectors

FALLBACK = "recursive"
MAX_UNITS = 20_000
"""Sentences of a document that a model reads to find boundaries. A longer document is cut by `FALLBACK`."""
PREVIEW_TOKENS = 20_000
"""Budget of a preview, in tokens of a language model."""
PREVIEW_WITHIN_S = 20.0
_BATCH = 64


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's text and its chunks. ``failures`` say why another strategy cut it than the one that was asked for.

    ``usage`` is the cost of the language model for this version so far.
    """

    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    failures: tuple[Failure, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A document to be read, and the record of results about it. ``waiting``: a request waits for it."""

    tenant: TenantId
    version: DocumentVersion
    content: bytes | str
    record: ResultRecord
    waiting: bool

    def chunks(self, parsed: ParsedDocument, pieces: Iterable[Piece]) -> list[Chunk]:
        """Return the chunks with these passages."""
        return chunks_from(self.tenant, self.version.document_id, self.version.version, parsed, pieces)


class ChunkReader:
    """Reads documents with a `Reader`, and cuts them by the strategy of their options.

    Args:
        encoder: encodes sentences for `semantic`.
        model: chooses boundaries for `agentic`. None: no model.
    """

    def __init__(self, reader: Reader, encoder: Embedder, model: DocumentModel | None = None) -> None:
        self._reader = reader
        self._encoder = encoder
        self._model = model

    async def read(
        self,
        tenant: TenantId,
        version: DocumentVersion,
        content: bytes | str,
        *,
        record: ResultRecord | None = None,
        waiting: bool = False,
    ) -> ChunkedDocument:
        """Return the text of a version, and its chunks.

        Args:
            record: results of models for the version, which are reused. None: nothing is recorded.
            waiting: a request waits for it. A language model then has a smaller budget and less time.

        Raises:
            UnsupportedMediaType, UnreadableDocument: see `Reader`.
            ModelUnavailable: the encoder does not answer.
            NotFound: the document was deleted.
        """
        asked = _Asked(tenant, version, content, record or Unrecorded(), waiting)
        strategy = version.options.chunking.strategy
        if strategy not in (SEMANTIC, AGENTIC):
            parsed, chunks = await self._reader.read(tenant, version, content, waiting=waiting)
            return ChunkedDocument(parsed, chunks)
        if strategy == AGENTIC and (self._model is None or not self._model.model.generative):
            reason = "agentic chunking needs a language model (LLM=openai); none is configured"
            return await self._fallback(asked, Failure("chunk", NO_MODEL, reason))
        parsed, units = await self._reader.units(tenant, version, content, waiting=waiting)
        if len(units) > MAX_UNITS:
            reason = f"{strategy} chunking reads at most {MAX_UNITS} sentences; the document has {len(units)}"
            return await self._fallback(asked, Failure("chunk", "too_long", reason))
        if strategy == AGENTIC and self._model is not None:
            return await self._agentic(asked, self._model, parsed, units)
        return await self._semantic(asked, parsed, units)

    async def _semantic(self, asked: _Asked, parsed: ParsedDocument, units: Sequence[Piece]) -> ChunkedDocument:
        options = asked.version.options.chunking
        recipe = _recipe("semantic", self._encoder.fingerprint, *astuple(options), parsed.text)
        starts: list[int] | None = (await asked.record.known([recipe])).get(recipe)
        if starts is None:
            try:
                vectors = await self._embed(parsed.text, units)
            except ModelInputRefused as error:
                return await self._fallback(asked, Failure("chunk", error.code, error.message))
            starts = await asyncio.to_thread(breakpoints, vectors, units, options)
            await asked.record.keep(recipe, starts, Usage())
        return ChunkedDocument(parsed, await asyncio.to_thread(asked.chunks, parsed, pieces_of(starts, units, options)))

    async def _embed(self, text: str, units: Sequence[Piece]) -> Vectors:
        groups = [units[start : start + _BATCH] for start in range(0, len(units), _BATCH)]
        return np.concatenate([await self._encoder.embed([text[unit.start : unit.end] for unit in group]) for group in groups])

    async def _agentic(
        self, asked: _Asked, model: DocumentModel, parsed: ParsedDocument, units: Sequence[Piece]
    ) -> ChunkedDocument:
        windows = windows_of(parsed.text, units)
        inquiries = [agentic.inquiry(parsed.text, units, window) for window in windows]
        advice = await model.ask(
            inquiries,
            asked.record,
            max_tokens=PREVIEW_TOKENS if asked.waiting else None,
            within_s=PREVIEW_WITHIN_S if asked.waiting else None,
        )
        usage = await asked.record.spent()
        failure = _failure(advice)
        if failure is not None and all(each.value is None for each in advice):
            return replace(await self._fallback(asked, failure), usage=usage)
        read = list(zip(windows, [each.value for each in advice], strict=True))
        found = agentic.pieces(parsed.text, units, read, asked.version.options.chunking)
        chunks = await asyncio.to_thread(asked.chunks, parsed, found)
        if failure is not None:
            failure = replace(failure, message=f"{failure.message}; these parts were cut by size, between sentences")
        return ChunkedDocument(parsed, chunks, (failure,) if failure is not None else (), usage)

    async def _fallback(self, asked: _Asked, failure: Failure) -> ChunkedDocument:
        """Return the document as `FALLBACK` cuts it, with the reason."""
        version, options = asked.version, asked.version.options
        other = replace(version, options=replace(options, chunking=replace(options.chunking, strategy=FALLBACK)))
        parsed, chunks = await self._reader.read(asked.tenant, other, asked.content, waiting=asked.waiting)
        said = replace(failure, message=f"{failure.message}; the document was cut by {FALLBACK!r} instead")
        return ChunkedDocument(parsed, chunks, (said,))


def _failure(advice: Sequence[Advice]) -> Failure | None:
    """Return the failure of a document of which the model did not divide every part."""
    reasons = Counter(each.failure for each in advice if each.value is None)
    if not reasons:
        return None
    listed = ", ".join(f"{code} ({count})" for code, count in sorted(reasons.items()))
    message = f"the language model did not divide {reasons.total()} of {len(advice)} parts of the document: {listed}"
    return Failure("chunk", next(iter(reasons)), message)


def _recipe(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()
