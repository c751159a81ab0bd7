"""How many workflows run at once in this process: of a tenant, of a queue, and beside one that may kill the process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.recovery import Caution

_CAUTION: ContextVar[Caution] = ContextVar("caution", default=Caution.NONE)


def caution_here() -> Caution:
    """Return how carefully the workflow that asks is run: one that may kill the process must not do others' work, too."""
    return _CAUTION.get()


class Slots:
    """Hands out places in the order in which they were asked for; suspects may be overtaken.

    Args:
        of_tenant: places of each tenant, by queue.
        of_process: places of each queue, over all tenants.
    """

    def __init__(self, of_tenant: Mapping[QueueName, int], of_process: int) -> None:
        self._sizes = dict(of_tenant)
        self._of_tenant: WeakValueDictionary[tuple[QueueName, TenantId], asyncio.Semaphore] = WeakValueDictionary()
        self._of_process = {queue: asyncio.Semaphore(of_process) for queue in QueueName}
        self._suspect = asyncio.Semaphore(1)
        self._running = 0
        self._kept_free = 0
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def taken(self, queue: QueueName, tenant: TenantId, caution: Caution) -> AsyncIterator[None]:
        """Hold a place for the length of the context."""
        of_tenant = self._tenant(queue, tenant)
        # A suspect waits for its turn without a place, so that it keeps nobody else out meanwhile.
        async with contextlib.AsyncExitStack() as held:
            if caution is not Caution.NONE:
                await held.enter_async_context(self._suspect)
            await held.enter_async_context(of_tenant)
            await held.enter_async_context(self._of_process[queue])
            await self._admitted(caution)
            self._running += 1
            noted = _CAUTION.set(caution)
            try:
                yield
            finally:
                _CAUTION.reset(noted)
                self._running -= 1
                self._kept_free -= caution is Caution.ALONE
                self._wake()

    @contextlib.asynccontextmanager
    async def turn(self, queue: QueueName, tenant: TenantId) -> AsyncIterator[None]:
        """Hold a place of the tenant for work that is no workflow of the queue, and waits for nothing that must be alone."""
        async with self._tenant(queue, tenant):
            yield

    def _tenant(self, queue: QueueName, tenant: TenantId) -> asyncio.Semaphore:
        found = self._of_tenant.get((queue, tenant))
        if found is None:
            found = self._of_tenant[queue, tenant] = asyncio.Semaphore(self._sizes[queue])
        return found

    async def _admitted(self, caution: Caution) -> None:
        """Wait until nothing runs, or until nothing runs or waits that must be alone."""
        if caution is not Caution.ALONE:
            while self._kept_free:
                await self._changed.wait()
            return
        self._kept_free += 1  # from now on nothing begins
        try:
            while self._running:
                await self._changed.wait()
        except BaseException:
            self._kept_free -= 1
            self._wake()
            raise

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
