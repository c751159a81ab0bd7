"""The workers port: the processes that run jobs, and their running workflows.

Only a deployment with several processes on one database uses it. `testing.jobs.workers` checks the contract on every adapter.
The clocks of two machines are never compared: a process measures how long another has been silent, or the database does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that runs jobs, as another process sees it."""

    executor_id: str
    beats: int
    """Number of its heartbeats."""
    workflows: frozenset[str]
    """Names of the workflows that its release can run."""
    silent_s: float = field(default=0.0, compare=False)
    """Seconds since its last heartbeat, by the database's clock."""


class WorkerDirectory(Protocol):
    """Workers. A worker joins before it claims work, sends a heartbeat every few seconds, and leaves when it has stopped."""

    async def join(self, executor_id: str, workflows: Collection[str]) -> None:
        """Add a worker."""

    async def heartbeat(self, executor_id: str) -> bool:
        """Record a heartbeat. Return False if the worker was removed as dead."""

    async def leave(self, executor_id: str) -> None:
        """Remove a worker that has stopped. Its workflows are not counted as killed."""

    async def workers(self) -> Sequence[Worker]:
        """Return all workers."""

    async def bury(self, worker: Worker) -> bool:
        """Remove a worker without a newer heartbeat, and add a kill to each workflow that it was running.

        When several processes bury the same worker, only one of them gets True.
        """

    async def began(self, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
        """Record that a worker runs a workflow now, also if another worker ran it before."""

    async def ended(self, tenant: TenantId, workflow_id: str, executor_id: str, *, finished: bool) -> None:
        """Record that the worker has stopped running the workflow. Nothing changes if another worker runs it by now.

        A ``finished`` workflow is not run again, so its kills are forgotten.
        """

    async def forgive(self, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
        """Forget the kills of a workflow that the worker runs. Nothing changes if another worker runs it by now."""

    async def kills(self) -> Mapping[str, int]:
        """Return the number of kills of each unfinished workflow that has any."""

    async def open_jobs(self) -> Mapping[str, int]:
        """Count the jobs of all tenants that are ``queued`` and ``running``."""

    async def oldest_queued_s(self) -> Mapping[JobKind, float]:
        """Return, by kind, the seconds that the oldest ``queued`` job of all tenants has waited.

        A kind without queued jobs is absent.
        """

    async def forget(self, workflow_ids: Collection[str]) -> None:
        """Forget the kills of workflows that no worker runs."""
