"""The port of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.ports.pages import Page

Enqueue = Callable[[Connection, TenantId, Job], None]
"""Puts a job on its durable queue, through the open transaction it is given (a synchronous connection of it)."""


class JobCatalogue(Protocol):
    """Jobs as their owner sees them; the durable queue behind them is `jobs`' affair."""

    async def create(
        self, tenant: TenantId, kind: JobKind, arguments: Mapping[str, Any], enqueue: Enqueue, *, join: bool = False
    ) -> Job:
        """Record and enqueue a job that has no document; with ``join``, return one of that kind not yet ended instead."""

    async def job(self, tenant: TenantId, job_id: str) -> Job:
        """Return the job or raise `NotFound`."""

    async def jobs(
        self,
        tenant: TenantId,
        *,
        limit: int,
        cursor: str | None = None,
        state: JobState | None = None,
        kind: JobKind | None = None,
        document_id: str | None = None,
    ) -> Page[Job]:
        """List jobs, newest first."""

    async def start(self, tenant: TenantId, job_id: str) -> Job:
        """Mark the job running (repeatable) and return it."""

    async def progress(self, tenant: TenantId, job_id: str, *, stage: str, done: int, total: int, message: str = "") -> bool:
        """Record how far the job is; return whether cancelling was requested."""

    async def hand_back(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Mark a running job queued again: the process that ran it has ended. Another attempt, or another state, stays."""

    async def remember(self, tenant: TenantId, job_id: str, name: str, value: Any) -> Any:
        """Keep a JSON value with a job, for all its attempts; return what is kept: the first value of a name stands."""

    async def finish(
        self,
        tenant: TenantId,
        job_id: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        progress: tuple[str, int, int] | None = None,
    ) -> None:
        """Record how the job ended, and with ``progress`` its last stage, done and total; the first ending stands."""

    async def request_cancel(self, tenant: TenantId, job_id: str) -> Job:
        """Ask a job to stop; `Conflict` if it has ended."""

    async def retry(self, tenant: TenantId, job_id: str, enqueue: Enqueue) -> Job:
        """Queue a failed, partial or cancelled job again with the next attempt number; `Conflict` otherwise.

        An ingest job's version can be processed again then; one that is visible in part stays, and the job gets a new
        ``version`` of the same input. `Conflict` if the document was deleted or the version overtaken.
        """

    async def last(self, tenant: TenantId, kind: JobKind) -> Job | None:
        """Return the newest job of a kind."""

    async def pending_documents(self, tenant: TenantId, *, queued_before: datetime) -> int:
        """Count the jobs recorded by then that may still make a version of a document visible, and are not asked to stop."""

    async def hand_back_all(self) -> int:
        """Mark every running job queued again, of all tenants: where one process owns the database, none runs at its start."""
