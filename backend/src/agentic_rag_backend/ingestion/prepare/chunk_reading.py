"""Reads a document and cuts it into chunks. A strategy that needs a model gets its advice here, outside of the child process."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.joining import pieces_of
from agentic_rag_backend.documents.chunking.passages import chunks_from
from agentic_rag_backend.documents.chunking.registry import AGENTIC, PROPOSITION, SEMANTIC
from agentic_rag_backend.documents.chunking.sentence_units import MAX_UNITS
from agentic_rag_backend.documents.chunking.sentence_windows import windows_of
from agentic_rag_backend.documents.chunking.strategies import agentic, proposition
from agentic_rag_backend.documents.chunking.strategies.proposition import IsStated
from agentic_rag_backend.documents.chunking.strategies.semantic import find_breakpoints
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import Chunk, DocumentVersion, Failure
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelInputRefused
from agentic_rag_backend.ingestion.prepare.reading import SMALL_BYTES, IsolatedReader
from agentic_rag_backend.knowledge.extraction.methods import RULES
from agentic_rag_backend.knowledge.model_calls import NO_MODEL, Advice, DocumentModel, ResultRecord, Unrecorded
from agentic_rag_backend.models.embedding.base import Embedder, Vectors
from agentic_rag_backend.prompts.inquiry import Inquiry

FALLBACK = "recursive"
PREVIEW_TOKENS = 20_000
"""Budget of a preview, in tokens of a language model."""
PREVIEW_WITHIN_S = 20.0
_BATCH = 64


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's text and its chunks.

    ``failures`` say which parts of the file could not be read, and why another strategy cut it than the one that was asked for.
    ``usage`` is the cost of the language model for this version so far.
    """

    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    failures: tuple[Failure, ...] = ()
    usage: Usage = field(default_factory=Usage)
    extractions: Sequence[Extraction] | None = None
    """What the rules extract from the chunks, read together. None: they have not read them."""


@dataclass(frozen=True, slots=True)
class _ReadingRequest:
    """A document to be read, and the record of results about it. ``waiting``: a request waits for it."""

    tenant: TenantId
    version: DocumentVersion
    content: bytes | str
    record: ResultRecord
    waiting: bool

    def make_chunks(self, parsed: ParsedDocument, pieces: Iterable[Piece]) -> list[Chunk]:
        """Return the chunks with these passages."""
        return chunks_from(self.tenant, self.version.document_id, self.version.version, parsed, pieces)


class ChunkReader:
    """Reads documents with an `IsolatedReader`, and cuts them by the strategy of their options.

    Args:
        encoder: encodes sentences for `semantic`.
        model: chooses boundaries for `agentic`, and writes statements for `proposition`. None: no model.
        is_stated: checks statements.
        rules: reads a small document and extracts by rules in one call. None: nothing does.
    """

    def __init__(
        self,
        reader: IsolatedReader,
        encoder: Embedder,
        model: DocumentModel | None = None,
        is_stated: IsStated | None = None,
        rules: IsolatedReader | None = None,
    ) -> None:
        self._reader = reader
        self._rules = rules
        self._encoder = encoder
        self._model = model
        self._is_stated = is_stated or _is_verbatim

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
            waiting: a request waits for it. A language model then has a smaller budget and less time. Otherwise, a small
                document that is extracted by rules is extracted as well.

        Raises:
            UnsupportedMediaType, UnreadableDocument: see `IsolatedReader`.
            ModelUnavailable: the encoder does not answer.
            NotFound: the document was deleted.
        """
        chunked = await self._cut_chunks(_ReadingRequest(tenant, version, content, record or Unrecorded(), waiting))
        return replace(chunked, failures=(*chunked.parsed.failures, *chunked.failures))

    async def _cut_chunks(self, request: _ReadingRequest) -> ChunkedDocument:
        strategy = request.version.options.chunking.strategy
        if strategy not in (SEMANTIC, AGENTIC, PROPOSITION):
            by_rules = request.version.options.extraction == RULES and not request.waiting
            if self._rules is not None and by_rules and len(request.content) <= SMALL_BYTES:
                parsed, chunks, extractions = await self._rules.read_with_rules(request.tenant, request.version, request.content)
                return ChunkedDocument(parsed, chunks, extractions=extractions)
            parsed, chunks = await self._reader.read_version(
                request.tenant, request.version, request.content, waiting=request.waiting
            )
            return ChunkedDocument(parsed, chunks)
        model = self._model
        if strategy == AGENTIC and (model is None or not model.model.generative):
            return await self._fall_back(request, Failure("chunk", NO_MODEL, _needs_model(strategy)))
        parsed, units = await self._reader.read_units(request.tenant, request.version, request.content, waiting=request.waiting)
        if len(units) > MAX_UNITS:
            reason = f"{strategy} chunking reads at most {MAX_UNITS} sentences; the document has more"
            return await self._fall_back(request, Failure("chunk", "too_long", reason))
        if strategy == PROPOSITION:
            return await self._cut_by_propositions(request, model, parsed, units)
        if strategy == AGENTIC and model is not None:
            return await self._cut_by_model(request, model, parsed, units)
        return await self._cut_by_meaning(request, parsed, units)

    async def _cut_by_meaning(self, request: _ReadingRequest, parsed: ParsedDocument, units: Sequence[Piece]) -> ChunkedDocument:
        options = request.version.options.chunking
        recipe = await asyncio.to_thread(_hash_recipe, "semantic", self._encoder.fingerprint, *astuple(options), parsed.text)
        starts: list[int] | None = (await request.record.known([recipe])).get(recipe)
        if starts is None:
            try:
                vectors = await self._embed_units(parsed.text, units)
            except ModelInputRefused as error:
                return await self._fall_back(request, Failure("chunk", error.code, error.message))
            starts = await asyncio.to_thread(find_breakpoints, vectors, units, options)
            await request.record.keep(recipe, starts, Usage())
        return ChunkedDocument(parsed, await asyncio.to_thread(request.make_chunks, parsed, pieces_of(starts, units, options)))

    async def _embed_units(self, text: str, units: Sequence[Piece]) -> Vectors:
        groups = [units[start : start + _BATCH] for start in range(0, len(units), _BATCH)]
        return np.concatenate([await self._encoder.embed([text[unit.start : unit.end] for unit in group]) for group in groups])

    async def _cut_by_model(
        self, request: _ReadingRequest, model: DocumentModel, parsed: ParsedDocument, units: Sequence[Piece]
    ) -> ChunkedDocument:
        windows = windows_of(parsed.text, units)
        advice = await _ask_model(request, model, [agentic.make_inquiry(parsed.text, units, window) for window in windows])
        usage = await request.record.spent()
        failure = _describe_failure(advice)
        if failure is not None and all(item.value is None for item in advice):
            return replace(await self._fall_back(request, failure), usage=usage)
        window_advice = list(zip(windows, [item.value for item in advice], strict=True))
        pieces = agentic.cut_pieces(parsed.text, units, window_advice, request.version.options.chunking)
        chunks = await asyncio.to_thread(request.make_chunks, parsed, pieces)
        if failure is not None:
            failure = replace(failure, message=f"{failure.message}; these parts were cut by size, between sentences")
        return ChunkedDocument(parsed, chunks, (failure,) if failure is not None else (), usage)

    async def _cut_by_propositions(
        self, request: _ReadingRequest, model: DocumentModel | None, parsed: ParsedDocument, units: Sequence[Piece]
    ) -> ChunkedDocument:
        text, title, options = parsed.text, request.version.title, request.version.options.chunking
        windows = windows_of(text, units, tokens=proposition.WINDOW_TOKENS)
        inquiries = [proposition.make_inquiry(title, text, units, window) for window in windows]
        advice = [Advice(None, NO_MODEL)] * len(windows)
        if model is not None:
            advice = await _ask_model(request, model, inquiries)
        window_advice = list(zip(windows, [item.value for item in advice], strict=True))

        def make_chunks() -> list[Chunk]:
            statements = proposition.statements_of(title, text, units, window_advice, self._is_stated)
            return request.make_chunks(parsed, proposition.cut_pieces(text, units, statements, options))

        chunks = await asyncio.to_thread(make_chunks)
        failure = _describe_failure(advice)
        if failure is not None:
            reason = _needs_model(PROPOSITION) if failure.code == NO_MODEL else failure.message
            failure = replace(failure, message=f"{reason}; these parts are found by their sentences")
        return ChunkedDocument(parsed, chunks, (failure,) if failure is not None else (), await request.record.spent())

    async def _fall_back(self, request: _ReadingRequest, failure: Failure) -> ChunkedDocument:
        """Return the document as `FALLBACK` cuts it, with the reason."""
        version, options = request.version, request.version.options
        fallback_version = replace(version, options=replace(options, chunking=replace(options.chunking, strategy=FALLBACK)))
        parsed, chunks = await self._reader.read_version(
            request.tenant, fallback_version, request.content, waiting=request.waiting
        )
        reported = replace(failure, message=f"{failure.message}; the document was cut by {FALLBACK!r} instead")
        return ChunkedDocument(parsed, chunks, (reported,))


async def _ask_model(request: _ReadingRequest, model: DocumentModel, inquiries: Sequence[Inquiry]) -> list[Advice]:
    """Return the model's advice, within the smaller limits of a preview if a request waits."""
    if not request.waiting:
        return await model.ask(inquiries, request.record)
    return await model.ask(inquiries, request.record, max_tokens=PREVIEW_TOKENS, within_s=PREVIEW_WITHIN_S)


def _needs_model(strategy: str) -> str:
    return f"{strategy} chunking needs a language model (LLM=openai); none is configured"


def _describe_failure(advice: Sequence[Advice]) -> Failure | None:
    """Return the failure of a document if the model did not process every part of it."""
    reasons = Counter(item.failure for item in advice if item.value is None)
    if not reasons:
        return None
    counts_text = ", ".join(f"{code} ({count})" for code, count in sorted(reasons.items()))
    message = (
        f"the language model gave no usable reply for {reasons.total()} of {len(advice)} parts of the document: {counts_text}"
    )
    return Failure("chunk", next(iter(reasons)), message)


def _is_verbatim(statement: str, source: str, title: str) -> bool:
    """Return whether a statement is in its source, word for word: the check without another one."""
    return statement in " ".join(source.split())


def _hash_recipe(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()
