"""The port of those who work: which processes run jobs, and what each of them is running.

Where one process owns the database nobody asks; it is for several on one. `testing.workers` checks the contract on every
adapter. Nothing here compares clocks: how long a worker has been silent is measured by who observes it, or by the database.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that works, as another one sees it."""

    executor_id: str
    beats: int
    """How often it has said that it is alive."""
    workflows: frozenset[str]
    """Names of the workflows that its release knows."""
    silent_s: float = field(default=0.0, compare=False)
    """Seconds since its last beat, by the database's clock."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A lease as one holding of it: ``number`` is higher than at every holding before."""

    name: str
    number: int


class WorkerDirectory(Protocol):
    """Every worker joins before it claims anything, beats every few seconds, and leaves when it has stopped."""

    async def join(self, executor_id: str, workflows: Collection[str]) -> None:
        """Add a worker."""

    async def beat(self, executor_id: str) -> bool:
        """Say that a worker is alive; return False if it was taken for dead, and so is no worker any more."""

    async def leave(self, executor_id: str) -> None:
        """Remove a worker that runs nothing any more; nothing is held against what it ran."""

    async def workers(self) -> Sequence[Worker]:
        """Return everybody."""

    async def bury(self, worker: Worker) -> bool:
        """Remove a worker that has not beaten since, and count a kill against each workflow that it was running.

        Of several who bury the same worker one does it, and is told so.
        """

    async def began(self, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
        """Record that a worker is running a workflow now, whoever did before."""

    async def ended(self, tenant: TenantId, workflow_id: str, executor_id: str, *, finished: bool) -> None:
        """Record that it does not any more; nothing happens if another one is running it by now.

        ``finished``: it is not to be run again, so what was counted against it is forgotten.
        """

    async def kills(self) -> Mapping[str, int]:
        """Return at how many kills each workflow was present that is not finished, without those that were at none."""

    async def open_jobs(self) -> Mapping[str, int]:
        """Count the jobs of all tenants that are ``queued`` and ``running``."""

    async def oldest_queued_s(self) -> Mapping[JobKind, float]:
        """Return, by kind, for how many seconds the oldest ``queued`` job of all tenants has waited.

        A kind without queued jobs is absent.
        """

    async def forget(self, workflow_ids: Collection[str]) -> None:
        """Forget what was counted against workflows that nobody runs any more."""


class Leases(Protocol):
    """What one worker does at a time. A lease is held until it is given up, or its holder is no worker any more."""

    async def take(self, tenant: TenantId, name: str, executor_id: str) -> Fence | None:
        """Take a tenant's lease; None if another worker has it, which is told that it was asked for.

        Who has it already takes it anew: the fence it had before is void. Who is no worker takes nothing.
        """

    async def give_up(self, tenant: TenantId, fence: Fence) -> bool:
        """Let go of a lease, and return whether another worker asked for it meanwhile; a void fence changes nothing."""

    async def holds(self, tenant: TenantId, fence: Fence) -> bool:
        """Tell whether a fence is the newest of its lease, and its holder a worker."""

    async def lead(self, name: str, executor_id: str) -> bool:
        """Tell whether a worker is the one that does ``name``, a thing of no tenant, for as long as it is a worker."""
