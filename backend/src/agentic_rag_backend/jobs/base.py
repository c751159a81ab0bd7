"""Durable work: work that is finished even if the process is killed during it.

A *workflow* is an async function ``(tenant, job_id, attempt) -> None`` of its own layer, registered by the container under a
versioned name (``ingest_v1``). After a crash it starts again from its beginning, so each of its steps must be idempotent.
Expensive results of a step are kept in the catalogue. A workflow may return a `Continuation`.

Order between tenants: `queue.workflow_table` claims one workflow of each tenant in turn. `coordination.slots` limits how many
workflows run in a process, per tenant and per queue. `coordination.tenant_locks` lets one commit of a tenant run at a time
over all processes. Inside running workflows, `agentic_rag_backend.fairness` shares threads and model requests.

Decides how long a job waits for a store or model that does not answer. `jobs.runner` does the waiting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable, StoreLocked, StoreUnavailable


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


PATIENCE_S = 3600.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
MAX_INVALID_REPLIES = 5
"""Maximum attempts at a model whose replies are invalid, because waiting seldom helps."""


def is_transient(error: BaseException) -> bool:
    """Return whether a later attempt may succeed."""
    return isinstance(error, StoreUnavailable | ModelUnavailable) and not isinstance(error, StoreLocked | ModelRefused)


class Backoff:
    """Decides after each failure how long to wait. Progress since the last failure resets the wait.

    Args:
        patience_s: seconds without any progress after which the job is not tried again.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: float | None = None
        self._progress = 0
        self._failures = 0

    def pause_s(self, error: BaseException, *, now: float, progress: int = 0) -> float | None:
        """Return the seconds until the next attempt; None to give up.

        The pauses double up to `LONGEST_PAUSE_S`. A longer pause that the model asked for wins; a pause that would outlast
        the patience means giving up at once.

        Args:
            now: of a clock that only grows, in seconds.
            progress: a count that grows with completed work.
        """
        if not is_transient(error):
            return None
        if self._since is None or progress > self._progress:
            self._since, self._progress, self._failures = now, progress, 0
        self._failures += 1
        if isinstance(error, ModelReplyInvalid) and self._failures >= MAX_INVALID_REPLIES:
            return None
        left_s = self._since + self._patience_s - now
        asked_s = getattr(error, "retry_after_s", None) or 0.0
        grown_s = FIRST_PAUSE_S * 2 ** min(self._failures - 1, 30)
        chosen_s = float(max(min(LONGEST_PAUSE_S, grown_s, max(left_s, 0.0)), asked_s))
        return chosen_s if left_s > 0 and chosen_s <= left_s else None
