"""Expensive results of a chunk: its vector and its extracted knowledge. A chunk that fails does not affect the others."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.documents.chunking.passages import passage_text
from agentic_rag_backend.domain.document import Chunk, CodeRelation, Failure
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.errors import (
    AgenticRagError,
    ModelInputRefused,
    ModelReplyInvalid,
    ModelUnavailable,
    StoreUnavailable,
    UnreadableDocument,
)
from agentic_rag_backend.knowledge.extraction.base import Extractor, Origin
from agentic_rag_backend.knowledge.extraction.methods import RULES, ExtractionMethods
from agentic_rag_backend.knowledge.extraction.relations.code_relations import with_code
from agentic_rag_backend.knowledge.model_calls import ResultRecord, Unrecorded
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.catalogue.base import PreparedChunk
from agentic_rag_backend.telemetry.logs import get_logger

_PROBE = "text"
"""A text that only an embedder which refuses everything refuses."""

_log = get_logger(__name__)
Embedded = NDArray[np.float32] | ModelInputRefused


@dataclass(frozen=True, slots=True)
class Completed:
    """Results of a group of chunks. ``renewed`` are the extractions of chunks whose other results are on record."""

    prepared: list[PreparedChunk]
    renewed: list[Extraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """Embeds and extracts groups of chunks of one version.

    Args:
        method: of extraction.
        record: results of models for the version.
        origin: the document of the chunks.
        code: relations of a file of source code.
    """

    embedder: Embedder
    extraction: ExtractionMethods
    method: str = RULES
    record: ResultRecord = field(default_factory=Unrecorded)
    origin: Origin | None = None
    code: Sequence[CodeRelation] = ()

    @property
    def extractor(self) -> Extractor:
        """The extractor of the method."""
        return self.extraction.extractor(self.method, self.record, self.origin)

    def make_computation(
        self,
        method: str,
        ontology: Ontology | None,
        record: ResultRecord | None = None,
        *,
        origin: Origin | None = None,
        code: Sequence[CodeRelation] = (),
    ) -> Computation:
        """Return the computation for a version that is extracted by ``method``, under the ``ontology`` of its tenant."""
        methods = self.extraction.under(ontology)
        return replace(self, extraction=methods, method=method, record=record or Unrecorded(), origin=origin, code=code)

    def make_recipe(self, title: str, chunk: Chunk) -> str:
        """Return the SHA-256 (hex) of all inputs and models of a chunk's results. Equal recipes give equal results."""
        return recipe_of(self.embedder.fingerprint, self.extractor.version, title, chunk)

    async def compute(self, title: str, chunks: Sequence[Chunk], recipes: Sequence[str]) -> list[PreparedChunk]:
        """Embed and extract a group of chunks of one document at the same time.

        Raises:
            ModelUnavailable: the embedder or the extractor's model does not answer, or refuses everything.
        """
        recipe_of_chunk = {chunk.id: recipe for chunk, recipe in zip(chunks, recipes, strict=True)}
        return (await self.complete(title, chunks, recipe_of_chunk, held=frozenset())).prepared

    async def complete(
        self,
        title: str,
        group: Sequence[Chunk],
        recipes: Mapping[str, str],
        held: frozenset[str],
        by_rules: Sequence[Extraction] | None = None,
    ) -> Completed:
        """Compute the results of a group of chunks, of which those of the chunks ``held`` are on record.

        The rules read the whole group, because the type of a name depends on the text around it. So the extraction does not
        depend on which results are on record. A model reads only chunks without results, because its replies cost money.

        Args:
            by_rules: what the rules, as the method, extract from the group, if they have read it already.

        Raises:
            ModelUnavailable: the embedder or the extractor's model does not answer, or refuses everything.
        """
        missing_chunks = [chunk for chunk in group if chunk.id not in held]
        chunks_to_extract = group if self.extractor is self.extraction.rules else missing_chunks
        embedding = asyncio.ensure_future(self._embed_passages([passage_text(title, chunk) for chunk in missing_chunks]))
        try:
            await asyncio.sleep(0)  # the embedder's threads start before the extractor occupies the loop
            extracted_chunks = (
                with_code(by_rules, group, title, self.code)
                if by_rules is not None
                else await self.extract(title, chunks_to_extract)
            )
            extractions = {extraction.chunk_id: extraction for extraction in extracted_chunks}
            vectors = await embedding
        finally:
            embedding.cancel()
        prepared = [
            _prepare_chunk(chunk, recipes[chunk.id], vector, extractions.pop(chunk.id))
            for chunk, vector in zip(missing_chunks, vectors, strict=True)
        ]
        return Completed(prepared, [extraction for extraction in extractions.values() if extraction.failure is None])

    async def embed(self, passages: Sequence[str]) -> list[Embedded]:
        """Return the vector of each passage, or the embedder's reason for refusing it.

        Raises:
            ModelUnavailable: the embedder does not answer, or refuses everything.
        """
        return await self._embed_passages(passages)

    async def _embed_passages(self, passages: Sequence[str]) -> list[Embedded]:
        if not passages:
            return []
        try:
            return list(await self.embedder.embed(passages))
        except ModelInputRefused as refused:
            await self.embedder.embed([_PROBE])
            return await self._embed_halves(passages, refused)

    async def _embed_halves(self, passages: Sequence[str], refused: ModelInputRefused) -> list[Embedded]:
        """Embed a ``refused`` group in halves, recursively, until each refused passage is isolated."""
        if len(passages) == 1:
            return [refused]
        vectors: list[Embedded] = []
        middle = len(passages) // 2
        for half in (passages[:middle], passages[middle:]):
            try:
                vectors.extend(await self.embedder.embed(half))  # an array is added to a list, not appended, by +=
            except ModelInputRefused as again:
                vectors += await self._embed_halves(half, again)
        return vectors

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Return the extractions of the chunks. After an error, extract each chunk separately, so that only one fails."""
        if not chunks:
            return []
        try:
            return with_code(await self.extractor.extract(title, chunks), chunks, title, self.code)
        except (ModelInputRefused, ModelReplyInvalid) as error:
            problem: Exception = error
        except (StoreUnavailable, ModelUnavailable, UnreadableDocument):
            raise
        except Exception as error:  # noqa: BLE001
            # The error boundary of one chunk. At the boundary of the step, a fault in one sentence would end the whole
            # document. The error is logged, and listed with the document.
            problem = error
        if len(chunks) > 1:
            return [extraction for chunk in chunks for extraction in await self.extract(title, [chunk])]
        (chunk,) = chunks
        is_ours = isinstance(problem, AgenticRagError)
        _log.error("extraction_failed", document=chunk.document_id, chunk=chunk.id, exc_info=None if is_ours else problem)
        code, message = "extraction_failed", f"unexpected {type(problem).__name__}"
        if isinstance(problem, AgenticRagError):
            code, message = problem.code, problem.message
        return [Extraction(chunk_id=chunk.id, failure=Failure("extract", code, message, chunk.id))]


def recipe_of(embedder: str, extractor: str, title: str, chunk: Chunk) -> str:
    """Return the recipe of a chunk for an embedder and an extractor of these names."""
    made_from = (chunk.id, chunk.content_hash, title, *chunk.location.headings, passage_text(title, chunk))
    return hashlib.sha256("\x1f".join((embedder, extractor, *made_from)).encode()).hexdigest()


def _prepare_chunk(chunk: Chunk, recipe: str, vector: Embedded, extraction: Extraction) -> PreparedChunk:
    if isinstance(vector, ModelInputRefused):
        refused = Failure("embed", vector.code, vector.message, chunk.id)
        return PreparedChunk(chunk, None, extraction, recipe=recipe, failure=refused)
    return PreparedChunk(chunk, vector, extraction, recipe=recipe)
