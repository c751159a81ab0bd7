"""Concurrency limits of workflows in this process: per tenant, per queue, and for workflows that may kill the process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.recovery import Caution
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock, TenantLocks

_CAUTION: ContextVar[Caution] = ContextVar("caution", default=Caution.NONE)


class _SlotPlace:
    """One place of a semaphore. At the end it is given back if it is still held."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._held = False

    async def take_place(self) -> None:
        """Wait for the place. If cancelled meanwhile, the place is not held."""
        await self._places.acquire()
        self._held = True

    def leave_place(self) -> None:
        """Give the place back, if it is held."""
        if self._held:
            self._held = False
            self._places.release()

    async def __aenter__(self) -> None:
        await self.take_place()

    async def __aexit__(self, *_: object) -> None:
        self.leave_place()


_PLACES: ContextVar[tuple[_SlotPlace, ...]] = ContextVar("places", default=())


@contextlib.asynccontextmanager
async def lend_places() -> AsyncIterator[None]:
    """Lend the caller's places to other workflows while it waits for them. A workflow that holds a lock keeps its places.

    A workflow that is cancelled meanwhile ends without its places.
    """
    places = _PLACES.get()
    for semaphore in places:
        semaphore.leave_place()
    try:
        yield
    except asyncio.CancelledError:
        raise
    except BaseException:
        await _take_slots(places)
        raise
    await _take_slots(places)


async def _take_slots(places: tuple[_SlotPlace, ...]) -> None:
    for semaphore in places:
        await semaphore.take_place()


def caution_here() -> Caution:
    """Return the isolation of the calling workflow. A workflow that may kill the process must not do the work of others."""
    return _CAUTION.get()


class Slots:
    """Grants places in order of request. Suspects may be overtaken.

    Args:
        prepared: places of each tenant on the queue ``prepare``; ``commit`` has one, which is a `TenantLock`.
        of_process: places of each queue, over all tenants.
        tenant_locks: locks of this process.
    """

    def __init__(self, prepared: int, of_process: int, tenant_locks: TenantLocks) -> None:
        self._prepared = prepared
        self._tenant_locks = tenant_locks
        self._of_tenant: WeakValueDictionary[TenantId, asyncio.Semaphore] = WeakValueDictionary()
        self._of_process = {queue: asyncio.Semaphore(of_process) for queue in QueueName}
        self._suspect = asyncio.Semaphore(1)
        self._running = 0
        self._kept_free = 0
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def hold_place(self, queue: QueueName, tenant: TenantId, caution: Caution) -> AsyncIterator[None]:
        """Hold a place for the length of the context."""
        # A suspect waits without a place, so that it blocks no other workflow meanwhile.
        async with contextlib.AsyncExitStack() as stack:
            if caution is not Caution.NONE:
                await stack.enter_async_context(self._suspect)
            places: tuple[_SlotPlace, ...] = (_SlotPlace(self._of_process[queue]),)
            if queue is QueueName.COMMIT:
                await stack.enter_async_context(self._tenant_locks.hold_lock(TenantLock.COMMIT, tenant))
            else:
                places = (_SlotPlace(self._semaphore_of(tenant)), *places)
            for semaphore in places:
                await stack.enter_async_context(semaphore)
            await self._admit_workflow(caution)
            self._running += 1
            noted = _CAUTION.set(caution)
            # An isolated workflow keeps its places: no workflow that it waits for could start. So does a commit in its turn.
            lent = _PLACES.set(() if queue is QueueName.COMMIT or caution is Caution.ALONE else places)
            try:
                yield
            finally:
                _PLACES.reset(lent)
                _CAUTION.reset(noted)
                self._running -= 1
                self._kept_free -= caution is Caution.ALONE
                self._wake_waiters()

    def _semaphore_of(self, tenant: TenantId) -> asyncio.Semaphore:
        semaphore = self._of_tenant.get(tenant)
        if semaphore is None:
            semaphore = self._of_tenant[tenant] = asyncio.Semaphore(self._prepared)
        return semaphore

    async def _admit_workflow(self, caution: Caution) -> None:
        """Wait until no workflow runs (if it must run alone), or until no isolated workflow runs or waits."""
        if caution is not Caution.ALONE:
            while self._kept_free:
                await self._changed.wait()
            return
        self._kept_free += 1  # no new workflow starts from now on
        try:
            while self._running:
                await self._changed.wait()
        except BaseException:
            self._kept_free -= 1
            self._wake_waiters()
            raise

    def _wake_waiters(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
