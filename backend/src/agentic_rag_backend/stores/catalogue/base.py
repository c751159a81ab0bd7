"""The catalogue: the record of what exists and what is visible, on SQLite or PostgreSQL. The other packages import it from here.

Each noun has a class (`DocumentCatalogue`, `JobCatalogue`, …). Its methods are made of documented functions that run as
transactions; see `operations`. `testing.catalogue.contract` checks on both databases: the tenant is the first argument of every
method on a tenant's data. Unknown ids and ids of other tenants raise the same `NotFound`. Every change that can alter an answer
raises the tenant's ``state_version`` in its own transaction. Times are aware and in UTC.
"""

from __future__ import annotations

from sqlalchemy import Engine, text
from sqlalchemy.engine import Connection

from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.deployments import DeploymentCatalogue, StoreFolderCatalogue
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.documents.document_values import (
    ANY_REVISION,
    EVERY_DOCUMENT,
    BegunJob,
    Change,
    ChunkQuestions,
    DocumentStatus,
    Enqueue,
    Expected,
    HandOn,
    JobEnding,
    Matching,
    Parent,
    ParsedVersion,
    PreparedChunk,
    PreparedQuestion,
    ReadyVersion,
    Submission,
    Submitted,
    Visibility,
)
from agentic_rag_backend.stores.catalogue.documents.model_results import ModelResultCatalogue
from agentic_rag_backend.stores.catalogue.documents.questions import QuestionCatalogue
from agentic_rag_backend.stores.catalogue.documents.set_catalogue import DocumentSetCatalogue
from agentic_rag_backend.stores.catalogue.evaluation.dataset_catalogue import DatasetCatalogue, without_quotes
from agentic_rag_backend.stores.catalogue.evaluation.experiment_catalogue import ExperimentCatalogue
from agentic_rag_backend.stores.catalogue.evaluation.question_log import AskedQuestionCatalogue
from agentic_rag_backend.stores.catalogue.evaluation.run_catalogue import RunCatalogue
from agentic_rag_backend.stores.catalogue.evaluation.tuning_catalogue import TuningCatalogue
from agentic_rag_backend.stores.catalogue.feedback import FeedbackCatalogue
from agentic_rag_backend.stores.catalogue.idempotency_keys import (
    KEPT,
    MAX_KEPT,
    IdempotencyClaim,
    IdempotencyKeys,
    Operator,
    Owner,
    StoredResponse,
)
from agentic_rag_backend.stores.catalogue.jobs.job_catalogue import JobCatalogue
from agentic_rag_backend.stores.catalogue.jobs.leases import Fence, Leases
from agentic_rag_backend.stores.catalogue.jobs.outbox import READ_BY_FILTERS, SETTLING, Outbox, OutboxEntry, Topic
from agentic_rag_backend.stores.catalogue.jobs.workers import Worker, WorkerDirectory
from agentic_rag_backend.stores.catalogue.migrations import downgrade, missing, upgrade
from agentic_rag_backend.stores.catalogue.pages import Page
from agentic_rag_backend.stores.catalogue.postgres import Patience
from agentic_rag_backend.stores.catalogue.quota_catalogue import GrantedRequests, QuotaCatalogue
from agentic_rag_backend.stores.catalogue.search_sessions import SearchSessions
from agentic_rag_backend.stores.catalogue.submitted_scores import SubmittedScoreCatalogue
from agentic_rag_backend.stores.catalogue.summaries.generations import CommunityCatalogue, GenerationPointer
from agentic_rag_backend.stores.catalogue.summaries.trees import SummaryKey, TreeCatalogue
from agentic_rag_backend.stores.catalogue.tenants.evaluation_transfer import EvaluationTransferCatalogue
from agentic_rag_backend.stores.catalogue.tenants.graph_edits import GraphEditCatalogue
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import TenantDirectory
from agentic_rag_backend.stores.catalogue.tenants.tenant_records import (
    ArchivedCase,
    ArchivedDataset,
    ArchivedFeedback,
    ArchivedScore,
    DocumentHeader,
    DocumentRecord,
    EvaluationRecord,
    Opening,
    TenantSnapshot,
)
from agentic_rag_backend.stores.catalogue.tenants.transfer import TransferCatalogue
from agentic_rag_backend.stores.catalogue.usage import UsageCatalogue

__all__ = [
    "ANY_REVISION",
    "EVERY_DOCUMENT",
    "KEPT",
    "MAX_KEPT",
    "READ_BY_FILTERS",
    "SETTLING",
    "ArchivedCase",
    "ArchivedDataset",
    "ArchivedFeedback",
    "ArchivedScore",
    "AskedQuestionCatalogue",
    "BegunJob",
    "Catalogue",
    "Change",
    "ChunkQuestions",
    "CommunityCatalogue",
    "DatasetCatalogue",
    "DocumentCatalogue",
    "DocumentHeader",
    "DocumentRecord",
    "DocumentSetCatalogue",
    "DocumentStatus",
    "Enqueue",
    "EvaluationRecord",
    "EvaluationTransferCatalogue",
    "Expected",
    "ExperimentCatalogue",
    "FeedbackCatalogue",
    "Fence",
    "GenerationCatalogue",
    "GenerationPointer",
    "GrantedRequests",
    "GraphEditCatalogue",
    "HandOn",
    "IdempotencyClaim",
    "IdempotencyKeys",
    "JobCatalogue",
    "JobEnding",
    "Leases",
    "Matching",
    "ModelResultCatalogue",
    "Opening",
    "Operator",
    "Outbox",
    "OutboxEntry",
    "Owner",
    "Page",
    "Parent",
    "ParsedVersion",
    "PreparedChunk",
    "PreparedQuestion",
    "QuestionCatalogue",
    "QuotaCatalogue",
    "ReadyVersion",
    "RunCatalogue",
    "SearchSessions",
    "StoredResponse",
    "Submission",
    "Submitted",
    "SubmittedScoreCatalogue",
    "SummaryKey",
    "TenantDirectory",
    "TenantSnapshot",
    "Topic",
    "TransferCatalogue",
    "TreeCatalogue",
    "TuningCatalogue",
    "UsageCatalogue",
    "Visibility",
    "Worker",
    "WorkerDirectory",
    "without_quotes",
]

GenerationCatalogue = CommunityCatalogue | TreeCatalogue
"""Two kinds of generations. A schedule rebuilds either."""


class Catalogue:
    """The record on SQLite or PostgreSQL: one database with one class per noun. Created by `open`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.documents = DocumentCatalogue(database)
        self.document_sets = DocumentSetCatalogue(database)
        self.model_results = ModelResultCatalogue(database)
        self.questions = QuestionCatalogue(database)
        self.jobs = JobCatalogue(database)
        self.tenants = TenantDirectory(database)
        self.graph_edits = GraphEditCatalogue(database)
        self.communities = CommunityCatalogue(database)
        self.trees = TreeCatalogue(database)
        self.idempotency = IdempotencyKeys(database)
        self.search_sessions = SearchSessions(database)
        self.datasets = DatasetCatalogue(database)
        self.evaluation_runs = RunCatalogue(database)
        self.tuning = TuningCatalogue(database)
        self.experiments = ExperimentCatalogue(database)
        self.outbox = Outbox(database)
        self.transfer = TransferCatalogue(database)
        self.evaluation_transfer = EvaluationTransferCatalogue(database)
        self.workers = WorkerDirectory(database)
        self.leases = Leases(database)
        self.usage = UsageCatalogue(database)
        self.quotas = QuotaCatalogue(database)
        self.feedback = FeedbackCatalogue(database)
        self.asked_questions = AskedQuestionCatalogue(database)
        self.submitted_scores = SubmittedScoreCatalogue(database)
        self.store_folders = StoreFolderCatalogue(database)
        self.deployments = DeploymentCatalogue(database)

    @classmethod
    async def open(cls, url: str, patience: Patience | None = None) -> Catalogue:
        """Open the database at ``url`` (``sqlite:///path`` or ``postgresql://…``). `migrate` creates its tables.

        Args:
            patience: time limits of a server. None: the defaults of `Patience`.

        Raises:
            ConfigurationError: the URL does not name a supported database.
            StoreUnavailable: the database does not answer.
        """
        catalogue = cls(Database(url, patience))
        try:
            await catalogue.ping()
        except StoreUnavailable:
            await catalogue.close()
            raise
        return catalogue

    @property
    def sync_engine(self) -> Engine:
        """A synchronous engine on the same database, for the durable queue's tables."""
        return self._database.sync_engine

    async def migrate(self, revision: str = "head") -> None:
        """Migrate the schema to this release. Idempotent, and safe in several processes at once."""
        await self._database.define(upgrade, revision)

    async def require_migrated(self) -> None:
        """Raise `ConfigurationError` unless the schema matches this release."""
        difference = await self._database.read(missing)
        if difference is not None:
            raise ConfigurationError(f"the database's schema is not this release's: {difference}; run 'agentic-rag migrate'")

    async def downgrade(self, revision: str) -> None:
        """Downgrade the schema to ``revision`` (``base``: no tables)."""
        await self._database.define(downgrade, revision)

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the database answers. A database file also needs room to grow."""
        self._database.require_room()

        def ask(connection: Connection) -> None:
            connection.execute(text("SELECT 1"))

        await self._database.read(ask)

    async def close(self) -> None:
        """Wait for running transactions, then close all connections."""
        await self._database.close()
