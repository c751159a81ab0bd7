"""Vectors of an embedder that is not configured: opened with that embedder, or rebuilt by a reindexing."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag_backend.container.deployment import VECTORS, record_name, record_vector_folder, require_store_folders
from agentic_rag_backend.container.models import open_embedder
from agentic_rag_backend.container.options import extraction_methods
from agentic_rag_backend.container.private_folder import make_private
from agentic_rag_backend.errors import ReindexRequired
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.ingestion.prepare.reading import IsolatedExtractor
from agentic_rag_backend.ingestion.vectors.reindexer import Reindexer
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.onnx.exactness import multiplies_exactly
from agentic_rag_backend.models.llm.base import ExtractiveModel
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.stores.vector.bm25 import Bm25Parameters
from agentic_rag_backend.stores.vector.edge.folder import lock
from agentic_rag_backend.stores.vector.edge.rebuilding import open_for_rebuilding, take_over
from agentic_rag_backend.stores.vector.unavailable import UnavailableVectorStore
from agentic_rag_backend.telemetry.logs import get_logger

if TYPE_CHECKING:
    from agentic_rag_backend.container.adapters import Foundation

_EMBEDDER = re.compile(r"(.*?); \d+ x float32; ")
_log = get_logger(__name__)
Open = Callable[[Embedder], Awaitable[VectorStore]]


@dataclass(frozen=True, slots=True)
class Readable:
    """Readable vectors, and the embedder of questions. ``due`` is the reason for a required reindexing."""

    vectors: VectorStore
    embedder: Embedder
    due: str | None = None


async def open_readable(settings: Settings, open_vectors: Open, stack: AsyncExitStack) -> Readable:
    """Open the vectors with the configured embedder, else with the embedder that made them, else a store that refuses reads."""
    reasons: list[ReindexRequired] = []
    for candidate, configured in _candidates(settings):
        async with AsyncExitStack() as attempt:
            embedder = open_embedder(candidate)
            attempt.push_async_callback(embedder.close)
            try:
                vectors = await open_vectors(embedder)
            except ReindexRequired as error:
                reasons.append(error)
                continue
            stack.push_async_callback(attempt.pop_all().aclose)
            if configured:
                return Readable(vectors, embedder)
            _log.warning("reindex_required", reason=reasons[0].message, searched_with=embedder.fingerprint)
            return Readable(vectors, embedder, reasons[0].message)
    reason = reasons[0]
    _log.error("reindex_required", reason=reason.message)
    if settings.vector_store == "edge":  # the lock of the folder stays with this process
        stack.callback(os.close, lock(settings.data_dir / "vectors"))
    embedder = open_embedder(settings)
    stack.push_async_callback(embedder.close)
    return Readable(UnavailableVectorStore(reason), embedder, reason.message)


def _candidates(settings: Settings) -> Iterator[tuple[Settings, bool]]:
    """Yield settings of embedders that may have made the vectors, and whether they are configured, the preferred one first."""
    yield settings, True
    if settings.embedder == "bundled" and settings.embedding_arithmetic is None:
        yield settings.model_copy(update={"embedding_arithmetic": "float32"}), True
    for arithmetic in ("float32", "int8") if multiplies_exactly() else ("float32",):
        bundled = {
            "embedder": "bundled",
            "embedding_model": None,
            "embedding_model_path": None,
            "embedding_arithmetic": arithmetic,
        }
        yield settings.model_copy(update=bundled), False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexing:
    """A reindexing that is ready to run. ``finish`` activates its vectors. ``separate_store``: it writes to a second store."""

    reindexer: Reindexer
    separate_store: bool
    made_with: str
    finish: Callable[[], Awaitable[None]]


@asynccontextmanager
async def open_reindexing(settings: Settings) -> AsyncIterator[Reindexing]:
    """Open the stores that reindexing reads and writes.

    Raises:
        StoreLocked: a server has DATA_DIR open.
        StoreUnavailable: a store does not respond.
    """
    # Imported here, because these modules import this one.
    from agentic_rag_backend.container.adapters import Foundation, open_graph, open_isolation, open_vectors

    async with AsyncExitStack() as stack:
        await asyncio.to_thread(make_private, settings.data_dir)
        embedder = open_embedder(settings)
        stack.push_async_callback(embedder.close)
        made_with, separate_store = "", False
        foundation = Foundation(settings, stack, renaming=True)
        try:
            vectors = await open_vectors(settings, embedder, foundation)
        except ReindexRequired as error:
            made_with, separate_store = error.made_with, True
            vectors = await _open_for_rebuilding(settings, embedder, foundation)
        stack.push_async_callback(vectors.close)
        catalogue = await foundation.catalogue()
        graph = await open_graph(settings, await foundation.owner())
        stack.push_async_callback(graph.close)
        await require_store_folders(settings, catalogue, but=VECTORS)
        isolation = open_isolation(settings)
        stack.push_async_callback(isolation.close)
        # No language model is called. It only identifies the recorded results.
        methods = extraction_methods(settings, IsolatedExtractor(RuleExtractor(), isolation), ExtractiveModel())
        computation = Computation(embedder=embedder, extraction=methods)
        reindexer = _reindexer(catalogue, graph, vectors, computation, made_with)

        async def finish() -> None:
            if separate_store:
                await _take_over(settings, vectors)
            await record_vector_folder(settings, catalogue)
            await record_name(settings, catalogue)

        yield Reindexing(reindexer=reindexer, separate_store=separate_store, made_with=made_with, finish=finish)


def _reindexer(
    catalogue: Catalogue, graph: GraphStore, vectors: VectorStore, computation: Computation, made_with: str
) -> Reindexer:
    match_ = _EMBEDDER.match(made_with)
    before = match_[1] if match_ else None
    return Reindexer(
        catalogue=catalogue,
        transfer=catalogue.transfer,
        graph=graph,
        vectors=vectors,
        computation=computation,
        embedder_before=before if before != computation.embedder.fingerprint else None,
    )


async def _open_for_rebuilding(settings: Settings, embedder: Embedder, foundation: Foundation) -> VectorStore:
    if settings.vector_store == "edge":
        folder = settings.data_dir / "vectors"
        return await open_for_rebuilding(
            folder,
            dimensions=embedder.dimensions,
            embedder_fingerprint=embedder.fingerprint,
            bm25=Bm25Parameters.of_language(settings.language),
        )
    from agentic_rag_backend.container.adapters import open_vectors

    return await open_vectors(settings, embedder, foundation, building=True)


async def _take_over(settings: Settings, vectors: VectorStore) -> None:
    if settings.vector_store == "edge":
        await vectors.close()
        await asyncio.to_thread(take_over, settings.data_dir / "vectors", vectors.fingerprint)
        return
    from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore

    if isinstance(vectors, QdrantVectorStore):
        await vectors.take_over()
