"""The leases port: work that one worker does at a time, such as the commits of a tenant.

`testing.jobs.leases` checks the contract on every adapter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof that a lease is held. ``number`` rises each time the lease is taken."""

    name: str
    number: int


class Leases(Protocol):
    """Leases by tenant and name. A worker holds a lease until it gives it up or leaves the workers."""

    async def take(self, tenant: TenantId, name: str, executor_id: str) -> Fence | None:
        """Take a tenant's lease. Return None if another worker holds it, and mark the lease as wanted (see `give_up`).

        A worker that holds the lease takes it again, which invalidates its earlier fence. A process that has not joined gets
        None.
        """

    async def give_up(self, tenant: TenantId, fence: Fence) -> bool:
        """Give up a lease. Return whether another worker wanted it. An invalid fence changes nothing."""

    async def holds(self, tenant: TenantId, fence: Fence) -> bool:
        """Return whether the fence is the newest of its lease and its holder is a worker."""

    async def lead(self, name: str, executor_id: str) -> bool:
        """Return whether the worker does ``name``, a task without a tenant. It keeps the task while it is a worker."""
