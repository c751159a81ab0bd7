"""Durable work: work that is finished even if the process is killed during it.

A *workflow* is an async function ``(tenant, job_id, attempt) -> None`` of its own layer, registered by the container under a
versioned name (``ingest_v1``). After a crash it starts again from its beginning, so each of its steps must be idempotent.
Expensive results of a step are kept in the catalogue. A workflow may return a `Continuation`.

Order between tenants: `queue.workflow_table` claims one workflow of each tenant in turn. `coordination.slots` limits how many
workflows run in a process, per tenant and per queue. `coordination.tenant_locks` lets one commit of a tenant run at a time
over all processes. Inside running workflows, `agentic_rag_backend.fairness` shares threads and model requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from agentic_rag_backend.domain.tenant import TenantId


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
