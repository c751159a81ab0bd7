"""Locks: mutual exclusion of a tenant's workflows over all processes, by a local lock and a lease in the database.

A process keeps a lease while more of its own workflows wait, so that a commit needs no extra statement. After `QUANTUM_S`
it gives the lease up; if another process has requested the lease, it pauses first. A process that was paused long enough to
count as dead has lost its leases. `HeldLock.confirm_lease`, called before each write, detects this. While the last heartbeat is
recent, no other process can have declared this one dead, and no query is needed. The write that makes a version visible
checks the lease in its own transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import Fence, Leases

if TYPE_CHECKING:
    from agentic_rag_backend.jobs.coordination.membership import Membership

QUANTUM_S = 1.0
"""Seconds that a process may reuse a lease that another process may be waiting for."""
POLL_INTERVAL_S = 0.1
"""Seconds between two attempts to take a lease that another process holds."""
YIELD_S = 2.5 * POLL_INTERVAL_S
"""Seconds that a process waits after giving up a requested lease, so that the other process can take it."""
RETRY_S = 1.0


class TenantLock(StrEnum):
    """Kinds of locks.

    ``commit``: a tenant's commits, deletes and repairs. ``rebuild``: rebuilds of its communities. ``raptor``: builds of its
    tree. ``evaluate``: its evaluation runs.
    """

    COMMIT = "commit"
    REBUILD = "rebuild"
    RAPTOR = "raptor"
    EVALUATE = "evaluate"


class HeldLock:
    """A lock that is held. It can only be lost if there are other processes."""

    def __init__(self, fence: Fence | None, tenant: TenantId, leases: Leases | None, membership: Membership | None) -> None:
        self.fence = fence
        self.lost = False
        self._tenant = tenant
        self._leases = leases
        self._membership = membership
        self._executor_id = membership.executor_id if membership is not None else ""

    async def confirm_lease(self) -> None:
        """Check that no other process has the lock.

        Raises:
            asyncio.CancelledError: another process may have the lock, and continues the work.
            StoreUnavailable: the database could not be queried.
        """
        if self.fence is None or self._leases is None or self._membership is None:
            return
        is_same_worker = self._membership.executor_id == self._executor_id
        if is_same_worker and time.monotonic() < self._membership.sure_until and not self.lost:
            return
        if self.lost or not await self._leases.holds(self._tenant, self.fence):
            self.lost = True
            raise asyncio.CancelledError(f"the lock {self.fence.name!r} of {self._tenant} is another process's by now")


_HELD: ContextVar[HeldLock | None] = ContextVar("tenant_lock", default=None)


async def confirm_lock() -> None:
    """Call `HeldLock.confirm_lease` if the caller holds a lock."""
    lock = _HELD.get()
    if lock is not None:
        await lock.confirm_lease()


def lock_lost() -> bool:
    """Return whether the caller's lock was lost to another process."""
    lock = _HELD.get()
    return lock is not None and lock.lost


def current_fence() -> Fence | None:
    """Return the fence of the caller's lock. None if the lock cannot be lost."""
    lock = _HELD.get()
    return lock.fence if lock is not None else None


class _LockState:
    """State of a lock in this process."""

    __slots__ = ("__weakref__", "asking", "executor_id", "fence", "lock", "since")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.asking = 0
        self.fence: Fence | None = None
        self.executor_id = ""
        self.since = 0.0


class TenantLocks:
    """Grants locks, in order of request within this process.

    Args:
        leases: None if no other process works on the database.
        membership: this process among the workers; required with ``leases``.
    """

    def __init__(self, leases: Leases | None = None, membership: Membership | None = None) -> None:
        self._leases = leases
        self._membership = membership
        self._places: WeakValueDictionary[tuple[TenantLock, TenantId], _LockState] = WeakValueDictionary()
        self._giving_up: set[asyncio.Task[bool]] = set()

    @contextlib.asynccontextmanager
    async def hold_lock(self, tenant_lock: TenantLock, tenant: TenantId) -> AsyncIterator[HeldLock]:
        """Hold a lock for the duration of the context. Wait for it without a time limit."""
        state = self._places.get((tenant_lock, tenant))
        if state is None:
            state = self._places[tenant_lock, tenant] = _LockState()
        await self._enter_lock(state, tenant)
        try:
            await self._renew_lease(state, tenant_lock, tenant)
            holding = HeldLock(state.fence, tenant, self._leases, self._membership)
            noted = _HELD.set(holding)
            try:
                yield holding
            finally:
                _HELD.reset(noted)
                if holding.lost:
                    state.fence = None
        finally:
            state.lock.release()
            self._release_idle_lease(state, tenant)

    async def close(self) -> None:
        """Stop giving up leases: they become free when this process leaves the workers."""
        for task in tuple(self._giving_up):
            task.cancel()
        await asyncio.gather(*self._giving_up, return_exceptions=True)

    async def _enter_lock(self, state: _LockState, tenant: TenantId) -> None:
        state.asking += 1
        try:
            await state.lock.acquire()
        except BaseException:
            state.asking -= 1
            self._release_idle_lease(state, tenant)
            raise
        state.asking -= 1

    async def _renew_lease(self, state: _LockState, tenant_lock: TenantLock, tenant: TenantId) -> None:
        if self._leases is None or self._membership is None:
            return
        if state.fence is not None:
            if state.executor_id == self._membership.executor_id and time.monotonic() - state.since < QUANTUM_S:
                return
            fence, state.fence = state.fence, None
            if await self._give_up(tenant, fence):
                await asyncio.sleep(YIELD_S)
        while (fence_taken := await self._take_lease(tenant_lock, tenant)) is None:  # noqa: ASYNC110 - another process gives it up
            await asyncio.sleep(POLL_INTERVAL_S)
        state.fence, state.executor_id, state.since = fence_taken, self._membership.executor_id, time.monotonic()

    async def _take_lease(self, tenant_lock: TenantLock, tenant: TenantId) -> Fence | None:
        """Try to take a lease. If the caller is cancelled meanwhile, the lease is given up again."""
        assert self._leases is not None and self._membership is not None  # noqa: S101, PT018 - called only with leases
        taking = asyncio.ensure_future(self._leases.take(tenant, tenant_lock, self._membership.executor_id))
        try:
            return await asyncio.shield(taking)
        except StoreUnavailable:
            await asyncio.sleep(RETRY_S)
            return None
        except asyncio.CancelledError:
            taking.add_done_callback(lambda future: self._give_up_late(tenant, future))
            raise

    def _give_up_late(self, tenant: TenantId, future: asyncio.Future[Fence | None]) -> None:
        if not future.cancelled() and future.exception() is None and (fence := future.result()) is not None:
            self._begin_giving_up(tenant, fence)

    def _release_idle_lease(self, state: _LockState, tenant: TenantId) -> None:
        """Give up a lease that no caller in this process waits for, in the background."""
        if state.fence is not None and not state.asking and not state.lock.locked():
            self._begin_giving_up(tenant, state.fence)
            state.fence = None

    def _begin_giving_up(self, tenant: TenantId, fence: Fence) -> None:
        # If this process takes the lease again first, the fence has changed, and nothing happens.
        task = asyncio.create_task(self._give_up(tenant, fence))
        self._giving_up.add(task)
        task.add_done_callback(self._giving_up.discard)

    async def _give_up(self, tenant: TenantId, fence: Fence) -> bool:
        """Give up a lease, with retries. Return whether another process requested it."""
        while True:
            try:
                return self._leases is not None and await self._leases.give_up(tenant, fence)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_S)
