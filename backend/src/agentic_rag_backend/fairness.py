"""Fair sharing of N places between tenants: a tenant has at most k places, and waiting tenants are served in rotation.

Resources that several tenants compete for take their places here: threads from a `FairThreadPool`, model requests from
`FairSlots`. Both read the acting tenant from the context. A request's authentication and a job's start set it with `act_for`;
tasks and threads started from there inherit it.

`jobs.base` describes the order in which the jobs of tenants start.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from agentic_rag_backend.domain.prices import PriceTable
from agentic_rag_backend.domain.quota import CallerLimits
from agentic_rag_backend.domain.tenant import TenantId, is_operator_key
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.telemetry.usage_ledger import UsageLedger

if TYPE_CHECKING:  # its module loads the metrics, which a command that only prints help does not need
    from agentic_rag_backend.telemetry.metrics import ModelCall

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class QuotaWait:
    """Whether a job waits for a quota. ``until`` None: it does not wait."""

    until: datetime | None = None
    reason: str = ""
    is_still_full: Callable[[], Awaitable[bool]] | None = None
    """Reads anew whether it still has to wait."""


AdmitCall = Callable[["Actor"], Awaitable[None]]
"""Returns if an actor may call a model now. For a job, it waits until the job may. For a request, it raises `QuotaExceeded`."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The tenant for whom work is done. ``tenant`` None: the operator, or no tenant in particular."""

    tenant: TenantId | None = None
    job: bool = False
    """True if a job does the work, so that no request waits for it."""
    ends_at: float | None = None
    """Time on the loop's clock until which a request waits for models. None: no such limit is known."""
    key_id: str | None = None
    """Key of the request that began the work. None: no request did."""
    ledger: UsageLedger | None = None
    """Counts what the work costs. None: nobody counts it."""
    limits: CallerLimits | None = None
    """Limits of the tenant and the key. None: there are none."""
    admit_call: AdmitCall | None = None
    """Limits calls of models. None: they are not limited."""
    quota_wait: QuotaWait | None = None
    """Shared by everything that a job does. None: it is no job."""

    @property
    def effective_limits(self) -> CallerLimits | None:
        """The limits, unless an operator began the work."""
        return None if self.limits is None or is_operator_key(self.key_id) else self.limits

    async def admit_model_call(self) -> None:
        """Return if a model may be called now. See `AdmitCall`."""
        if self.admit_call is not None and self.tenant is not None and not is_operator_key(self.key_id):
            await self.admit_call(self)

    def charge_call(self, call: ModelCall) -> Usage:
        """Record a model call that has ended, and return it with its cost."""
        if self.ledger is None or self.tenant is None:
            return Usage(unpriced_calls=1)
        return self.ledger.record_call(self.tenant, self.key_id, call, job=self.job)

    @property
    def prices(self) -> PriceTable:
        """The prices of models; none are known if nobody counts."""
        return PriceTable() if self.ledger is None else self.ledger.prices

    def estimate_cost(self, model: str, usage: Usage) -> float | None:
        """Return the cost of calls of one model that would be made. None: its price is unknown."""
        return self.prices.price_usage(model, usage).cost


_NOBODY = Actor()
_ACTOR: ContextVar[Actor] = ContextVar("actor", default=_NOBODY)


def act_for(tenant: TenantId, *, job: bool = False, ends_at: float | None = None) -> Actor:
    """Set the tenant for whom the current task, and everything it starts, works from now on. See `Actor`."""
    actor = Actor(tenant, job, ends_at, quota_wait=QuotaWait() if job else None)
    _ACTOR.set(actor)
    return actor


def limit_actor(limits: CallerLimits | None, admit_call: AdmitCall | None) -> None:
    """Set the limits of the current task and everything it starts."""
    _ACTOR.set(replace(current_actor(), limits=limits, admit_call=admit_call))


def charge_to(key_id: str | None, ledger: UsageLedger | None = None) -> None:
    """Set the key that the current task, and everything it starts, works for. None as ``ledger`` keeps the current one."""
    actor = current_actor()
    _ACTOR.set(replace(actor, key_id=key_id, ledger=ledger or actor.ledger))


def current_actor() -> Actor:
    """Return the actor of the current task or thread."""
    return _ACTOR.get()


def share_of(places: int) -> int:
    """Return the maximum of ``places`` for one tenant: three quarters, rounded up."""
    return places - places // 4


class Rotation(Generic[T]):
    """Waiting items by tenant: first in, first out within a tenant, and one item of each tenant in turn.

    A tenant with ``of_tenant`` running items is skipped. Items without a tenant have no such limit. Not thread-safe.

    Args:
        running: running items by tenant, if several rotations count them together.
    """

    def __init__(self, of_tenant: int, running: Counter[TenantId | None] | None = None) -> None:
        self._of_tenant = of_tenant
        self._waiting: OrderedDict[TenantId | None, deque[T]] = OrderedDict()
        self._running: Counter[TenantId | None] = Counter() if running is None else running

    def add(self, tenant: TenantId | None, item: T) -> None:
        """Add a waiting item."""
        self._waiting.setdefault(tenant, deque()).append(item)

    def take(self) -> tuple[TenantId | None, T] | None:
        """Return the next item and count it as running until `done`. None if no item waits, or none may run."""
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
        """Record that an item of the tenant has ended."""
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]

    def drain(self) -> list[T]:
        """Remove and return all waiting items."""
        items = [item for waiting in self._waiting.values() for item in waiting]
        self._waiting.clear()
        return items


_Call = tuple["Future[Any]", Callable[[], Any]]


class FairThreadPool(ThreadPoolExecutor):
    """A thread pool that starts calls in rotation of their tenants.

    Args:
        threads: number of threads.
        name: prefix of the threads' names.
        of_tenant: limit of concurrent calls of one tenant; None: `share_of` the threads.
        initializer: called at the start of each thread.
    """

    def __init__(
        self, threads: int, name: str, *, of_tenant: int | None = None, initializer: Callable[[], object] | None = None
    ) -> None:
        super().__init__(threads, name, initializer)
        self._rotation: Rotation[_Call] = Rotation(share_of(threads) if of_tenant is None else of_tenant)
        self._lock = threading.Lock()
        self._passed_over = 0
        """Threads that found only calls of tenants at their limit."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn`` on a thread, for the tenant of the current context."""
        future: Future[T] = Future()
        with self._lock:
            self._rotation.add(current_actor().tenant, (future, partial(fn, *args, **kwargs)))
        try:
            super().submit(self._run_calls)  # one per waiting call; it takes any of them
        except BaseException:
            future.cancel()
            raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls. ``cancel_futures`` cancels waiting calls."""
        if cancel_futures:
            with self._lock:
                waiting = self._rotation.drain()
            for future, _ in waiting:
                future.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _run_calls(self) -> None:
        with self._lock:
            entry = self._rotation.take()
            self._passed_over += entry is None
        while entry is not None:
            tenant, (future, call) = entry
            _run_call(future, call)
            del future, call, entry  # a waiting thread keeps no objects alive
            with self._lock:
                self._rotation.done(tenant)
                entry = self._rotation.take() if self._passed_over else None
                self._passed_over -= entry is not None


def _run_call(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - the future passes it to the caller
        future.set_exception(error)
    else:
        future.set_result(result)


class FairSlots:
    """Places for coroutines, granted in rotation of their tenants. An instance belongs to one event loop.

    Args:
        places: limit of places taken at once.
        of_tenant: limit for one tenant; None: `share_of` the places.
    """

    def __init__(self, places: int, *, of_tenant: int | None = None) -> None:
        self._free = places
        self._rotation: Rotation[asyncio.Future[None]] = Rotation(share_of(places) if of_tenant is None else of_tenant)

    @contextlib.asynccontextmanager
    async def hold_slot(self, tenant: TenantId | None = None) -> AsyncIterator[None]:
        """Wait for a place for ``tenant`` (None: the tenant of the current context), and hold it."""
        tenant, slot_given = tenant or current_actor().tenant, asyncio.get_running_loop().create_future()
        self._rotation.add(tenant, slot_given)
        self._give_slots()
        try:
            await slot_given
            yield
        finally:
            if slot_given.done() and not slot_given.cancelled():
                self._rotation.done(tenant)
                self._free += 1
                self._give_slots()

    def _give_slots(self) -> None:
        while self._free and (entry := self._rotation.take()) is not None:
            tenant, slot_given = entry
            if slot_given.done():  # cancelled while it waited
                self._rotation.done(tenant)
                continue
            self._free -= 1
            slot_given.set_result(None)
