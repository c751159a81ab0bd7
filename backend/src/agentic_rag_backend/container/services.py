"""Services of a process, built on the open stores and models."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from agentic_rag_backend import __version__
from agentic_rag_backend.answering.answerability.grading import AnswerabilityGrader
from agentic_rag_backend.answering.answerability.judge import AnswerJudge
from agentic_rag_backend.answering.answerability.language_judge import LanguageJudge
from agentic_rag_backend.answering.answerability.word_vectors import CachedWordEncoder
from agentic_rag_backend.answering.claims.registry import VerifierParts, says_statement, verifier_factory
from agentic_rag_backend.answering.contradicting import AnswerContradictions
from agentic_rag_backend.answering.conversation import Rewriter
from agentic_rag_backend.answering.corpus_wide.global_answers import GlobalAnswers
from agentic_rag_backend.answering.service import AnswerChecks, AnswerService
from agentic_rag_backend.answering.similarity import RelativeSimilarity
from agentic_rag_backend.container.adapters import Adapters
from agentic_rag_backend.container.deployment import local_folders
from agentic_rag_backend.container.models import rerank_defaults
from agentic_rag_backend.container.openid import create_verifier
from agentic_rag_backend.container.options import (
    SearchCaches,
    agentic_options,
    answer_options,
    detection_options,
    dual_level_options,
    fast_calls,
    fast_model,
    features_of,
    global_answer_options,
    ingestion_options,
    leg_weights,
    name_limits,
    quota_defaults,
    request_defaults,
    theme_options,
    transfer_options,
    tree_options,
)
from agentic_rag_backend.documents.recognition.ocr import Ocr
from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.prices import PriceTable
from agentic_rag_backend.domain.tenant import Principal, TenantId
from agentic_rag_backend.evaluation.dataset_service import DatasetService
from agentic_rag_backend.evaluation.evaluation_runs import WORKFLOW as EVALUATE
from agentic_rag_backend.evaluation.evaluation_runs import EvaluationRuns, TokenLimits
from agentic_rag_backend.evaluation.experiments.experiment_service import ExperimentService
from agentic_rag_backend.evaluation.feedback import WRITTEN_EVERY_S, FeedbackService
from agentic_rag_backend.evaluation.question_asking import Asker
from agentic_rag_backend.evaluation.questions.question_generation import WORKFLOW as GENERATE
from agentic_rag_backend.evaluation.questions.question_generation import GenerationParts, QuestionGenerator
from agentic_rag_backend.evaluation.score_reports import ScoreReports
from agentic_rag_backend.evaluation.tuning.candidate_scores import CandidateMeasurer
from agentic_rag_backend.evaluation.tuning.tuning_service import WORKFLOW as TUNE
from agentic_rag_backend.evaluation.tuning.tuning_service import MeasuringConditions, TuningParts, TuningService
from agentic_rag_backend.fairness import charge_to, limit_actor
from agentic_rag_backend.ingestion.document_pages import DocumentPages
from agentic_rag_backend.ingestion.isolation.isolated_offload import IsolatedOffload
from agentic_rag_backend.ingestion.prepare.chunk_reading import ChunkReader
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.ingestion.prepare.estimating import IngestionEstimator
from agentic_rag_backend.ingestion.prepare.extracting import ChunkExtractions
from agentic_rag_backend.ingestion.prepare.previewing import ChunkPreviews
from agentic_rag_backend.ingestion.prepare.reading import IsolatedReader
from agentic_rag_backend.ingestion.reconciliation.rounds import ReconciledStores
from agentic_rag_backend.ingestion.reconciliation.rounds import Services as ReconciledServices
from agentic_rag_backend.ingestion.reconciliation.service import WORKFLOW as RECONCILE
from agentic_rag_backend.ingestion.reconciliation.service import Reconciler
from agentic_rag_backend.ingestion.reconciliation.tenants_round import TenantsRound
from agentic_rag_backend.ingestion.service import DELETE, DELIVERED_WITHIN_S, INGEST, IngestionService
from agentic_rag_backend.jobs.base import Continuation, QueueName, Workflow
from agentic_rag_backend.jobs.coordination.membership import Others
from agentic_rag_backend.jobs.coordination.worker_status import WorkerStatus
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.relay import Delivery, Relay
from agentic_rag_backend.jobs.runner import Runner
from agentic_rag_backend.jobs.service import JobService
from agentic_rag_backend.knowledge.contradictions.contradiction_finder import ContradictionFinder
from agentic_rag_backend.knowledge.editing import GraphEditor
from agentic_rag_backend.knowledge.extraction.methods import ExtractionMethods
from agentic_rag_backend.knowledge.graph_files import GraphExport
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.knowledge.ontologies import Ontologies
from agentic_rag_backend.knowledge.paths.neighbourhood import NeighbourhoodReader
from agentic_rag_backend.knowledge.paths.path_finder import PathFinder
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entity_reader import EntityReader
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.labelling.labeller import Labeller
from agentic_rag_backend.memory import MIB
from agentic_rag_backend.models.price_file import read_prices
from agentic_rag_backend.retrieval.base import GraphLeg, QueryEncoder, Stores
from agentic_rag_backend.retrieval.parts import Parts
from agentic_rag_backend.retrieval.passages.contradictions import ContradictionsOfResults
from agentic_rag_backend.retrieval.passages.linked_chunks import LinkedChunks
from agentic_rag_backend.retrieval.ranking_explanation import Explainer
from agentic_rag_backend.retrieval.registry import STRATEGIES, RetrieverRegistry
from agentic_rag_backend.retrieval.requests.builder import QueryBuilder, RequestDefaults, RerankRequests
from agentic_rag_backend.retrieval.rerank.registry import RerankerParts, RerankerRegistry
from agentic_rag_backend.retrieval.rerank.scored import TokenVectorCache
from agentic_rag_backend.retrieval.rerank.text_reranking import TextReranking
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.settings import DEFAULT_EMBEDDING_MODEL, Settings
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.local_files import DiskSpace
from agentic_rag_backend.tenancy.authentication import Authenticator, WrongKeys
from agentic_rag_backend.tenancy.budgets import ModelBudgets
from agentic_rag_backend.tenancy.features import AUTO_WEIGHTS, DUAL_LEVEL, Features
from agentic_rag_backend.tenancy.key_uses import KeyUses
from agentic_rag_backend.tenancy.quota_service import QuotaService
from agentic_rag_backend.tenancy.service import TenantService
from agentic_rag_backend.tenancy.usage import UsageService
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.communities.service import WORKFLOW as REBUILD
from agentic_rag_backend.themes.communities.service import CommunityService
from agentic_rag_backend.themes.communities.summaries.summary_writing import Summariser
from agentic_rag_backend.themes.raptor.service import WORKFLOW as RAPTOR
from agentic_rag_backend.themes.raptor.service import RaptorService, RaptorStores
from agentic_rag_backend.transfer.exporting import Exporter, ExportSource
from agentic_rag_backend.transfer.importing import Destination
from agentic_rag_backend.transfer.service import WORKFLOW as IMPORT
from agentic_rag_backend.transfer.service import TransferService

if TYPE_CHECKING:
    from agentic_rag_backend.tenancy.oidc.token_verifier import TokenVerifier

FIRST_WORKFLOW = {
    JobKind.INGEST: INGEST,
    JobKind.DELETE: DELETE,
    JobKind.REBUILD: REBUILD,
    JobKind.RECONCILE: RECONCILE,
    JobKind.IMPORT: IMPORT,
    JobKind.RAPTOR: RAPTOR,
    JobKind.EVALUATE: EVALUATE,
    JobKind.GENERATE: GENERATE,
    JobKind.TUNE: TUNE,
}
"""Workflow of each kind of job."""
_FILE_CLOCK = timedelta(milliseconds=100)
"""The clock of file times lags a few milliseconds behind the clock of the process."""


class Container:
    """All services of a process. Each service is built at its first use.

    Args:
        settings: of the deployment.
        adapters: open stores and models.
        work: whether this process runs jobs.
    """

    def __init__(self, settings: Settings, adapters: Adapters, *, work: bool) -> None:
        self.settings = settings
        self.catalogue: Catalogue = adapters.catalogue
        self.vectors = adapters.vectors
        self.graph = adapters.graph
        self.blobs = adapters.blobs
        self.embedder = adapters.embedder
        self.calibrator = adapters.calibrator
        self.model = adapters.model
        self.reindex_due = adapters.reindex_due
        """Reason for a required reindexing. None if the configured embedder made the vectors."""
        self._adapters = adapters
        self._work = work
        # If other processes ingest documents, originals from before this start may not be recorded yet.
        alone = self._others is None
        self._started_at = datetime.now(UTC) - _FILE_CLOCK if alone else datetime.min.replace(tzinfo=UTC)

    def build(self) -> None:
        """Build every service and register the workflows. Contradictory settings stop the start.

        Raises:
            ConfigurationError: settings contradict each other.
        """
        for name, member in vars(type(self)).items():
            if isinstance(member, cached_property):
                getattr(self, name)
        for workflow, (queue_name, run) in self.ingestion.list_workflows().items():
            self._register_workflow(workflow, queue_name, run)
        # Rebuilds have locks of their own: a model that writes summaries must not delay documents.
        self._register_workflow(REBUILD, QueueName.PREPARE, self.communities.rebuild)
        self._register_workflow(RAPTOR, QueueName.PREPARE, self.raptor.build)
        # A comparison takes the tenant's lock only for each repair.
        self._register_workflow(RECONCILE, QueueName.PREPARE, self.reconciler.reconcile_v1)
        self._register_workflow(IMPORT, QueueName.PREPARE, self.transfer.import_v1)
        self._register_workflow(EVALUATE, QueueName.PREPARE, self.evaluation_runs.evaluate)
        self._register_workflow(GENERATE, QueueName.PREPARE, self.question_generator.generate)
        self._register_workflow(TUNE, QueueName.PREPARE, self.tuning.tune)

    def _register_workflow(self, name: str, queue_name: QueueName, workflow: Workflow) -> None:
        """Register a workflow whose model calls are counted. `Runner` adds the key of its job."""

        async def run_counted(tenant: TenantId, job_id: str, attempt: int) -> Continuation | None:
            charge_to(None, self.usage.ledger)
            limit_actor(await self.quotas.limits_of_jobs(tenant), self.budgets.admit_call)
            return await workflow(tenant, job_id, attempt)

        self.queue.register(name, queue_name, run_counted)

    # --- jobs

    @cached_property
    def queue(self) -> JobQueue:
        """The durable job queue."""
        catalogue, settings = self._adapters.catalogue, self.settings
        return JobQueue(
            catalogue.sync_engine,
            executor_id=f"{os.getpid()}-{uuid.uuid4().hex[:8]}",
            prepare_concurrency=settings.prepare_concurrency,
            polling_interval_s=settings.job_polling_interval_s,
            on_failed=self._given_up,
            on_returned=catalogue.jobs.hand_back,
            others=self._others,
            drain_s=settings.worker_drain_s,
        )

    @cached_property
    def jobs(self) -> JobService:
        """Retries and cancels jobs."""
        return JobService(self.catalogue.jobs, self.queue, FIRST_WORKFLOW)

    @cached_property
    def worker_status(self) -> WorkerStatus:
        """Knows which processes run jobs."""
        return WorkerStatus(
            self._adapters.catalogue.workers, here=self._work, others=self._others, queue=self.queue, workflows=FIRST_WORKFLOW
        )

    @cached_property
    def relay(self) -> Relay:
        """Delivers committed changes from the catalogue to the other stores."""
        return Relay(self.catalogue.outbox, self.queue, flush=self.vectors.flush)

    async def _deliver(self, tenant: TenantId, within_s: float) -> Delivery:
        return await self.relay.deliver(tenant, within_s=within_s)

    @cached_property
    def _others(self) -> Others | None:
        """Other processes on the same catalogue. None for SQLite, which belongs to one process."""
        catalogue = self._adapters.catalogue
        if catalogue.sync_engine.dialect.name == "sqlite":
            return None
        return Others(directory=catalogue.workers, leases=catalogue.leases, silent_after_s=self.settings.worker_silent_after_s)

    @cached_property
    def _runner(self) -> Runner:
        return Runner(self.catalogue.jobs, self.settings.job_patience_s)

    async def _given_up(self, tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        await self.ingestion.given_up(tenant, job_id, attempt, error)
        await self.transfer.empty_tenant(tenant, job_id)

    @cached_property
    def disk_space(self) -> DiskSpace:
        """Free space for requests that create something."""
        return DiskSpace(local_folders(self.settings))

    # --- tenants

    @cached_property
    def features(self) -> Features:
        """Feature flags of the deployment and of tenants."""
        return features_of(self.settings)

    @cached_property
    def authenticator(self) -> Authenticator:
        """Authenticates callers."""
        metrics_key = self.settings.metrics_key
        return Authenticator(
            self.catalogue.tenants,
            operators=self.settings.operators,
            metrics_key=metrics_key.get_secret_value() if metrics_key else None,
            wrong_keys=WrongKeys(self.settings.max_wrong_keys_per_client),
            key_uses=self.key_uses,
            tokens=self.tokens,
        )

    @cached_property
    def tokens(self) -> TokenVerifier | None:
        """Verifies tokens of the OpenID provider. None: there is no provider."""
        return create_verifier(self.settings)

    @cached_property
    def key_uses(self) -> KeyUses:
        """Records when keys were last used."""
        return KeyUses(self.catalogue.tenants)

    @cached_property
    def usage(self) -> UsageService:
        """Counts model calls and requests, and reports on them."""
        path = self.settings.model_prices
        return UsageService(self._adapters.catalogue.usage, PriceTable() if path is None else read_prices(path))

    @cached_property
    def quotas(self) -> QuotaService:
        """Admits requests, and reads and sets limits of tenants and keys."""
        process = None if self._others is None else uuid.uuid4().hex[:12]
        defaults = quota_defaults(self.settings)
        return QuotaService(self._adapters.catalogue, defaults, process=process, end_waits=self.queue.end_waits)

    @cached_property
    def budgets(self) -> ModelBudgets:
        """Limits the calls of models."""
        catalogue, usage = self._adapters.catalogue, self.usage
        budgets = ModelBudgets(catalogue.quotas, quota_defaults(self.settings), usage.write_ledger)
        usage.ledger.on_call = budgets.note_call
        return budgets

    @cached_property
    def feedback(self) -> FeedbackService:
        """Records answers, and takes feedback on them."""
        patience_s = 0.0 if self._others is None else 2 * WRITTEN_EVERY_S
        catalogue = self._adapters.catalogue
        return FeedbackService(catalogue.feedback, catalogue.asked_questions, patience_s=patience_s)

    @cached_property
    def score_reports(self) -> ScoreReports:
        """Takes scores of answers, and reports their means."""
        return ScoreReports(self._adapters.catalogue.submitted_scores, self.catalogue.documents)

    @cached_property
    def tenants(self) -> TenantService:
        """Creates and deletes tenants."""
        return TenantService(self.catalogue.tenants, self._erase, self.relay, self.key_uses)

    async def _erase(self, tenant: TenantId) -> Mapping[str, int]:
        """Remove a tenant from every store except the catalogue, which is last."""
        deleted = {
            "vectors": await self.vectors.delete_tenant(tenant),
            "graph": await self.graph.delete_tenant(tenant),
            "blobs": await self.blobs.delete_tenant(tenant),
        }
        # After the stores, so that a search under way keeps nothing of them.
        self.graphs.forget(tenant)
        self._readable.encoder.entries.forget_tenant(tenant)
        self._caches.forget(tenant)
        self._word_encoder.entries.forget_tenant(tenant)
        return deleted

    @cached_property
    def transfer(self) -> TransferService:
        """Exports and imports tenants."""
        return TransferService(
            Exporter(
                ExportSource(
                    catalogue=self.catalogue,
                    transfer=self._adapters.catalogue.transfer,
                    graph=self.graph,
                    vectors=self.vectors,
                    blobs=self.blobs,
                    embedder=self.embedder,
                    extraction=self._adapters.extraction,
                    queue=self.queue,
                    release=__version__,
                )
            ),
            self._destination,
            runner=self._runner,
            queue=self.queue,
            options=transfer_options(self.settings),
            erase=self._erase,
            on_opened=self.graphs.read_anew,
            features=self.features,
        )

    @cached_property
    def _destination(self) -> Destination:
        return Destination(
            catalogue=self.catalogue,
            transfer=self._adapters.catalogue.transfer,
            graph=self.graph,
            vectors=self.vectors,
            blobs=self.blobs,
            computation=self._computation,
            disk_space=self.disk_space,
            keep_originals=self.settings.keep_originals,
        )

    # --- documents

    @cached_property
    def ingestion(self) -> IngestionService:
        """Ingests, changes and deletes documents."""
        return IngestionService(
            catalogue=self.catalogue,
            graph=self.graph,
            vectors=self.vectors,
            blobs=self.blobs,
            embedder=self.embedder,
            reader=self._document_reader,
            extraction=self._adapters.extraction,
            resolver=self._resolver,
            queue=self.queue,
            model=self._document_model,
            is_stated=says_statement,
            relay=self.relay,
            options=ingestion_options(self.settings),
            disk_space=self.disk_space,
        )

    @cached_property
    def pages(self) -> DocumentPages:
        """Reads single pages of documents."""
        return DocumentPages(self.catalogue.documents, self.blobs, self._adapters.isolation)

    @cached_property
    def previews(self) -> ChunkPreviews:
        """Previews the chunks of documents."""
        settings = self.settings
        estimator = IngestionEstimator(
            methods=self.extraction,
            embedder=self.embedder,
            tenants=self.catalogue.tenants,
            default_method=ingestion_options(settings).extraction,
            embedding_model=settings.embedding_model or DEFAULT_EMBEDDING_MODEL,
        )
        return ChunkPreviews(self.catalogue.documents, self.blobs, self._chunk_reader, estimator)

    @cached_property
    def extractions(self) -> ChunkExtractions:
        """Extracts from single chunks."""
        catalogue = self.catalogue
        return ChunkExtractions(
            catalogue.documents, catalogue.tenants, catalogue.model_results, self._computation, self._document_reader
        )

    @cached_property
    def _chunk_reader(self) -> ChunkReader:
        return ChunkReader(self._document_reader, self.embedder, self._document_model, says_statement)

    @cached_property
    def _document_reader(self) -> IsolatedReader:
        return IsolatedReader(self._adapters.isolation, self._adapters.ocr)

    @cached_property
    def _resolver(self) -> Resolver:
        offload = IsolatedOffload(self._adapters.isolation)
        return Resolver(self.graph, self.catalogue.graph_edits, limits=name_limits(self.settings), offload=offload)

    @property
    def extraction(self) -> ExtractionMethods:
        """The methods of extraction, and whether they can be used."""
        return self._adapters.extraction

    @property
    def ocr(self) -> Ocr:
        """Recognition of text in pictures, and whether it is there."""
        return self._adapters.ocr

    @cached_property
    def _document_model(self) -> DocumentModel:
        return replace(self.extraction.model or DocumentModel(self.model), name=fast_model(self.settings))

    @cached_property
    def _computation(self) -> Computation:
        return Computation(embedder=self.embedder, extraction=self._adapters.extraction)

    @cached_property
    def reconciler(self) -> Reconciler:
        """Compares the stores, and repairs differences."""
        stores = ReconciledStores(
            catalogue=self.catalogue,
            graph=self.graph,
            vectors=self.vectors,
            blobs=self.blobs,
            embedder=self.embedder,
            computation=self._computation,
            resolver=self._resolver,
        )
        services = ReconciledServices(
            queue=self.queue,
            enqueue=lambda kind: self.queue.enqueuer(FIRST_WORKFLOW[kind]),
            give_up=self.ingestion.given_up,
            retry=self.jobs.retry,
            rebuild=self._rebuild_in_full,
            on_mended=self.graphs.read_anew,
        )
        tenants = TenantsRound(stores=stores, erase=self._erase, delete=self.tenants.finish_deleting)
        return Reconciler(stores, services, tenants, runner=self._runner, started_at=self._started_at)

    @cached_property
    def ontologies(self) -> Ontologies:
        """The ontologies of tenants."""
        return Ontologies(self.catalogue.tenants, self._adapters.extraction.options.ontology)

    # --- themes

    @cached_property
    def communities(self) -> CommunityService:
        """Builds and reads communities."""
        return CommunityService(
            catalogue=self.catalogue,
            graph=self.graph,
            vectors=self.vectors,
            embedder=self.embedder,
            model=self.model,
            queue=self.queue,
            deliver=self._deliver,
            detection=detection_options(self.settings),
            model_name=fast_model(self.settings),
            patience_s=self.settings.job_patience_s,
        )

    async def _rebuild_in_full(self, tenant: TenantId) -> Job:
        return await self.communities.request_rebuild(tenant, RebuildOptions(mode="full"))

    @cached_property
    def raptor(self) -> RaptorService:
        """Builds and reads trees over passages."""
        return RaptorService(
            RaptorStores(catalogue=self.catalogue, vectors=self.vectors, embedder=self.embedder, queue=self.queue),
            summariser=Summariser(self.model, model_name=fast_model(self.settings), prompt="tree_summary"),
            deliver=self._deliver,
            options=tree_options(self.settings),
            patience_s=self.settings.job_patience_s,
        )

    # --- questions

    @cached_property
    def graphs(self) -> TenantGraphs:
        """Graphs of tenants in memory."""
        max_bytes = self.settings.tenant_graph_cache_mb * MIB
        return TenantGraphs(self.graph, self.catalogue.documents, max_bytes=max_bytes)

    @cached_property
    def facts(self) -> FactReader:
        """Reads what visible passages state."""
        return FactReader(self.graph, self.catalogue.documents, self.ontologies)

    @cached_property
    def entities(self) -> EntityReader:
        """Reads entities and what relates them."""
        return EntityReader(self.graphs, self.graph, self.catalogue.documents, self.facts)

    @cached_property
    def graph_editor(self) -> GraphEditor:
        """Merges, splits, renames and deletes entities."""
        catalogue = self.catalogue
        return GraphEditor(
            self.graphs,
            self.graph,
            catalogue.graph_edits,
            catalogue.outbox,
            deliver=lambda tenant: self._deliver(tenant, DELIVERED_WITHIN_S),
        )

    @cached_property
    def neighbourhoods(self) -> NeighbourhoodReader:
        """Reads the entities around an entity."""
        return NeighbourhoodReader(self.graphs, self.graph, self.catalogue.documents, self.facts)

    @cached_property
    def paths(self) -> PathFinder:
        """Finds paths between entities."""
        return PathFinder(self.graphs, self.graph, self.catalogue.documents, self.facts)

    @cached_property
    def contradictions(self) -> ContradictionFinder:
        """Finds statements that cannot both be true."""
        return ContradictionFinder(self.graphs, self.graph, self.catalogue.documents, self.facts, self.ontologies)

    @cached_property
    def contradictions_of_results(self) -> ContradictionsOfResults:
        """Finds what contradicts results and citations."""
        return ContradictionsOfResults(self.contradictions)

    @cached_property
    def graph_export(self) -> GraphExport:
        """Writes tenants' visible graphs as files."""
        return GraphExport(self.graphs, self.graph, self.facts)

    @cached_property
    def _readable(self) -> Stores:
        return Stores(
            documents=self.catalogue.documents,
            communities=self.catalogue.communities,
            trees=self.catalogue.trees,
            questions=self.catalogue.questions,
            vectors=self.vectors,
            graph=self.graph,
            embedder=self.embedder,
            encoder=QueryEncoder(self.embedder, max_bytes=self.settings.embedding_cache_mb * MIB),
            facts=self.facts,
            calibrator=self.calibrator,
            leg=GraphLeg(self._adapters.graph_search, timeout_s=self.settings.graphiti_search_timeout_s),
        )

    @cached_property
    def _calls(self) -> StructuredCalls:
        return fast_calls(self.settings, self.model)

    @cached_property
    def labeller(self) -> Labeller:
        """Labels texts by the labels of documents."""
        return Labeller(self._readable, self._calls)

    @cached_property
    def rerankers(self) -> RerankerRegistry:
        """The rerankers by name."""
        return RerankerRegistry(
            RerankerParts(
                vectors=self.vectors,
                graphs=self.graphs,
                calibrator=self.calibrator,
                calls=self._calls,
                tokens=self._adapters.evidence_encoder,
                token_cache=TokenVectorCache(self.settings.late_interaction_cache_mb * MIB),
                cross_encoder=self._adapters.cross_encoder,
                endpoint=self._adapters.rerank_endpoint,
            )
        )

    @cached_property
    def text_reranking(self) -> TextReranking:
        """Orders texts that callers bring."""
        defaults = rerank_defaults(self.settings)
        return TextReranking(self.rerankers, defaults.reranker, defaults.timeout_s)

    @cached_property
    def retrieval_parts(self) -> Parts:
        """The parts of which strategies are made."""
        return Parts(
            self._readable,
            self.graphs,
            dual_level_options(self.settings),
            self._calls,
            AnswerabilityGrader(self._judge),
            strategies=STRATEGIES,
            themes=theme_options(self.settings),
            leg_weights=leg_weights(self.settings),
            rerankers=self.rerankers,
            agentic_options=agentic_options(self.settings),
            search_sessions=self.catalogue.search_sessions,
            theme_cache=self._caches.themes,
            passage_cache=self._caches.passages,
        )

    @cached_property
    def retrievers(self) -> RetrieverRegistry:
        """The strategies by name."""
        return RetrieverRegistry(self.retrieval_parts, self._caches.results)

    @cached_property
    def _caches(self) -> SearchCaches:
        return SearchCaches.of(self.settings)

    @cached_property
    def defaults(self) -> RequestDefaults:
        """Defaults of limits and weights of requests."""
        return request_defaults(self.settings, self.features)

    @cached_property
    def queries(self) -> QueryBuilder:
        """Builds queries from requests."""
        return QueryBuilder(
            self.retrievers,
            self.defaults,
            self.features,
            self.embedder,
            LinkedChunks(self.graphs, self._readable.communities, self._readable.graph),
            default_strategy=self.settings.default_strategy,
            synthetic_questions=self.settings.synthetic_questions != "off",
            rerank=RerankRequests(self.rerankers, rerank_defaults(self.settings)),
        )

    @cached_property
    def explainer(self) -> Explainer:
        """Explains why a search returns or omits a document."""
        return Explainer(self._readable, self.retrievers)

    @cached_property
    def _judge(self) -> AnswerJudge:
        return AnswerJudge(self._word_encoder, languages=LanguageJudge(self._similarity))

    @cached_property
    def _word_encoder(self) -> CachedWordEncoder:
        """Encodes the questions and sentences that the judge compares."""
        return CachedWordEncoder(self._adapters.evidence_encoder, max_bytes=self.settings.sentence_cache_mb * MIB)

    @cached_property
    def _similarity(self) -> RelativeSimilarity | None:
        """Compares texts in several languages by the embedder of the indexes. None: it knows one language."""
        languages = self.embedder.languages
        return RelativeSimilarity(self.embedder) if languages is None or len(languages) > 1 else None

    @cached_property
    def _answer_checks(self) -> AnswerChecks:
        calls = replace(self._calls, timeout_s=self.settings.verification_timeout_s)
        return AnswerChecks(
            judge=self._judge,
            verifier=verifier_factory(
                self.settings.claim_verifier,
                VerifierParts(calls, similarity=self._similarity, reader=self._adapters.reader),
            ),
            calls=calls,
            contradictions=AnswerContradictions(self.contradictions_of_results),
        )

    @cached_property
    def answers(self) -> AnswerService:
        """Answers questions from retrieved passages."""
        documents = self.catalogue.documents
        return AnswerService(
            retrievers=self.retrievers,
            model=self.model,
            documents=documents,
            options=answer_options(self.settings),
            quotes=self.settings.fallback_to_extractive,
            rewriter=Rewriter(self._calls),
            checks=self._answer_checks,
            global_answers=GlobalAnswers(
                calls=self._calls,
                encoder=self._adapters.evidence_encoder,
                judge=self._judge,
                documents=documents,
                options=global_answer_options(self.settings),
                calibrator=self.calibrator,
            ),
        )

    # --- evaluation

    @cached_property
    def datasets(self) -> DatasetService:
        """Creates and exports datasets of questions."""
        return DatasetService(self.catalogue, self.queue)

    @cached_property
    def question_generator(self) -> QuestionGenerator:
        """Makes questions from a tenant's documents."""
        parts = GenerationParts(catalogue=self.catalogue, tenants=self.tenants, graphs=self.graphs, communities=self.communities)
        return QuestionGenerator(parts, self._runner)

    @cached_property
    def _asker(self) -> Asker:
        return Asker(self.queries, self.retrievers, self.answers)

    @cached_property
    def experiments(self) -> ExperimentService:
        """Compares two configurations on the requests of callers."""
        return ExperimentService(self.catalogue.experiments, self._asker)

    @cached_property
    def tuning(self) -> TuningService:
        """Proposes values for a tenant, and uses accepted ones."""
        parts = TuningParts(
            catalogue=self.catalogue,
            tenants=self.tenants,
            measurer=CandidateMeasurer(self.queries, self.retrievers, self.answers),
            search_text=self._asker.search_text,
            conditions=self._describe_conditions,
        )
        return TuningService(parts, self.queue, self._runner)

    def _describe_conditions(self, caller: Principal) -> MeasuringConditions:
        return MeasuringConditions(
            embedder=self.embedder.fingerprint,
            dual_level=self.features.is_on(DUAL_LEVEL, caller.flags),
            low_weight=self.defaults.weights.of_tenant(caller.flags).low,
            auto_weights=self.features.is_on(AUTO_WEIGHTS, caller.flags),
            dense_weight=self.retrieval_parts.leg_weights.dense,
            low_strategy=self.settings.dual_level_low_strategy,
        )

    @cached_property
    def evaluation_runs(self) -> EvaluationRuns:
        """Runs configurations over datasets."""
        options = answer_options(self.settings)
        return EvaluationRuns(
            catalogue=self.catalogue,
            tenants=self.tenants,
            asker=self._asker,
            queue=self.queue,
            runner=self._runner,
            limits=TokenLimits(self.model.name, self.model.generative, options.context_tokens, options.max_tokens),
            model=self.model,
        )
