"""The stores and models that the settings choose, opened."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass

from agentic_rag_backend.container.places import require_places
from agentic_rag_backend.container.reindexing import open_readable
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.base import Embedder, Tokenizer
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.openai import OpenAIEmbedder
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.models.llm.extractive import ExtractiveModel
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.blob.obstore import ObstoreBlobStore
from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.catalogue.postgres import Patience
from agentic_rag_backend.stores.graph.base import GraphSearch, GraphStore
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.stores.vector.edge import EdgeVectorStore
from agentic_rag_backend.stores.vector.folder import lock
from agentic_rag_backend.stores.vector.upkeep import UpkeepOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What the services stand on, open."""

    vectors: VectorStore
    catalogue: SqlCatalogue
    graph: GraphStore
    blobs: BlobStore
    embedder: Embedder
    model: LanguageModel
    graph_search: GraphSearch | None = None
    reindex_due: str | None = None
    """Why the vectors are to be built anew; they are read with the embedder that made them, or not at all."""


async def open_adapters(settings: Settings, stack: AsyncExitStack) -> Adapters:
    """Open the stores and models; ``stack`` closes them, the last one first."""
    data_dir = settings.data_dir
    # What a tenant's documents say is for this account's eyes only.
    await asyncio.to_thread(data_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
    configured = open_embedder(settings)
    stack.push_async_callback(configured.close)

    async def opened(embedder: Embedder) -> VectorStore:
        return await open_vectors(settings, embedder, stack)

    # First the store that knows whether another process is here: nothing else may be touched then.
    readable = await open_readable(settings, configured, opened, stack)
    vectors, embedder = readable.vectors, readable.embedder
    stack.push_async_callback(vectors.close)
    catalogue = await open_catalogue(settings)
    stack.push_async_callback(catalogue.close)
    if catalogue.sync_engine.dialect.name == "sqlite":  # of this process alone: who was at work before was killed
        await catalogue.idempotency.release_all()
    graph = await open_graph(settings)
    stack.push_async_callback(graph.close)
    model = _model(settings, embedder)
    stack.push_async_callback(model.close)
    blobs = ObstoreBlobStore(settings.blob_url or (data_dir / "blobs").absolute().as_uri())
    await require_places(settings, catalogue)
    return Adapters(
        vectors=vectors,
        catalogue=catalogue,
        graph=graph,
        blobs=blobs,
        embedder=embedder,
        model=model,
        graph_search=_open_graph_search(settings, graph, vectors, embedder, model),
        reindex_due=readable.due,
    )


async def open_catalogue(settings: Settings) -> SqlCatalogue:
    """Open the catalogue, its schema brought up to date or, on a server where that is a command's, found to be."""
    url = settings.database_url or f"sqlite:///{settings.data_dir / 'catalogue.db'}"
    catalogue = await SqlCatalogue.open(url, Patience(read_s=settings.database_timeout_s))
    try:
        on_server = catalogue.sync_engine.dialect.name != "sqlite"
        await (catalogue.require_migrated() if on_server and not settings.migrate_on_start else catalogue.migrate())
    except BaseException:
        await catalogue.close()
        raise
    return catalogue


async def open_vectors(settings: Settings, embedder: Embedder, stack: AsyncExitStack, *, building: bool = False) -> VectorStore:
    """Open the vectors of ``embedder``, or, with ``building``, those that a server has them built beside.

    Raises:
        ReindexRequired: there are vectors of another embedder.
        StoreLocked: another process has DATA_DIR open.
    """
    folder = settings.data_dir / "vectors"
    if settings.vector_store == "edge":
        return await EdgeVectorStore.open(
            folder,
            dimensions=embedder.dimensions,
            embedder_fingerprint=embedder.fingerprint,
            upkeep=UpkeepOptions(
                min_points=settings.vector_index_min_points, unindexed_share=settings.vector_index_unindexed_share
            ),
        )
    owned = settings.graph_store == "sqlite" or (settings.database_url or "sqlite").startswith("sqlite")
    async with AsyncExitStack() as taken:
        if owned and settings.qdrant_url is not None:
            # What else is in DATA_DIR still has one owner.
            taken.callback(os.close, lock(folder))
        vectors = await _open_qdrant(settings, embedder, building=building)
        stack.push_async_exit(taken.pop_all())
    return vectors


async def _open_qdrant(settings: Settings, embedder: Embedder, *, building: bool) -> VectorStore:
    if settings.qdrant_url is None:
        raise ConfigurationError("VECTOR_STORE=qdrant needs QDRANT_URL")
    try:
        # Its client comes with an extra, which the embedded profile does without.
        from agentic_rag_backend.stores.vector.qdrant import QdrantVectorStore
        from agentic_rag_backend.stores.vector.qdrant_server import connect
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"VECTOR_STORE=qdrant needs the extra 'server' of agentic-rag-backend: {error}") from error
    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    return await QdrantVectorStore.open(
        connect(
            settings.qdrant_url,
            api_key=key,
            prefer_grpc=settings.qdrant_prefer_grpc,
            timeout_s=settings.qdrant_timeout_s,
            ca_file=settings.qdrant_ca_file,
        ),
        dimensions=embedder.dimensions,
        embedder_fingerprint=embedder.fingerprint,
        timeout_s=settings.qdrant_timeout_s,
        building=building,
    )


async def open_graph(settings: Settings) -> GraphStore:
    """Open the graph."""
    if settings.graph_store == "sqlite":
        return await SqliteGraphStore.open(settings.data_dir / "graph.db")
    if settings.neo4j_uri is None:
        raise ConfigurationError("GRAPH_STORE=neo4j needs NEO4J_URI")
    try:
        # Its driver comes with an extra, which the embedded profile does without.
        from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
        from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"GRAPH_STORE=neo4j needs the extra 'server' of agentic-rag-backend: {error}") from error
    password = settings.neo4j_password
    return await Neo4jGraphStore.open(
        Neo4jAddress(
            uri=settings.neo4j_uri,
            user=settings.neo4j_user,
            password=password.get_secret_value() if password is not None else None,
            database=settings.neo4j_database,
            pool_size=settings.neo4j_pool_size,
            timeout_s=settings.neo4j_timeout_s,
            ca_file=settings.neo4j_ca_file,
        ),
        migrating=settings.migrate_on_start,
    )


def _open_graph_search(
    settings: Settings, graph: GraphStore, vectors: VectorStore, embedder: Embedder, model: LanguageModel
) -> GraphSearch | None:
    """Return Graphiti's search over the graph, or None where it is switched off or the graph is not in Neo4j."""
    if settings.graph_store != "neo4j" or not settings.graphiti_search_enabled:
        return None
    try:
        from agentic_rag_backend.stores.graph.graphiti.search import GraphitiSearch
        from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"GRAPHITI_SEARCH_ENABLED=true needs the extra 'server' of agentic-rag-backend: {error}"
        ) from error
    if not isinstance(graph, Neo4jGraphStore):
        return None
    return GraphitiSearch.over(graph.connections, vectors, embedder=embedder, model=model)


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder that is configured."""
    return _embedder(settings)


def _embedder(settings: Settings) -> Embedder:
    if settings.embedder == "bundled":
        return BundledEmbedder(model_path=settings.embedding_model_path, threads=settings.embedding_threads)
    return OpenAIEmbedder(
        api_key=_api_key(settings, "EMBEDDER=openai"),
        base_url=settings.openai_base_url,
        model=settings.embedding_model,
        dimensions=settings.embedding_dimensions,
        timeout_s=settings.llm_timeout_s,
        max_concurrency=settings.llm_max_concurrency,
    )


def open_tokenizer(settings: Settings) -> Tokenizer:
    """Return what counts word pieces: the bundled embedder\'s own tokenizer, or that of EMBEDDING_MODEL_PATH."""
    folder = settings.embedding_model_path
    return WordPieceTokenizer(folder / "tokenizer.json" if folder is not None else None)


def _model(settings: Settings, embedder: Embedder) -> LanguageModel:
    if settings.llm == "extractive":
        return ExtractiveModel(embedder)
    return OpenAIModel(
        api_key=_api_key(settings, "LLM=openai"),
        base_url=settings.openai_base_url,
        model=settings.llm_model,
        timeout_s=settings.llm_timeout_s,
        max_concurrency=settings.llm_max_concurrency,
    )


def _api_key(settings: Settings, what: str) -> str:
    """Return the endpoint's key; a local endpoint often has none, and then any text does."""
    if settings.openai_api_key is not None:
        return settings.openai_api_key.get_secret_value()
    if settings.openai_base_url is None:
        raise ConfigurationError(f"{what} needs OPENAI_API_KEY, or OPENAI_BASE_URL of an endpoint that takes none")
    return "none"
