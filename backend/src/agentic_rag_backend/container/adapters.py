"""Opening of the stores and models that the settings choose."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass

from agentic_rag_backend.container.deployment import identify, require_store_folders
from agentic_rag_backend.container.models import model_key, open_cross_encoder, open_reader, open_rerank_endpoint, tokenizer_file
from agentic_rag_backend.container.options import extraction_methods
from agentic_rag_backend.container.private_folder import FOLDER_MODE, make_private
from agentic_rag_backend.container.reindexing import open_readable
from agentic_rag_backend.documents.recognition.ocr import Ocr, OcrSettings
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.ingestion.isolation.call_limits import CallLimits
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation
from agentic_rag_backend.ingestion.prepare.reading import IsolatedExtractor
from agentic_rag_backend.knowledge.extraction.methods import ExtractionMethods
from agentic_rag_backend.knowledge.extraction.model.temporal import TemporalEngine
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.calibration import CALIBRATION_FILE, Calibrator
from agentic_rag_backend.models.embedding.evidence_encoder import EvidenceEncoder
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.models.entailment.base import EntailmentReader
from agentic_rag_backend.models.llm.base import ExtractiveModel, LanguageModel
from agentic_rag_backend.models.reranking.base import PassageScorer
from agentic_rag_backend.plugins import load_plugin, missing_extra
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.postgres import Patience
from agentic_rag_backend.stores.graph.base import GraphSearchEngine, GraphStore
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.ownership import Owner
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.stores.vector.bm25 import Bm25Parameters
from agentic_rag_backend.stores.vector.edge.folder import lock
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.edge.upkeep import UpkeepOptions
from agentic_rag_backend.telemetry.tracing import trace_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Open stores and models, on which the services run."""

    vectors: VectorStore
    catalogue: Catalogue
    graph: GraphStore
    blobs: BlobStore
    embedder: Embedder
    calibrator: Calibrator
    """Knows the scale of the embedder's cosines."""
    evidence_encoder: EvidenceEncoder
    """Encodes questions and sentences when answers are judged."""
    model: LanguageModel
    isolation: Isolation
    ocr: Ocr
    extraction: ExtractionMethods
    reader: EntailmentReader | None = None
    """Checks claims, with CLAIM_VERIFIER=nli."""
    cross_encoder: PassageScorer | None = None
    rerank_endpoint: PassageScorer | None = None
    graph_search: GraphSearchEngine | None = None
    reindex_due: str | None = None
    """Reason for a required reindexing. Until then, the embedder that made the vectors reads them, or no embedder does."""


async def open_adapters(settings: Settings, stack: AsyncExitStack) -> Adapters:
    """Open the stores and models. ``stack`` closes them in reverse order."""
    await asyncio.to_thread(make_private, settings.data_dir)
    foundation = Foundation(settings, stack)

    async def opened(embedder: Embedder) -> VectorStore:
        return await open_vectors(settings, embedder, foundation)

    # Open the store with the lock of DATA_DIR first. If another process holds it, nothing else may be touched.
    readable = await open_readable(settings, opened, stack)
    vectors, embedder = readable.vectors, readable.embedder
    stack.push_async_callback(vectors.close)
    catalogue, owner = await foundation.catalogue(), await foundation.owner()
    if catalogue.sync_engine.dialect.name == "sqlite":  # the only process: earlier workers were killed
        await catalogue.idempotency.release_all()
        await catalogue.jobs.hand_back_all()
    graph = await open_graph(settings, owner)
    stack.push_async_callback(graph.close)
    calibrator = await asyncio.to_thread(Calibrator, embedder, settings.data_dir / CALIBRATION_FILE)
    stack.push_async_callback(calibrator.close)
    evidence_encoder = EvidenceEncoder(embedder)
    stack.push_async_callback(evidence_encoder.close)
    model = _model(settings)
    stack.push_async_callback(model.close)
    cross_encoder, rerank_endpoint = open_cross_encoder(settings), open_rerank_endpoint(settings)
    for scorer in (cross_encoder, rerank_endpoint):
        if scorer is not None:
            stack.push_async_callback(scorer.close)
    reader = await asyncio.to_thread(open_reader, settings)
    if reader is not None:
        stack.push_async_callback(reader.close)
    blobs = await open_blobs(settings, owner)
    await require_store_folders(settings, catalogue)
    isolation = open_isolation(settings)
    stack.push_async_callback(isolation.close)
    ocr = open_ocr(settings)
    await ocr.require_installation()
    return Adapters(
        vectors=trace_store(vectors, "vectors"),
        catalogue=catalogue,
        graph=trace_store(graph, "graph"),
        blobs=trace_store(blobs, "blobs"),
        embedder=embedder,
        calibrator=calibrator,
        evidence_encoder=evidence_encoder,
        model=model,
        isolation=isolation,
        ocr=ocr,
        extraction=extraction_methods(
            settings, IsolatedExtractor(RuleExtractor(), isolation), model, _temporal_engine(settings, graph, catalogue)
        ),
        reader=reader,
        cross_encoder=cross_encoder,
        rerank_endpoint=rerank_endpoint,
        graph_search=_open_graph_search(settings, graph, vectors, model, calibrator),
        reindex_due=readable.due,
    )


async def open_catalogue(settings: Settings) -> Catalogue:
    """Open the catalogue. Update its schema or, on a server without MIGRATE_ON_START, require the current schema."""
    url = settings.database_url or f"sqlite:///{settings.data_dir / 'catalogue.db'}"
    catalogue = await Catalogue.open(url, Patience(read_s=settings.database_timeout_s))
    try:
        on_server = catalogue.sync_engine.dialect.name != "sqlite"
        await (catalogue.require_migrated() if on_server and not settings.migrate_on_start else catalogue.migrate())
    except BaseException:
        await catalogue.close()
        raise
    return catalogue


class Foundation:
    """The catalogue and its deployment, opened at first use. ``stack`` closes them.

    Another process with DATA_DIR open is detected before: by the embedded vectors, which lock it, or here.

    Args:
        renaming: see `deployments.identify`.
    """

    def __init__(self, settings: Settings, stack: AsyncExitStack, *, renaming: bool = False) -> None:
        self._settings = settings
        self._stack = stack
        self._renaming = renaming
        self._catalogue: Catalogue | None = None
        self._owner: Owner | None = None

    async def catalogue(self) -> Catalogue:
        """Return the catalogue.

        Raises:
            StoreLocked: another process has DATA_DIR open.
        """
        if self._catalogue is None:
            settings = self._settings
            exclusive = settings.graph_store == "sqlite" or (settings.database_url or "sqlite").startswith("sqlite")
            if exclusive and settings.vector_store == "qdrant":
                # Other data in DATA_DIR still has one owner.
                self._stack.callback(os.close, lock(settings.data_dir / "vectors"))
            self._catalogue = await open_catalogue(settings)
            self._stack.push_async_callback(self._catalogue.close)
        return self._catalogue

    async def owner(self) -> Owner:
        """Return the deployment as the owner of data on shared servers."""
        if self._owner is None:
            self._owner = await identify(self._settings, await self.catalogue(), renaming=self._renaming)
        return self._owner


async def open_vectors(settings: Settings, embedder: Embedder, foundation: Foundation, *, building: bool = False) -> VectorStore:
    """Open the vectors of ``embedder``. With ``building``, open the new collection that a reindexing on a server fills.

    Raises:
        ReindexRequired: there are vectors of another embedder.
        StoreLocked: another process has DATA_DIR open.
        ConfigurationError: the vectors on the server belong to another deployment.
    """
    if settings.vector_store == "qdrant":
        return await _open_qdrant(settings, embedder, foundation, building=building)
    return await EdgeVectorStore.open(
        settings.data_dir / "vectors",
        dimensions=embedder.dimensions,
        embedder_fingerprint=embedder.fingerprint,
        bm25=Bm25Parameters.of_language(settings.language),
        upkeep=UpkeepOptions(min_points=settings.vector_index_min_points, unindexed_share=settings.vector_index_unindexed_share),
    )


async def _open_qdrant(settings: Settings, embedder: Embedder, foundation: Foundation, *, building: bool) -> VectorStore:
    if settings.qdrant_url is None:
        raise ConfigurationError("VECTOR_STORE=qdrant requires QDRANT_URL")
    try:
        # The client belongs to an extra, which the embedded profile does not need.
        from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore
        from agentic_rag_backend.stores.vector.qdrant.server import connect
    except ModuleNotFoundError as error:
        raise missing_extra("VECTOR_STORE=qdrant", "server", error) from error
    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    owner = await foundation.owner()
    return await QdrantVectorStore.open(
        connect(
            settings.qdrant_url,
            api_key=key,
            prefer_grpc=settings.qdrant_prefer_grpc,
            grpc_port=settings.qdrant_grpc_port,
            timeout_s=settings.qdrant_timeout_s,
            ca_file=settings.qdrant_ca_file,
        ),
        dimensions=embedder.dimensions,
        embedder_fingerprint=embedder.fingerprint,
        bm25=Bm25Parameters.of_language(settings.language),
        owner=owner,
        timeout_s=settings.qdrant_timeout_s,
        building=building,
    )


async def open_blobs(settings: Settings, owner: Owner) -> BlobStore:
    """Open the originals at BLOB_URL, with a check of their owner, or in DATA_DIR.

    Raises:
        ConfigurationError: the data at BLOB_URL belongs to another deployment.
    """
    if settings.blob_url is None:
        folder = settings.data_dir / "blobs"
        await asyncio.to_thread(folder.mkdir, mode=FOLDER_MODE, exist_ok=True)
        return BlobStore(folder.absolute().as_uri())
    blobs = BlobStore(settings.blob_url)
    await blobs.claim(owner)
    return blobs


async def open_graph(settings: Settings, owner: Owner) -> GraphStore:
    """Open the graph of the deployment."""
    if settings.graph_store == "sqlite":
        return await SqliteGraphStore.open(settings.data_dir / "graph.db")
    if settings.neo4j_uri is None:
        raise ConfigurationError("GRAPH_STORE=neo4j requires NEO4J_URI")
    try:
        # The driver belongs to an extra, which the embedded profile does not need.
        from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
        from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
    except ModuleNotFoundError as error:
        raise missing_extra("GRAPH_STORE=neo4j", "server", error) from error
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
        owner=owner,
    )


def _open_graph_search(
    settings: Settings, graph: GraphStore, vectors: VectorStore, model: LanguageModel, calibrator: Calibrator
) -> GraphSearchEngine | None:
    """Return Graphiti's search over the graph. None if it is disabled or the graph is not in Neo4j."""
    if settings.graph_store != "neo4j" or not settings.graphiti_search_enabled:
        return None
    open_fact_search = load_plugin("fact_search")
    from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore

    if not isinstance(graph, Neo4jGraphStore):
        return None
    engine: GraphSearchEngine = open_fact_search(graph.connections, vectors, model=model, calibrator=calibrator)
    return engine


def _temporal_engine(settings: Settings, graph: GraphStore, catalogue: Catalogue) -> TemporalEngine | None:
    """Return the engine of EXTRACTION=graphiti. None without a language model, or if the graph is not in Neo4j."""
    if settings.graph_store != "neo4j" or settings.llm == "extractive":
        return None
    return TemporalEngine(load_plugin("episodes")(), graph, catalogue.documents)


def open_isolation(settings: Settings) -> Isolation:
    """Return the client of the child processes that read documents. It starts them when they are needed.

    Raises:
        ConfigurationError: the tokenizer, which chunking uses, is missing or damaged.
    """
    if settings.embedder != "bundled":  # the bundled embedder has loaded its own already
        WordPieceTokenizer(tokenizer_file(settings))  # a damaged file fails the start, not the first document
    limits = CallLimits(cpu_s=settings.parse_cpu_s, timeout_s=settings.parse_timeout_s, memory_mb=settings.parse_memory_mb)
    return Isolation(limits, tokenizer_file=tokenizer_file(settings), niceness=settings.background_niceness)


def open_ocr(settings: Settings) -> Ocr:
    """Return the recognition of text in pictures. It looks for its program when the first document needs it."""
    return Ocr(
        OcrSettings(
            mode=settings.ocr,
            languages=settings.ocr_languages,
            max_pages=settings.ocr_max_pages,
            cpu_s=settings.ocr_cpu_s,
            timeout_s=settings.ocr_timeout_s,
        )
    )


def _model(settings: Settings) -> LanguageModel:
    return ExtractiveModel() if settings.llm == "extractive" else open_endpoint_model(settings)


def open_endpoint_model(settings: Settings) -> LanguageModel:
    """Return the model of LLM=openai.

    Raises:
        ConfigurationError: a setting is missing.
    """
    # The SDK would be a fifth of all imports of a process without an endpoint.
    from agentic_rag_backend.models.llm.openai import OpenAIModel
    from agentic_rag_backend.models.llm.request_bodies import ModelRequestOptions

    return OpenAIModel(
        api_key=model_key(settings, "LLM=openai"),
        base_url=settings.openai_base_url,
        model=settings.llm_model,
        timeout_s=settings.llm_timeout_s,
        max_concurrency=settings.llm_max_concurrency,
        options=ModelRequestOptions(
            temperature=settings.llm_temperature,
            reasoning_effort=settings.llm_reasoning_effort,
            reasoning_tokens=settings.llm_reasoning_tokens,
            extra_body=settings.extra_body,
        ),
    )
