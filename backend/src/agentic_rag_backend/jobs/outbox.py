"""The relay: delivers what the catalogue's outbox says to the stores that it is for, in order, until it is there.

A request that wrote an entry delivers it itself and waits for that briefly, so that in quiet times an answer says that search
has the change. Whatever prevents it leaves the entry, which the process that does the housekeeping delivers: at its start, and
again and again with growing pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import structlog

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.jobs.base import JobQueue
from agentic_rag_backend.jobs.turns import Turn
from agentic_rag_backend.stores.catalogue.ports.outbox import Entry, Outbox, Topic

Counts = Mapping[str, int]
Handler = Callable[[TenantId, str], Awaitable[Counts | None]]
"""Brings another store up to date for a tenant and a subject; repeatable. Counts that it returns are added up."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
LOOK_S = 10.0
"""Seconds between two looks for entries that other processes could not deliver."""
_PAGE = 100
_IN_TURN = frozenset({Topic.LABELS, Topic.LEFTOVERS})
"""Topics that concern what commits write: delivered while none of the tenant's commits runs."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Delivery:
    """What became of a tenant's entries: ``done`` where none is left, and what the handlers counted."""

    done: bool = False
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))


class Relay:
    """Delivers entries.

    Args:
        flush: makes durable what handlers wrote; called before entries are removed.
    """

    def __init__(self, outbox: Outbox, queue: JobQueue, *, flush: Callable[[], Awaitable[None]]) -> None:
        self._outbox = outbox
        self._queue = queue
        self._flush = flush
        self._handlers: dict[Topic, Handler] = {}
        self._locks: WeakValueDictionary[TenantId, asyncio.Lock] = WeakValueDictionary()
        self._delivering: set[asyncio.Task[Delivery]] = set()
        self._left = asyncio.Event()

    def register(self, handlers: Mapping[Topic, Handler]) -> None:
        """Add what delivers the entries of some topics."""
        self._handlers |= handlers

    def wake(self) -> None:
        """Have `run` look for entries now."""
        self._left.set()

    async def deliver(self, tenant: TenantId, *, within_s: float) -> Delivery:
        """Deliver what is recorded for a tenant by now.

        Args:
            within_s: seconds after which the answer is that it is not done; the delivery goes on.
        """
        task = asyncio.create_task(self._deliver(tenant), name="outbox-delivery")
        self._delivering.add(task)
        task.add_done_callback(self._delivering.discard)
        ended, _ = await asyncio.wait({task}, timeout=within_s)
        delivery = task.result() if ended else Delivery()
        if not delivery.done:
            self._left.set()
        return delivery

    async def run(self, leads: Callable[[], Awaitable[bool]]) -> None:
        """Deliver what was left, in the process that ``leads``, again and again until cancelled."""
        failures = 0
        while True:
            self._left.clear()
            failures = 0 if await self._deliver_all(leads) else failures + 1
            if failures:
                await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 30)))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._left.wait()

    async def close(self) -> None:
        """Stop delivering; what is left is delivered by the next process."""
        for task in tuple(self._delivering):
            task.cancel()
        await asyncio.gather(*self._delivering, return_exceptions=True)

    async def _deliver_all(self, leads: Callable[[], Awaitable[bool]]) -> bool:
        """Deliver every tenant's entries; return whether nothing is left that this process is to deliver."""
        try:
            if not await leads():
                return True
            found = await self._outbox.tenants(limit=_PAGE)
        except AgenticRagError as error:
            _log.warning("outbox_not_read", code=error.code, reason=error.message)
            return False
        deliveries = [(await self._deliver(tenant)).done for tenant in found]
        return all(deliveries) and len(found) < _PAGE

    async def _deliver(self, tenant: TenantId) -> Delivery:
        delivery = Delivery()
        lock = self._locks.setdefault(tenant, asyncio.Lock())
        try:
            async with lock:
                while entries := await self._outbox.pending(tenant, limit=_PAGE):
                    if not await self._handle_all(tenant, entries, delivery):
                        return delivery
        except AgenticRagError as error:
            _log.warning("not_delivered", tenant=str(tenant), code=error.code, reason=error.message)
            return delivery
        delivery.done = True
        return delivery

    async def _handle_all(self, tenant: TenantId, entries: list[Entry], delivery: Delivery) -> bool:
        """Deliver some entries; return False where one could not be for a reason that trying again at once does not mend."""
        handled = [entry for entry in entries if await self._handled(tenant, entry, delivery)]
        if handled:
            await self._flush()
            await self._outbox.delivered(tenant, handled)
        return len(handled) == len(entries)

    async def _handled(self, tenant: TenantId, entry: Entry, delivery: Delivery) -> bool:
        handler = self._handlers.get(entry.topic)
        if handler is None:
            return False
        try:
            async with contextlib.AsyncExitStack() as held:
                if entry.topic in _IN_TURN:
                    await held.enter_async_context(self._queue.turn(Turn.COMMIT, tenant))
                counts = await handler(tenant, entry.subject)
        except AgenticRagError as error:
            about = {"topic": entry.topic.value, "subject": entry.subject, "tenant": str(tenant)}
            _log.warning("entry_not_delivered", **about, code=error.code, reason=error.message)
            return False
        for name, count in (counts or {}).items():
            delivery.counts[name] += count
        return True
