"""The port of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.ports.pages import Page

Enqueue = Callable[[Connection, TenantId, Job], None]
"""Enqueues a job on its durable queue, in the open transaction that it is given (a synchronous connection)."""


class JobCatalogue(Protocol):
    """Jobs and their states. `jobs` has the durable queue that runs them."""

    async def create(
        self, tenant: TenantId, kind: JobKind, arguments: Mapping[str, Any], enqueue: Enqueue, *, join: bool = False
    ) -> Job:
        """Record and enqueue a job without a document. With ``join``, return an unfinished job of the kind if there is one."""

    async def job(self, tenant: TenantId, job_id: str) -> Job:
        """Return the job or raise `NotFound`."""

    async def ended(self, tenant: TenantId, job_ids: Sequence[str]) -> list[Job]:
        """Return the jobs among ``job_ids`` that have ended. `NotFound` if one of ``job_ids`` does not exist."""

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
        """Mark the job as running and return it. Idempotent."""

    async def progress(self, tenant: TenantId, job_id: str, *, stage: str, done: int, total: int, message: str = "") -> bool:
        """Record the job's progress. Return whether cancelling was requested."""

    async def hand_back(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Mark a running job as queued again, because its process has ended. Nothing changes for another attempt or state."""

    async def remember(self, tenant: TenantId, job_id: str, name: str, value: Any) -> Any:
        """Store a JSON value with a job, for all its attempts. Return the stored value: the first value of a name is kept."""

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
        """Record how the job ended; ``progress`` is its last stage, done and total. The first ending is final."""

    async def request_cancel(self, tenant: TenantId, job_id: str) -> Job:
        """Ask a job to stop. `Conflict` if it has ended."""

    async def retry(self, tenant: TenantId, job_id: str, enqueue: Enqueue) -> Job:
        """Queue a failed, partial or cancelled job again with the next attempt number. `Conflict` in other states.

        The version of an ingest job becomes processable again. If it is partly visible, it stays, and the job gets a new
        ``version``
        of the same input. `Conflict` if the document was deleted or the version superseded.
        """

    async def last(self, tenant: TenantId, kind: JobKind) -> Job | None:
        """Return the newest job of a kind."""

    async def pending_documents(self, tenant: TenantId, *, queued_before: datetime) -> int:
        """Count jobs recorded by then that may still make a document's version visible and are not asked to stop."""

    async def hand_back_all(self) -> int:
        """Mark running jobs of all tenants as queued. For a sole process at its start, when no job can be running."""
