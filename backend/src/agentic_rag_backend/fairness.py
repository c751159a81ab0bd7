"""Fair shares: of N places that all tenants use, one tenant has at most k, and whoever waits is served in rotation.

Everything that requests and jobs of several tenants compete for takes its places from here: threads from a `FairThreadPool`,
requests to a model from `FairSlots`. Both read from the context who is acting, which a request's authentication and a job's
start note with `act_for`; tasks and threads that are started from there inherit it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from agentic_rag_backend.domain.tenant import TenantId

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Actor:
    """For whom something is done; ``tenant`` None: for the operator, or for nobody in particular."""

    tenant: TenantId | None = None
    job: bool = False
    """A job does it, so no request waits for it."""


_NOBODY = Actor()
_ACTOR: ContextVar[Actor] = ContextVar("actor", default=_NOBODY)


def act_for(tenant: TenantId, *, job: bool = False) -> None:
    """Note for whom the current task works from now on, and all that it starts."""
    _ACTOR.set(Actor(tenant, job))


def actor() -> Actor:
    """Return for whom the current task or thread works."""
    return _ACTOR.get()


def share_of(places: int) -> int:
    """Return how many of ``places`` one tenant has at most: three quarters of them, rounded up."""
    return places - places // 4


class Rotation(Generic[T]):
    """What waits, by tenant: first come, first served within a tenant, and one of each tenant in turn.

    A tenant that has ``of_tenant`` running is passed over. What is done for no tenant has no such bound. Not thread-safe.
    """

    def __init__(self, of_tenant: int) -> None:
        self._of_tenant = of_tenant
        self._waiting: OrderedDict[TenantId | None, deque[T]] = OrderedDict()
        self._running: Counter[TenantId | None] = Counter()

    def add(self, tenant: TenantId | None, item: T) -> None:
        """Let an item wait."""
        self._waiting.setdefault(tenant, deque()).append(item)

    def take(self) -> tuple[TenantId | None, T] | None:
        """Return the next item, which counts as running until `done`; None where none waits, or none may run."""
        for tenant, items in self._waiting.items():
            if tenant is None or self._running[tenant] < self._of_tenant:
                item = items.popleft()
                if items:
                    self._waiting.move_to_end(tenant)
                else:
                    del self._waiting[tenant]
                self._running[tenant] += 1
                return tenant, item
        return None

    def done(self, tenant: TenantId | None) -> None:
        """Note that an item of the tenant has ended."""
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]

    def drain(self) -> list[T]:
        """Return what waits, which then waits no longer."""
        items = [item for waiting in self._waiting.values() for item in waiting]
        self._waiting.clear()
        return items


_Call = tuple["Future[Any]", Callable[[], Any]]


class FairThreadPool(ThreadPoolExecutor):
    """A thread pool whose calls are begun in rotation of their tenants.

    Args:
        threads: of the pool.
        name: begins the threads' names.
        of_tenant: calls of one tenant that run at once; None: `share_of` the threads.
        initializer: called at the start of each thread.
    """

    def __init__(
        self, threads: int, name: str, *, of_tenant: int | None = None, initializer: Callable[[], object] | None = None
    ) -> None:
        super().__init__(threads, name, initializer)
        self._rotation: Rotation[_Call] = Rotation(share_of(threads) if of_tenant is None else of_tenant)
        self._lock = threading.Lock()
        self._passed_over = 0
        """Threads that came for a call while all that waited were of tenants with as many as they may have."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have ``fn`` called on a thread for the tenant that the caller acts for."""
        future: Future[T] = Future()
        with self._lock:
            self._rotation.add(actor().tenant, (future, partial(fn, *args, **kwargs)))
        try:
            super().submit(self._work)  # one for each call that waits, whichever it will find
        except BaseException:
            future.cancel()
            raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; ``cancel_futures``: cancel those that wait."""
        if cancel_futures:
            with self._lock:
                waiting = self._rotation.drain()
            for future, _ in waiting:
                future.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _work(self) -> None:
        with self._lock:
            taken = self._rotation.take()
            self._passed_over += taken is None
        while taken is not None:
            tenant, (future, call) = taken
            _run(future, call)
            del future, call, taken  # a thread that waits keeps nothing alive
            with self._lock:
                self._rotation.done(tenant)
                taken = self._rotation.take() if self._passed_over else None
                self._passed_over -= taken is not None


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - it is the caller's, who finds it in the future
        future.set_exception(error)
    else:
        future.set_result(result)


class FairSlots:
    """Places for coroutines, taken in rotation of their tenants. It belongs to one event loop.

    Args:
        places: taken at once.
        of_tenant: of those, by one tenant; None: `share_of` the places.
    """

    def __init__(self, places: int, *, of_tenant: int | None = None) -> None:
        self._free = places
        self._rotation: Rotation[asyncio.Future[None]] = Rotation(share_of(places) if of_tenant is None else of_tenant)

    @contextlib.asynccontextmanager
    async def taken(self, tenant: TenantId | None = None) -> AsyncIterator[None]:
        """Wait for a place for ``tenant``, or else for the one that the caller acts for, and hold it."""
        tenant, given = tenant or actor().tenant, asyncio.get_running_loop().create_future()
        self._rotation.add(tenant, given)
        self._give()
        try:
            await given
            yield
        finally:
            if given.done() and not given.cancelled():
                self._rotation.done(tenant)
                self._free += 1
                self._give()

    def _give(self) -> None:
        while self._free and (taken := self._rotation.take()) is not None:
            tenant, given = taken
            if given.done():  # cancelled while it waited
                self._rotation.done(tenant)
                continue
            self._free -= 1
            given.set_result(None)
