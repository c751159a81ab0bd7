"""The catalogue's ports, one per noun, implemented by one SQL engine: the record of what exists and what is visible.

Contract, which `testing.catalogue.contract` checks on every adapter: the tenant is the first argument of every method on
a tenant's data. Unknown ids and ids of other tenants raise the same `NotFound`. Every change that can alter an answer raises the
tenant's ``state_version`` in its own transaction. Times are aware and in UTC.
"""

from __future__ import annotations

from typing import Protocol

from agentic_rag_backend.stores.catalogue.ports.communities import CommunityCatalogue
from agentic_rag_backend.stores.catalogue.ports.documents import (
    ANY_REVISION,
    BegunJob,
    Change,
    DocumentCatalogue,
    DocumentStatus,
    Ending,
    Expected,
    HandOn,
    Parent,
    ParsedVersion,
    PreparedChunk,
    ReadyVersion,
    Submission,
    Submitted,
    Visibility,
)
from agentic_rag_backend.stores.catalogue.ports.generations import GenerationPointer
from agentic_rag_backend.stores.catalogue.ports.graph_edits import GraphEditCatalogue
from agentic_rag_backend.stores.catalogue.ports.idempotency import IdempotencyKeys
from agentic_rag_backend.stores.catalogue.ports.jobs import Enqueue, JobCatalogue
from agentic_rag_backend.stores.catalogue.ports.model_results import ModelResultCatalogue
from agentic_rag_backend.stores.catalogue.ports.outbox import Outbox
from agentic_rag_backend.stores.catalogue.ports.pages import Page
from agentic_rag_backend.stores.catalogue.ports.questions import ChunkQuestions, PreparedQuestion, QuestionCatalogue
from agentic_rag_backend.stores.catalogue.ports.search_sessions import SearchSessions
from agentic_rag_backend.stores.catalogue.ports.tenants import TenantDirectory
from agentic_rag_backend.stores.catalogue.ports.trees import TreeCatalogue

__all__ = [
    "ANY_REVISION",
    "BegunJob",
    "Catalogue",
    "Change",
    "ChunkQuestions",
    "CommunityCatalogue",
    "DocumentCatalogue",
    "DocumentStatus",
    "Ending",
    "Enqueue",
    "Expected",
    "GenerationPointer",
    "GraphEditCatalogue",
    "HandOn",
    "IdempotencyKeys",
    "JobCatalogue",
    "ModelResultCatalogue",
    "Outbox",
    "Page",
    "Parent",
    "ParsedVersion",
    "PreparedChunk",
    "PreparedQuestion",
    "QuestionCatalogue",
    "ReadyVersion",
    "SearchSessions",
    "Submission",
    "Submitted",
    "TenantDirectory",
    "TreeCatalogue",
    "Visibility",
]


class Catalogue(Protocol):
    """The engine with its ports."""

    @property
    def documents(self) -> DocumentCatalogue: ...

    @property
    def model_results(self) -> ModelResultCatalogue: ...

    @property
    def questions(self) -> QuestionCatalogue: ...

    @property
    def jobs(self) -> JobCatalogue: ...

    @property
    def tenants(self) -> TenantDirectory: ...

    @property
    def graph_edits(self) -> GraphEditCatalogue: ...

    @property
    def communities(self) -> CommunityCatalogue: ...

    @property
    def trees(self) -> TreeCatalogue: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def idempotency(self) -> IdempotencyKeys: ...

    @property
    def search_sessions(self) -> SearchSessions: ...

    async def migrate(self) -> None:
        """Migrate the schema to this release. Idempotent."""

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the database answers."""

    async def close(self) -> None:
        """Release connections. Later calls fail."""
