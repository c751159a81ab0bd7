"""The catalogue: one database with one port per noun."""

from __future__ import annotations

from sqlalchemy import Engine, text
from sqlalchemy.engine import Connection

from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import (
    CommunityCatalogue,
    DocumentCatalogue,
    GraphEditCatalogue,
    JobCatalogue,
    ModelResultCatalogue,
    QuestionCatalogue,
    TenantDirectory,
)
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.deployments import SqlDeployments
from agentic_rag_backend.stores.catalogue.documents.adapter import SqlDocuments
from agentic_rag_backend.stores.catalogue.documents.model_results import SqlModelResults
from agentic_rag_backend.stores.catalogue.documents.questions import SqlQuestions
from agentic_rag_backend.stores.catalogue.idempotency import SqlIdempotencyKeys
from agentic_rag_backend.stores.catalogue.jobs.adapter import SqlJobs
from agentic_rag_backend.stores.catalogue.jobs.leases import SqlLeases
from agentic_rag_backend.stores.catalogue.jobs.outbox import SqlOutbox
from agentic_rag_backend.stores.catalogue.jobs.workers import SqlWorkers
from agentic_rag_backend.stores.catalogue.migrations import downgrade, missing, upgrade
from agentic_rag_backend.stores.catalogue.ports.idempotency import IdempotencyKeys
from agentic_rag_backend.stores.catalogue.ports.leases import Leases
from agentic_rag_backend.stores.catalogue.ports.outbox import Outbox
from agentic_rag_backend.stores.catalogue.ports.search_sessions import SearchSessions
from agentic_rag_backend.stores.catalogue.ports.transfer import TransferCatalogue
from agentic_rag_backend.stores.catalogue.ports.trees import TreeCatalogue
from agentic_rag_backend.stores.catalogue.ports.workers import WorkerDirectory
from agentic_rag_backend.stores.catalogue.postgres import Patience
from agentic_rag_backend.stores.catalogue.search_sessions import SqlSearchSessions
from agentic_rag_backend.stores.catalogue.store_folders import SqlStoreFolders
from agentic_rag_backend.stores.catalogue.summaries.communities import SqlCommunities
from agentic_rag_backend.stores.catalogue.summaries.trees import SqlTrees
from agentic_rag_backend.stores.catalogue.tenants.adapter import SqlTenants
from agentic_rag_backend.stores.catalogue.tenants.graph_edits import SqlGraphEdits
from agentic_rag_backend.stores.catalogue.tenants.transfer import SqlTransfer


class SqlCatalogue:
    """Implements `Catalogue` on SQLite or PostgreSQL. Created by `open`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Annotated with the ports, so that mypy compares each class with its Protocol.
        self.documents: DocumentCatalogue = SqlDocuments(database)
        self.model_results: ModelResultCatalogue = SqlModelResults(database)
        self.questions: QuestionCatalogue = SqlQuestions(database)
        self.jobs: JobCatalogue = SqlJobs(database)
        self.tenants: TenantDirectory = SqlTenants(database)
        self.graph_edits: GraphEditCatalogue = SqlGraphEdits(database)
        self.communities: CommunityCatalogue = SqlCommunities(database)
        self.trees: TreeCatalogue = SqlTrees(database)
        self.idempotency: IdempotencyKeys = SqlIdempotencyKeys(database)
        self.search_sessions: SearchSessions = SqlSearchSessions(database)
        self.outbox: Outbox = SqlOutbox(database)
        self.transfer: TransferCatalogue = SqlTransfer(database)
        self.workers: WorkerDirectory = SqlWorkers(database)
        self.leases: Leases = SqlLeases(database)
        self.store_folders = SqlStoreFolders(database)
        self.deployments = SqlDeployments(database)

    @classmethod
    async def open(cls, url: str, patience: Patience | None = None) -> SqlCatalogue:
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
        found = await self._database.read(missing)
        if found is not None:
            raise ConfigurationError(f"the database's schema is not this release's: {found}; run 'agentic-rag migrate'")

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
