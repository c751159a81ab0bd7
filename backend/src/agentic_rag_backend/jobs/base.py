"""The durable queue port: work that is finished even if the process is killed during it.

A *workflow* is an async function ``(tenant, job_id, attempt) -> None`` of its own layer, registered by the container under a
versioned name (``ingest_v1``). After a crash it starts again from its beginning, so each of its steps must be idempotent.
Expensive results of a step are kept in the catalogue. A workflow may return a `Continuation`.

Order between tenants: `queue.workflow_table` claims one workflow of each tenant in turn. `coordination.slots` limits how many
workflows run in a process, per tenant and per queue. `coordination.tenant_locks` lets one commit of a tenant run at a time
over all processes. Inside running workflows, `agentic_rag_backend.fairness` shares threads and model requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.stores.catalogue.base import Enqueue


class QueueName(StrEnum):
    """Queues, partitioned by tenant. ``prepare`` runs several jobs of a tenant at once, ``commit`` one, over all processes."""

    PREPARE = "prepare"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Continuation:
    """The second part of a workflow, which takes a place of another queue. After a crash, the workflow starts from its beginning.

    It holds no place while it waits for the other queue. A workflow that continues costs less than one that enqueues another.

    Args:
        is_done: returns whether another workflow did this part while it waited for its place.
    """

    queue: QueueName
    workflow: Workflow
    is_done: Callable[[], bool]


Workflow = Callable[[TenantId, str, int], Awaitable[Continuation | None]]


class JobQueue(Protocol):
    """Registers workflows and runs them as workers of this process."""

    def register(self, name: str, queue: QueueName, workflow: Workflow) -> None:
        """Declare a workflow before `launch`."""

    def enqueuer(self, name: str) -> Enqueue:
        """Return a function that enqueues a job for ``name`` inside an open catalogue transaction (see `Enqueue`)."""

    async def enqueue(self, name: str, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Enqueue a job for ``name``. Idempotent for equal name, job and attempt."""

    async def unended(self, jobs: Sequence[Job]) -> frozenset[str]:
        """Return the ids of the tenant's jobs that have a queued or running workflow of their current attempt."""

    def queue_of(self, name: str) -> QueueName:
        """Return the queue that a workflow was registered for."""

    async def oldest_enqueued_s(self) -> Mapping[QueueName, float]:
        """Return, by queue, the seconds that the oldest unclaimed workflow has waited; 0 if none waits."""

    def tenant_lock(self, tenant_lock: TenantLock, tenant: TenantId) -> AbstractAsyncContextManager[object]:
        """Wait for a tenant's lock and hold it. During ``commit``, none of its commits runs, in any process.

        For work outside of a workflow, or in a workflow of another queue. Do not hold ``commit`` longer than a commit takes.
        """

    async def leads(self) -> bool:
        """Return whether this process does the work that only one of all processes may do, such as housekeeping."""

    async def migrate(self) -> None:
        """Migrate the queue's tables to this release, as `launch` does. For processes that only enqueue."""

    async def launch(self) -> None:
        """Start working, and recover the jobs of an earlier process."""

    async def shutdown(self, *, drain: bool = True) -> None:
        """Stop claiming jobs, hand back running jobs, and release the queue.

        Args:
            drain: give running jobs a few seconds to end before they are handed back.
        """

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the queue runs. If the process only enqueues, unless the database answers."""
