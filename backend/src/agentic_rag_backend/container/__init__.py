"""The composition root: settings in, services out. The only importer of adapters."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType

from agentic_rag_backend.communities.service import WORKFLOW as REBUILD
from agentic_rag_backend.communities.service import CommunityService
from agentic_rag_backend.container.adapters import Adapters, fallback_model, open_adapters
from agentic_rag_backend.container.housekeeping import (
    FIRST_WORKFLOW,
    Household,
    Served,
    make_reconciler,
    sweep_originals,
)
from agentic_rag_backend.container.options import (
    answer_options,
    detection_options,
    dual_level_options,
    fast_calls,
    fast_model,
    features_of,
    global_answer_options,
    leg_weights,
    request_defaults,
    theme_options,
    warn_of_weights,
)
from agentic_rag_backend.container.raptor import make_raptor
from agentic_rag_backend.container.transfer import make_transfer
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.generation.global_answers import GlobalAnswers
from agentic_rag_backend.generation.service import AnswerService
from agentic_rag_backend.ingestion.reading import IsolatedReader
from agentic_rag_backend.ingestion.reconciliation.service import WORKFLOW as RECONCILE
from agentic_rag_backend.ingestion.reconciliation.service import Reconciler
from agentic_rag_backend.ingestion.service import IngestionOptions, IngestionService
from agentic_rag_backend.jobs.attendance import Attendance
from agentic_rag_backend.jobs.base import JobQueue, QueueName
from agentic_rag_backend.jobs.membership import Others
from agentic_rag_backend.jobs.outbox import Relay
from agentic_rag_backend.jobs.queue import DbosQueue
from agentic_rag_backend.jobs.service import JobService
from agentic_rag_backend.knowledge.resolution import Resolver
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.raptor.service import RaptorService
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.encoder import QueryEncoder
from agentic_rag_backend.retrieval.explanation import Explainer
from agentic_rag_backend.retrieval.graph_leg import GraphLeg
from agentic_rag_backend.retrieval.queries.building import QueryBuilder
from agentic_rag_backend.retrieval.queries.defaults import RequestDefaults
from agentic_rag_backend.retrieval.registry import Parts, RetrieverRegistry
from agentic_rag_backend.retrieval.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.tenancy.authentication import Authenticator
from agentic_rag_backend.tenancy.features import Features
from agentic_rag_backend.tenancy.service import Erase, TenantService
from agentic_rag_backend.transfer.service import WORKFLOW as IMPORT
from agentic_rag_backend.transfer.service import TransferService

_FILE_CLOCK = timedelta(milliseconds=100)
"""Files are stamped by a clock that lags a few milliseconds behind the process's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Everything a process serves with."""

    settings: Settings
    catalogue: Catalogue
    vectors: VectorStore
    graph: GraphStore
    blobs: BlobStore
    embedder: Embedder
    model: LanguageModel
    queue: JobQueue
    attendance: Attendance
    jobs: JobService
    tenants: TenantService
    authenticator: Authenticator
    features: Features
    defaults: RequestDefaults
    queries: QueryBuilder
    ingestion: IngestionService
    reconciler: Reconciler
    communities: CommunityService
    raptor: RaptorService
    transfer: TransferService
    retrievers: RetrieverRegistry
    explainer: Explainer
    answers: AnswerService
    reindex_due: str | None = None
    """Why the vectors are to be built anew; None where they are of the configured embedder."""


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
        container = await _compose(settings, stack, work=work)
        # Registered after the stores, so run before them: nothing that a worker uses is closed under it.
        stack.push_async_exit(_shutdown_of(container.queue))
        stack.push_async_callback(container.ingestion.relay.close)
        if work:
            swept = asyncio.create_task(sweep_originals(container.reconciler), name="sweep")
            stack.push_async_callback(asyncio.wait, [swept])
            await container.queue.launch()
            _household(container).begin(stack)
        else:
            await container.queue.migrate()
        yield container


def _shutdown_of(queue: JobQueue) -> Callable[..., Awaitable[None]]:
    """Return the exit of the queue: whoever leaves by an interruption does not wait for the jobs that run."""

    async def shutdown(kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await queue.shutdown(drain=kind is None or issubclass(kind, Exception))

    return shutdown


async def _compose(settings: Settings, stack: AsyncExitStack, *, work: bool) -> Container:
    warn_of_weights(settings)
    adapters = await open_adapters(settings, stack)
    catalogue = adapters.catalogue

    others = _others(settings, catalogue)
    # Where others take in documents, what was stored before this process began may be about to be recorded.
    started_at = datetime.now(UTC) - _FILE_CLOCK if others is None else datetime.min.replace(tzinfo=UTC)

    async def given_up(tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        await ingestion.given_up(tenant, job_id, attempt, error)
        await transfer.abandoned(tenant, job_id)

    queue = DbosQueue(
        catalogue.sync_engine,
        executor_id=f"{os.getpid()}-{uuid.uuid4().hex[:8]}",
        prepare_concurrency=settings.prepare_concurrency,
        polling_interval_s=settings.job_polling_interval_s,
        on_failed=given_up,
        on_returned=catalogue.jobs.hand_back,
        others=others,
        drain_s=settings.worker_drain_s,
    )
    communities = _communities(settings, adapters, queue)
    raptor = make_raptor(settings, adapters, queue)
    relay = Relay(catalogue.outbox, queue, flush=adapters.vectors.flush)
    ingestion = _ingestion(settings, adapters, queue, relay)
    for name, (queue_name, workflow) in ingestion.workflows().items():
        queue.register(name, queue_name, workflow)
    # Not among the commits: a model writing summaries must not hold up the tenant's documents.
    queue.register(REBUILD, QueueName.PREPARE, communities.rebuild)
    graphs = TenantGraphs(adapters.graph, catalogue.documents, max_bytes=settings.tenant_graph_cache_mb * 1024 * 1024)
    erase = _erase_with(adapters, graphs)
    tenants = TenantService(catalogue.tenants, erase, relay)
    jobs = JobService(catalogue.jobs, queue, FIRST_WORKFLOW)
    served = Served(
        queue=queue, jobs=jobs, tenants=tenants, ingestion=ingestion, communities=communities, graphs=graphs, erase=erase
    )
    reconciler = make_reconciler(adapters, served, started_at=started_at, patience_s=settings.job_patience_s)
    features = features_of(settings)
    transfer = make_transfer(settings, adapters, served, features)
    # Beside the commits, for each of which it takes the tenant's turn only to mend something.
    queue.register(RECONCILE, QueueName.PREPARE, reconciler.reconcile_v1)
    queue.register(IMPORT, QueueName.PREPARE, transfer.import_v1)
    defaults = request_defaults(settings, features)
    calls = fast_calls(settings, adapters.model)
    readable = _readable(settings, adapters)
    retrievers = RetrieverRegistry(
        Parts(
            readable,
            graphs,
            dual_level_options(settings),
            calls,
            themes=theme_options(settings),
            leg_weights=leg_weights(settings),
        )
    )
    return Container(
        settings=settings,
        catalogue=catalogue,
        vectors=adapters.vectors,
        graph=adapters.graph,
        blobs=adapters.blobs,
        embedder=adapters.embedder,
        model=adapters.model,
        queue=queue,
        attendance=Attendance(catalogue.workers, here=work, others=others, queue=queue, workflows=FIRST_WORKFLOW),
        jobs=jobs,
        tenants=tenants,
        authenticator=_authenticator(settings, catalogue),
        features=features,
        defaults=defaults,
        queries=QueryBuilder(retrievers, defaults, features, adapters.embedder, default_strategy=settings.default_strategy),
        ingestion=ingestion,
        reconciler=reconciler,
        communities=communities,
        raptor=raptor,
        transfer=transfer,
        reindex_due=adapters.reindex_due,
        retrievers=retrievers,
        explainer=Explainer(readable, retrievers),
        answers=AnswerService(
            retrievers=retrievers,
            model=adapters.model,
            documents=catalogue.documents,
            options=answer_options(settings),
            fallback=fallback_model(settings, adapters.embedder),
            global_answers=GlobalAnswers(
                calls=calls,
                embedder=adapters.embedder,
                documents=catalogue.documents,
                options=global_answer_options(settings),
            ),
        ),
    )


def _household(container: Container) -> Household:
    return Household(
        reconciler=container.reconciler,
        communities=container.communities,
        raptor=container.raptor,
        catalogue=container.catalogue,
        graph=container.graph,
        queue=container.queue,
        relay=container.ingestion.relay,
        features=container.features,
        reconcile_interval_s=container.settings.reconcile_interval_s,
        rebuild_delay_s=container.settings.community_rebuild_delay_s,
        rebuild_threshold=container.settings.community_rebuild_threshold,
        update_delay_s=container.settings.raptor_update_delay_s,
    )


def _others(settings: Settings, catalogue: SqlCatalogue) -> Others | None:
    """Return how this process finds others; an SQLite database belongs to the one that has DATA_DIR open."""
    if catalogue.sync_engine.dialect.name == "sqlite":
        return None
    return Others(directory=catalogue.workers, leases=catalogue.leases, silent_after_s=settings.worker_silent_after_s)


def _authenticator(settings: Settings, catalogue: Catalogue) -> Authenticator:
    key = settings.operator_key
    return Authenticator(catalogue.tenants, operator_key=key.get_secret_value() if key else None)


def _communities(settings: Settings, adapters: Adapters, queue: JobQueue) -> CommunityService:
    return CommunityService(
        catalogue=adapters.catalogue,
        graph=adapters.graph,
        vectors=adapters.vectors,
        embedder=adapters.embedder,
        model=adapters.model,
        queue=queue,
        detection=detection_options(settings),
        model_name=fast_model(settings),
        patience_s=settings.job_patience_s,
    )


def _ingestion(settings: Settings, adapters: Adapters, queue: JobQueue, relay: Relay) -> IngestionService:
    return IngestionService(
        catalogue=adapters.catalogue,
        graph=adapters.graph,
        vectors=adapters.vectors,
        blobs=adapters.blobs,
        embedder=adapters.embedder,
        reader=IsolatedReader(adapters.isolation),
        extractor=adapters.extractor,
        resolver=Resolver(adapters.graph),
        queue=queue,
        relay=relay,
        options=IngestionOptions(
            max_upload_mb=settings.max_upload_mb,
            patience_s=settings.job_patience_s,
            commit_together=settings.vector_store == "edge",
            keep_originals=settings.keep_originals,
        ),
    )


def _readable(settings: Settings, adapters: Adapters) -> Stores:
    """Return what retrievers read from."""
    return Stores(
        documents=adapters.catalogue.documents,
        communities=adapters.catalogue.communities,
        trees=adapters.catalogue.trees,
        vectors=adapters.vectors,
        graph=adapters.graph,
        embedder=adapters.embedder,
        encoder=QueryEncoder(adapters.embedder),
        leg=GraphLeg(adapters.graph_search, timeout_s=settings.graphiti_search_timeout_s),
    )


def _erase_with(adapters: Adapters, graphs: TenantGraphs) -> Erase:
    """Return what removes a tenant from every store but the catalogue, which goes last."""

    async def erase(tenant: TenantId) -> Mapping[str, int]:
        graphs.forget(tenant)
        return {
            "vectors": await adapters.vectors.delete_tenant(tenant),
            "graph": await adapters.graph.delete_tenant(tenant),
            "blobs": await adapters.blobs.delete_tenant(tenant),
        }

    return erase
