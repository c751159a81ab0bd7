"""The durable queue port: work that is finished even if the process is killed in the middle.

A *workflow* is an async function ``(tenant, job_id, attempt) -> None`` of its own layer, registered by the container under
a versioned name (``ingest_v1``). It is started again from its beginning after a crash, so each of its steps must be
repeatable; what a step computed at a price is kept in the catalogue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Protocol

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.turns import Turn
from agentic_rag_backend.stores.catalogue.base import Enqueue

Workflow = Callable[[TenantId, str, int], Awaitable[None]]


class QueueName(StrEnum):
    """Both are partitioned by tenant: ``prepare`` runs several of a tenant at once, ``commit`` one, over all processes."""

    PREPARE = "prepare"
    COMMIT = "commit"


class JobQueue(Protocol):
    """Registers workflows, then runs them as workers of this process."""

    def register(self, name: str, queue: QueueName, workflow: Workflow) -> None:
        """Declare a workflow before `launch`."""

    def enqueuer(self, name: str) -> Enqueue:
        """Return what puts a job on ``name``'s queue inside an open catalogue transaction (see `Enqueue`)."""

    async def enqueue(self, name: str, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Put a job on ``name``'s queue; the same name, job and attempt again changes nothing."""

    async def unended(self, jobs: Sequence[Job]) -> frozenset[str]:
        """Return the ids of those of a tenant's jobs of which some workflow of the present attempt is queued or running."""

    def queue_of(self, name: str) -> QueueName:
        """Return the queue that a workflow was registered for."""

    async def oldest_enqueued_s(self) -> Mapping[QueueName, float]:
        """Return, by queue, for how many seconds its oldest workflow has waited that no process has claimed; 0: none waits."""

    def turn(self, turn: Turn, tenant: TenantId) -> AbstractAsyncContextManager[object]:
        """Wait for a tenant's turn and hold it: with ``commit``, none of its commits runs meanwhile, in any process.

        For work outside of any workflow, or inside one of another queue; ``commit`` is not to be held longer than a commit
        takes.
        """

    async def leads(self) -> bool:
        """Tell whether this process is the one that does what is to be done once, however many there are."""

    async def migrate(self) -> None:
        """Bring the queue's tables to this release's version, as `launch` does; for processes that only enqueue."""

    async def launch(self) -> None:
        """Start working, and take up what an earlier process of this folder left."""

    async def shutdown(self, *, drain: bool = True) -> None:
        """Stop taking work, hand back what is running, release the queue.

        Args:
            drain: give what runs a few seconds to end before it is handed back.
        """

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the queue is running; in a process that only enqueues, unless its database answers."""
