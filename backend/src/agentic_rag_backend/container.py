"""The composition root: settings in, services out. The only importer of adapters."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import structlog

from agentic_rag_backend.communities.detection import DetectionOptions
from agentic_rag_backend.communities.options import RebuildOptions
from agentic_rag_backend.communities.service import WORKFLOW as REBUILD
from agentic_rag_backend.communities.service import CommunityService
from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError
from agentic_rag_backend.generation.service import PLACEHOLDERS, REQUIRED_PLACEHOLDERS, AnswerOptions, AnswerService
from agentic_rag_backend.ingestion.computation import Computation
from agentic_rag_backend.ingestion.reconciliation.rounds import Services as ReconciledServices
from agentic_rag_backend.ingestion.reconciliation.rounds import Stores as ReconciledStores
from agentic_rag_backend.ingestion.reconciliation.schedule import Schedule
from agentic_rag_backend.ingestion.reconciliation.service import WORKFLOW as RECONCILE
from agentic_rag_backend.ingestion.reconciliation.service import Reconciler
from agentic_rag_backend.ingestion.reconciliation.tenants import TenantsRound
from agentic_rag_backend.ingestion.runs import Runner
from agentic_rag_backend.ingestion.service import DELETE, INGEST, IngestionOptions, IngestionService
from agentic_rag_backend.jobs.base import JobQueue, QueueName
from agentic_rag_backend.jobs.queue import DbosQueue
from agentic_rag_backend.jobs.service import JobService
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution import Resolver
from agentic_rag_backend.models.embedding.base import Embedder, Tokenizer
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.openai import OpenAIEmbedder
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.models.llm.extractive import ExtractiveModel
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.prompts import read_file
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.dual_level import DualLevelOptions, choose_weights
from agentic_rag_backend.retrieval.encoder import QueryEncoder
from agentic_rag_backend.retrieval.graph_cache import TenantGraphs
from agentic_rag_backend.retrieval.registry import Parts, RetrieverRegistry
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.blob.obstore import ObstoreBlobStore
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.stores.vector.edge import EdgeVectorStore
from agentic_rag_backend.stores.vector.folder import lock
from agentic_rag_backend.stores.vector.upkeep import UpkeepOptions
from agentic_rag_backend.tenancy.authentication import Authenticator
from agentic_rag_backend.tenancy.features import COMMUNITY_AUTO_REBUILD, DUAL_LEVEL, Features, FlagDefault
from agentic_rag_backend.tenancy.service import Erase, TenantService

_FILE_CLOCK = timedelta(milliseconds=100)
"""Files are stamped by a clock that lags a few milliseconds behind the process's."""
_FIRST_WORKFLOW = {
    JobKind.INGEST: INGEST,
    JobKind.DELETE: DELETE,
    JobKind.REBUILD: REBUILD,
    JobKind.RECONCILE: RECONCILE,
}
_KEYS_SWEPT_EVERY_S = 600.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Everything a process serves with."""

    settings: Settings
    catalogue: Catalogue
    vectors: VectorStore
    graph: GraphStore
    blobs: BlobStore
    embedder: Embedder
    tokenizer: Tokenizer
    model: LanguageModel
    queue: JobQueue
    jobs: JobService
    tenants: TenantService
    authenticator: Authenticator
    features: Features
    ingestion: IngestionService
    reconciler: Reconciler
    communities: CommunityService
    retrievers: RetrieverRegistry
    answers: AnswerService


@asynccontextmanager
async def open_container(settings: Settings, *, work: bool = True) -> AsyncIterator[Container]:
    """Open every store, bring schemas up to date, start the workers, and close all of it in the end.

    Args:
        work: run jobs in this process.

    Raises:
        StoreLocked: another process has DATA_DIR open.
        ReindexRequired: DATA_DIR holds vectors of another embedder.
        ConfigurationError: settings contradict each other.
    """
    async with AsyncExitStack() as stack:
        container = await _compose(settings, stack)
        # Registered after the stores, so run before them: nothing that a worker uses is closed under it.
        stack.push_async_callback(container.queue.shutdown)
        stack.push_async_callback(container.communities.close)
        if work:
            swept = asyncio.create_task(_sweep(container.reconciler), name="sweep")
            stack.push_async_callback(asyncio.wait, [swept])
            await container.queue.launch()
            await container.communities.resume()
            _keep_schedule(container, stack)
            _keep_sweeping(container.catalogue, stack)
        else:
            await container.queue.migrate()
        yield container


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """The services that the reconciler asks to mend what is theirs."""

    queue: JobQueue
    jobs: JobService
    tenants: TenantService
    ingestion: IngestionService
    communities: CommunityService
    graphs: TenantGraphs
    erase: Erase


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adapters:
    """What the services stand on, open."""

    vectors: VectorStore
    catalogue: SqlCatalogue
    graph: GraphStore
    blobs: BlobStore
    embedder: Embedder
    model: LanguageModel


async def _compose(settings: Settings, stack: AsyncExitStack) -> Container:
    adapters = await _open_adapters(settings, stack)
    catalogue = adapters.catalogue

    started_at = datetime.now(UTC) - _FILE_CLOCK

    async def given_up(tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        await ingestion.given_up(tenant, job_id, attempt, error)

    queue = DbosQueue(
        catalogue.sync_engine,
        executor_id=f"{os.getpid()}-{uuid.uuid4().hex[:8]}",
        prepare_concurrency=settings.prepare_concurrency,
        polling_interval_s=settings.job_polling_interval_s,
        on_failed=given_up,
        # An SQLite database belongs to the process that has DATA_DIR open.
        workers=None if catalogue.sync_engine.dialect.name == "sqlite" else catalogue.workers,
    )
    communities = _communities(settings, adapters, queue)
    tokenizer = _tokenizer(settings)
    ingestion = _ingestion(settings, adapters, queue, tokenizer, communities)
    for name, (queue_name, workflow) in ingestion.workflows().items():
        queue.register(name, queue_name, workflow)
    # Not among the commits: a model writing summaries must not hold up the tenant's documents.
    queue.register(REBUILD, QueueName.PREPARE, communities.rebuild)
    graphs = TenantGraphs(adapters.graph, catalogue.documents, max_bytes=settings.tenant_graph_cache_mb * 1024 * 1024)
    erase = _erase_with(adapters, graphs)
    tenants = TenantService(catalogue.tenants, erase)
    jobs = JobService(catalogue.jobs, queue, _FIRST_WORKFLOW)
    served = _Served(
        queue=queue, jobs=jobs, tenants=tenants, ingestion=ingestion, communities=communities, graphs=graphs, erase=erase
    )
    reconciler = _reconciler(adapters, served, started_at)
    # Beside the commits, for each of which it takes the tenant's turn only to mend something.
    queue.register(RECONCILE, QueueName.PREPARE, reconciler.reconcile_v1)
    retrievers = RetrieverRegistry(Parts(_readable(adapters), graphs, _dual_level_options(settings)))
    return Container(
        settings=settings,
        catalogue=catalogue,
        vectors=adapters.vectors,
        graph=adapters.graph,
        blobs=adapters.blobs,
        embedder=adapters.embedder,
        tokenizer=tokenizer,
        model=adapters.model,
        queue=queue,
        jobs=jobs,
        tenants=tenants,
        authenticator=Authenticator(
            catalogue.tenants,
            operator_key=settings.operator_key.get_secret_value() if settings.operator_key else None,
        ),
        features=_features(settings),
        ingestion=ingestion,
        reconciler=reconciler,
        communities=communities,
        retrievers=retrievers,
        answers=AnswerService(
            retrievers=retrievers, model=adapters.model, documents=catalogue.documents, options=_answer_options(settings)
        ),
    )


async def _open_adapters(settings: Settings, stack: AsyncExitStack) -> _Adapters:
    """Open the stores and models; ``stack`` closes them, the last one first."""
    data_dir = settings.data_dir
    # What a tenant's documents say is for this account's eyes only.
    await asyncio.to_thread(data_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
    embedder = _embedder(settings)
    stack.push_async_callback(embedder.close)
    # First the store that knows whether another process is here: nothing else may be touched then.
    vectors = await _open_vectors(settings, embedder, stack)
    stack.push_async_callback(vectors.close)
    catalogue = await SqlCatalogue.open(settings.database_url or f"sqlite:///{data_dir / 'catalogue.db'}")
    stack.push_async_callback(catalogue.close)
    await catalogue.migrate()
    graph = await _open_graph(settings)
    stack.push_async_callback(graph.close)
    model = _model(settings, embedder)
    stack.push_async_callback(model.close)
    blobs = ObstoreBlobStore(settings.blob_url or (data_dir / "blobs").absolute().as_uri())
    return _Adapters(vectors=vectors, catalogue=catalogue, graph=graph, blobs=blobs, embedder=embedder, model=model)


async def _open_vectors(settings: Settings, embedder: Embedder, stack: AsyncExitStack) -> VectorStore:
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
    if settings.qdrant_url is None:
        raise ConfigurationError("VECTOR_STORE=qdrant needs QDRANT_URL")
    if settings.graph_store == "sqlite" or (settings.database_url or "sqlite").startswith("sqlite"):
        # What else is in DATA_DIR still has one owner.
        stack.callback(os.close, lock(folder))
    try:
        # Its client comes with an extra, which the embedded profile does without.
        from agentic_rag_backend.stores.vector.qdrant import QdrantVectorStore
        from agentic_rag_backend.stores.vector.qdrant_server import connect
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"VECTOR_STORE=qdrant needs the extra 'server' of agentic-rag-backend: {error}") from error
    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    return await QdrantVectorStore.open(
        connect(settings.qdrant_url, api_key=key, prefer_grpc=settings.qdrant_prefer_grpc, timeout_s=settings.qdrant_timeout_s),
        dimensions=embedder.dimensions,
        embedder_fingerprint=embedder.fingerprint,
        timeout_s=settings.qdrant_timeout_s,
    )


async def _open_graph(settings: Settings) -> GraphStore:
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
        )
    )


def _communities(settings: Settings, adapters: _Adapters, queue: JobQueue) -> CommunityService:
    return CommunityService(
        catalogue=adapters.catalogue,
        graph=adapters.graph,
        vectors=adapters.vectors,
        embedder=adapters.embedder,
        model=adapters.model,
        queue=queue,
        detection=_detection(settings),
        model_name=fast_model(settings),
        auto_rebuild=settings.community_auto_rebuild,
        rebuild_delay_s=settings.community_rebuild_delay_s,
    )


def _ingestion(
    settings: Settings, adapters: _Adapters, queue: JobQueue, tokenizer: Tokenizer, communities: CommunityService
) -> IngestionService:
    return IngestionService(
        catalogue=adapters.catalogue,
        graph=adapters.graph,
        vectors=adapters.vectors,
        blobs=adapters.blobs,
        embedder=adapters.embedder,
        tokenizer=tokenizer,
        extractor=RuleExtractor(),
        resolver=Resolver(adapters.graph),
        queue=queue,
        options=IngestionOptions(max_upload_mb=settings.max_upload_mb, patience_s=settings.job_patience_s),
        on_changed=communities.on_documents_changed,
    )


def _readable(adapters: _Adapters) -> Stores:
    """Return what retrievers read from."""
    return Stores(
        documents=adapters.catalogue.documents,
        communities=adapters.catalogue.communities,
        vectors=adapters.vectors,
        graph=adapters.graph,
        embedder=adapters.embedder,
        encoder=QueryEncoder(adapters.embedder),
    )


def _erase_with(adapters: _Adapters, graphs: TenantGraphs) -> Erase:
    """Return what removes a tenant from every store but the catalogue, which goes last."""

    async def erase(tenant: TenantId) -> Mapping[str, int]:
        graphs.forget(tenant)
        return {
            "vectors": await adapters.vectors.delete_tenant(tenant),
            "graph": await adapters.graph.delete_tenant(tenant),
            "blobs": await adapters.blobs.delete_tenant(tenant),
        }

    return erase


async def _sweep(reconciler: Reconciler) -> None:
    """Remove what processes that were killed left in the blob store: housekeeping, which nothing waits for."""
    try:
        removed = await reconciler.sweep()
    except AgenticRagError as error:
        _log.warning("sweep_failed", code=error.code, reason=error.message)
    else:
        if removed:
            _log.info("originals_of_no_document_removed", count=removed)


def _keep_sweeping(catalogue: Catalogue, stack: AsyncExitStack) -> None:
    """Remove answers under idempotency keys whose time is over, until ``stack`` is left."""

    async def sweep() -> None:
        while True:
            try:
                await catalogue.idempotency.sweep()
            except AgenticRagError as error:
                _log.warning("idempotency_keys_not_swept", code=error.code, reason=error.message)
            await asyncio.sleep(_KEYS_SWEPT_EVERY_S)

    task = asyncio.create_task(sweep(), name="idempotency-keys")
    stack.push_async_callback(asyncio.wait, [task])
    stack.callback(task.cancel)


def _keep_schedule(container: Container, stack: AsyncExitStack) -> None:
    """Compare the stores once an interval, until ``stack`` is left."""
    interval_s = container.settings.reconcile_interval_s
    if interval_s:
        schedule = Schedule(container.reconciler, container.catalogue.tenants, interval_s=interval_s)
        task = asyncio.create_task(schedule.run(), name="reconciliation")
        stack.push_async_callback(asyncio.wait, [task])
        stack.callback(task.cancel)


def _reconciler(adapters: _Adapters, parts: _Served, started_at: datetime) -> Reconciler:
    """Return what compares the stores with one another."""
    catalogue, queue, ingestion = adapters.catalogue, parts.queue, parts.ingestion
    stores = ReconciledStores(
        catalogue=catalogue,
        graph=adapters.graph,
        vectors=adapters.vectors,
        blobs=adapters.blobs,
        embedder=adapters.embedder,
        computation=Computation(embedder=adapters.embedder, extractor=RuleExtractor()),
        resolver=Resolver(adapters.graph),
    )

    def on_mended(tenant: TenantId) -> None:
        parts.graphs.forget(tenant)
        parts.communities.on_documents_changed(tenant)

    async def rebuild(tenant: TenantId) -> Job:
        return await parts.communities.request_rebuild(tenant, RebuildOptions(mode="full"))

    services = ReconciledServices(
        queue=queue,
        enqueue=lambda kind: queue.enqueuer(_FIRST_WORKFLOW[kind]),
        give_up=ingestion.given_up,
        retry=parts.jobs.retry,
        rebuild=rebuild,
        on_mended=on_mended,
    )
    tenants = TenantsRound(stores=stores, erase=parts.erase, delete=parts.tenants.delete)
    runner = Runner(catalogue.jobs)
    return Reconciler(stores, services, tenants, runner=runner, started_at=started_at)


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


def _tokenizer(settings: Settings) -> Tokenizer:
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


def fast_model(settings: Settings) -> str | None:
    """Return the model of summaries; None where no model is configured."""
    return None if settings.llm == "extractive" else settings.llm_fast_model or settings.llm_model


def synthesis_model(settings: Settings) -> str:
    """Return the model that writes dual-level answers."""
    if settings.llm == "extractive":
        return "extractive"
    return settings.dual_level_synthesis_model or settings.llm_fast_model or settings.llm_model


def _detection(settings: Settings) -> DetectionOptions:
    return DetectionOptions(
        max_cluster_size=settings.community_max_cluster_size,
        min_size=settings.community_min_size,
        resolution=settings.community_resolution,
        max_levels=settings.community_max_levels,
    )


def _dual_level_options(settings: Settings) -> DualLevelOptions:
    weights, _ = choose_weights(settings.dual_level_low_weight, settings.dual_level_high_weight)
    return DualLevelOptions(
        weights=weights, low_min_score=settings.dual_level_low_min_score, high_min_score=settings.dual_level_high_min_score
    )


def _answer_options(settings: Settings) -> AnswerOptions:
    prompt_file = settings.dual_level_prompt_file
    return AnswerOptions(
        min_confidence=settings.answer_min_confidence,
        generator=settings.default_generator,
        dual_level_model=None if settings.llm == "extractive" else synthesis_model(settings),
        dual_level_temperature=settings.dual_level_synthesis_temperature,
        # Read at start, so that a prompt that cannot work is refused before anything is served.
        dual_level_prompt=read_file(prompt_file, required=REQUIRED_PLACEHOLDERS, allowed=PLACEHOLDERS) if prompt_file else None,
    )


_FLAGS = {
    DUAL_LEVEL: ("dual_level_retrieval_enabled", "dual-level retrieval: chunks and communities in parallel"),
    COMMUNITY_AUTO_REBUILD: ("community_auto_rebuild", "rebuild communities after documents changed"),
}


def _features(settings: Settings) -> Features:
    """Return the flags: a value that differs from the code's own default comes from the environment."""
    defaults: dict[str, FlagDefault] = {}
    for flag, (field, description) in _FLAGS.items():
        value, code_default = bool(getattr(settings, field)), bool(Settings.model_fields[field].default)
        source: Literal["default", "environment"] = "environment" if field in settings.model_fields_set else "default"
        defaults[flag] = FlagDefault(value, source, code_default, description)
    return Features(defaults)
