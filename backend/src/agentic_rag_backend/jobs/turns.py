"""What one of a tenant's workflows does at a time, over all processes: a place in this one, and a lease where there are others.

A lease is kept from one user to the next while more of this process are waiting, so that a commit costs no statement for it;
after `QUANTUM_S` it is given up, and where another process has asked meanwhile, this one lets it go first. A process that was
stopped for long enough to be taken for dead has lost its leases. It learns of that when it asks (`Holding.confirm`), which it
does before each write: for as long as its last beat is recent no other process can have buried it, and nothing is asked of
the database. The write that makes a version visible is compared with the lease in its own transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from enum import StrEnum
from typing import Protocol
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.catalogue.ports.leases import Fence, Leases

QUANTUM_S = 1.0
"""For so long a process goes on with a lease that another one may be waiting for."""
LOOK_S = 0.1
"""Seconds between two looks at a lease that another process holds."""
YIELD_S = 2.5 * LOOK_S
"""For so long a process that gave up a lease leaves it to who asked for it."""
RETRY_S = 1.0


class Turn(StrEnum):
    """``commit``: the tenant's commits, deletes and what mends its stores; ``rebuild``: rebuilds of its communities;
    ``raptor``: builds of its tree."""

    COMMIT = "commit"
    REBUILD = "rebuild"
    RAPTOR = "raptor"


class Lessee(Protocol):
    """This process as a holder of leases."""

    executor_id: str
    sure_until: float
    """By `time.monotonic`: until then nobody can have taken it for dead."""


class Holding:
    """A turn that is held; it can only be lost where there are other processes."""

    def __init__(self, fence: Fence | None, tenant: TenantId, leases: Leases | None, lessee: Lessee | None) -> None:
        self.fence = fence
        self.lost = False
        self._tenant = tenant
        self._leases = leases
        self._lessee = lessee
        self._executor_id = lessee.executor_id if lessee is not None else ""

    async def confirm(self) -> None:
        """Make sure that nobody else has the turn by now.

        Raises:
            asyncio.CancelledError: somebody may have: whatever was to follow is another process's.
            StoreUnavailable: that could not be asked.
        """
        if self.fence is None or self._leases is None or self._lessee is None:
            return
        same = self._lessee.executor_id == self._executor_id
        if same and time.monotonic() < self._lessee.sure_until and not self.lost:
            return
        if self.lost or not await self._leases.holds(self._tenant, self.fence):
            self.lost = True
            raise asyncio.CancelledError(f"the turn {self.fence.name!r} of {self._tenant} is another process's by now")


_HELD: ContextVar[Holding | None] = ContextVar("turn", default=None)


async def confirm_turn() -> None:
    """Do what `Holding.confirm` does for the turn in which the caller runs, if it runs in one."""
    held = _HELD.get()
    if held is not None:
        await held.confirm()


def turn_lost() -> bool:
    """Tell whether the turn in which the caller runs was found to be another process's."""
    held = _HELD.get()
    return held is not None and held.lost


def fence_here() -> Fence | None:
    """Return the fence of the turn in which the caller runs; None where nothing can take it away."""
    held = _HELD.get()
    return held.fence if held is not None else None


class _Place:
    """A turn in this process."""

    __slots__ = ("__weakref__", "asking", "executor_id", "fence", "lock", "since")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.asking = 0
        self.fence: Fence | None = None
        self.executor_id = ""
        self.since = 0.0


class Turns:
    """Hands out turns, in this process in the order in which they were asked for.

    Args:
        leases: None where no other process works on the database.
        lessee: this process; needed with ``leases``.
    """

    def __init__(self, leases: Leases | None = None, lessee: Lessee | None = None) -> None:
        self._leases = leases
        self._lessee = lessee
        self._places: WeakValueDictionary[tuple[Turn, TenantId], _Place] = WeakValueDictionary()
        self._giving_up: set[asyncio.Task[bool]] = set()

    @contextlib.asynccontextmanager
    async def held(self, turn: Turn, tenant: TenantId) -> AsyncIterator[Holding]:
        """Hold a turn for the length of the context, however long it takes to get it."""
        place = self._places.get((turn, tenant))
        if place is None:
            place = self._places[turn, tenant] = _Place()
        await self._enter(place, tenant)
        try:
            await self._lease(place, turn, tenant)
            holding = Holding(place.fence, tenant, self._leases, self._lessee)
            noted = _HELD.set(holding)
            try:
                yield holding
            finally:
                _HELD.reset(noted)
                if holding.lost:
                    place.fence = None
        finally:
            place.lock.release()
            self._release_unwanted(place, tenant)

    async def close(self) -> None:
        """Stop trying to give leases up: they are free when this process is no worker any more."""
        for task in tuple(self._giving_up):
            task.cancel()
        await asyncio.gather(*self._giving_up, return_exceptions=True)

    async def _enter(self, place: _Place, tenant: TenantId) -> None:
        place.asking += 1
        try:
            await place.lock.acquire()
        except BaseException:
            place.asking -= 1
            self._release_unwanted(place, tenant)
            raise
        place.asking -= 1

    async def _lease(self, place: _Place, turn: Turn, tenant: TenantId) -> None:
        if self._leases is None or self._lessee is None:
            return
        if place.fence is not None:
            if place.executor_id == self._lessee.executor_id and time.monotonic() - place.since < QUANTUM_S:
                return
            fence, place.fence = place.fence, None
            if await self._give_up(tenant, fence):
                await asyncio.sleep(YIELD_S)
        while (taken := await self._take(turn, tenant)) is None:  # noqa: ASYNC110 - another process gives it up
            await asyncio.sleep(LOOK_S)
        place.fence, place.executor_id, place.since = taken, self._lessee.executor_id, time.monotonic()

    async def _take(self, turn: Turn, tenant: TenantId) -> Fence | None:
        """Try to take a lease; one that is taken for somebody who is cancelled meanwhile is given up again."""
        assert self._leases is not None and self._lessee is not None  # noqa: S101, PT018 - asked for only where there are
        taking = asyncio.ensure_future(self._leases.take(tenant, turn, self._lessee.executor_id))
        try:
            return await asyncio.shield(taking)
        except StoreUnavailable:
            await asyncio.sleep(RETRY_S)
            return None
        except asyncio.CancelledError:
            taking.add_done_callback(lambda done: self._unwanted(tenant, done))
            raise

    def _unwanted(self, tenant: TenantId, done: asyncio.Future[Fence | None]) -> None:
        if not done.cancelled() and done.exception() is None and (fence := done.result()) is not None:
            self._begin_giving_up(tenant, fence)

    def _release_unwanted(self, place: _Place, tenant: TenantId) -> None:
        """Give up a lease that nobody of this process waits for; nobody waits for that, either."""
        if place.fence is not None and not place.asking and not place.lock.locked():
            self._begin_giving_up(tenant, place.fence)
            place.fence = None

    def _begin_giving_up(self, tenant: TenantId, fence: Fence) -> None:
        # Should this process take the lease again before it is given up, the fence is another one, and nothing happens.
        task = asyncio.create_task(self._give_up(tenant, fence))
        self._giving_up.add(task)
        task.add_done_callback(self._giving_up.discard)

    async def _give_up(self, tenant: TenantId, fence: Fence) -> bool:
        """Give up a lease, however often that is to be tried; return whether another process asked for it."""
        while True:
            try:
                return self._leases is not None and await self._leases.give_up(tenant, fence)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_S)
