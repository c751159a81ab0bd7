"""The relay: delivers the entries of the catalogue's outbox to other stores, in order, with retries.

A request that writes an entry delivers it immediately and waits briefly, so that its response can usually confirm that
search has the change. If the delivery fails, the entry stays in the outbox. The process that does the housekeeping delivers
it later: at its start, and then repeatedly with growing pauses. Every process delivers the entries that filters depend on before
it serves, for at most a few seconds: a store that does not answer must not keep it from starting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import Outbox, OutboxEntry, Topic
from agentic_rag_backend.telemetry.logs import get_logger

Counts = Mapping[str, int]
Handler = Callable[[TenantId, str], Awaitable[Counts | None]]
"""Updates another store for a tenant and a subject. Idempotent. Returned counts are summed."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
POLL_INTERVAL_S = 10.0
"""Seconds between two checks for entries that other processes could not deliver."""
_PAGE = 100
_IN_TURN = frozenset({Topic.LABELS, Topic.LEFTOVERS, Topic.EDITS, Topic.NAMES, Topic.KNOWLEDGE})
"""Topics of data that commits write. They are delivered while no commit of the tenant runs."""

_log = get_logger(__name__)


@dataclass(slots=True)
class Delivery:
    """Result of a delivery: ``done`` if no entry is left, and the sums of the handlers' counts."""

    done: bool = False
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))


class Relay:
    """Delivers outbox entries.

    Args:
        flush: makes the handlers' writes durable; called before entries are removed.
    """

    def __init__(self, outbox: Outbox, queue: JobQueue, *, flush: Callable[[], Awaitable[None]]) -> None:
        self._outbox = outbox
        self._queue = queue
        self._flush = flush
        self._handlers: dict[Topic, Handler] = {}
        self._locks: WeakValueDictionary[TenantId, asyncio.Lock] = WeakValueDictionary()
        self._delivering: set[asyncio.Task[Delivery]] = set()
        self._left = asyncio.Event()

    def register_handlers(self, handlers: Mapping[Topic, Handler]) -> None:
        """Add handlers by topic."""
        self._handlers |= handlers

    def wake(self) -> None:
        """Make `run` check for entries immediately."""
        self._left.set()

    async def deliver(self, tenant: TenantId, *, within_s: float) -> Delivery:
        """Deliver all entries that are recorded for a tenant.

        Args:
            within_s: seconds to wait. After that, the result is not ``done``, and the delivery continues in the background.
        """
        task = asyncio.create_task(self._deliver_entries(tenant), name="outbox-delivery")
        self._delivering.add(task)
        task.add_done_callback(self._delivering.discard)
        finished_tasks, _ = await asyncio.wait({task}, timeout=within_s)
        delivery = task.result() if finished_tasks else Delivery()
        if not delivery.done:
            self._left.set()
        return delivery

    async def catch_up(self, topics: Sequence[Topic], *, within_s: float) -> bool:
        """Deliver the entries of ``topics`` of all tenants. Return whether none is left after ``within_s`` seconds at most."""
        is_complete, after = True, None
        try:
            async with asyncio.timeout(within_s):
                while tenants := await self._outbox.tenants(limit=_PAGE, topics=topics, after=after):
                    for tenant in tenants:
                        is_complete &= (await self._deliver_entries(tenant, topics)).done
                    after = tenants[-1]
        except (TimeoutError, AgenticRagError) as error:
            _log.warning("changes_not_caught_up", reason=str(error) or f"not done within {within_s:g} s")
            return False
        return is_complete

    async def run(self, leads: Callable[[], Awaitable[bool]]) -> None:
        """Deliver remaining entries until cancelled, in the process for which ``leads`` returns True."""
        failures = 0
        while True:
            self._left.clear()
            failures = 0 if await self._deliver_all(leads) else failures + 1
            if failures:
                await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 30)))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_INTERVAL_S):
                    await self._left.wait()

    async def close(self) -> None:
        """Stop delivering. The next process delivers the remaining entries."""
        for task in tuple(self._delivering):
            task.cancel()
        await asyncio.gather(*self._delivering, return_exceptions=True)

    async def _deliver_all(self, leads: Callable[[], Awaitable[bool]]) -> bool:
        """Deliver the entries of every tenant. Return whether this process has no entries left to deliver."""
        try:
            if not await leads():
                return True
            tenants = await self._outbox.tenants(limit=_PAGE)
        except AgenticRagError as error:
            _log.warning("outbox_not_read", code=error.code, reason=error.message)
            return False
        deliveries = [(await self._deliver_entries(tenant)).done for tenant in tenants]
        return all(deliveries) and len(tenants) < _PAGE

    async def _deliver_entries(self, tenant: TenantId, topics: Sequence[Topic] | None = None) -> Delivery:
        delivery = Delivery()
        lock = self._locks.setdefault(tenant, asyncio.Lock())
        try:
            async with lock:
                # Entries that fail stay first in line. The entries behind them are delivered nevertheless.
                failed: set[str] = set()
                while entries := await self._next_entries(tenant, failed, topics):
                    failed |= await self._handle_all(tenant, entries, delivery)
        except AgenticRagError as error:
            _log.warning("not_delivered", tenant=str(tenant), code=error.code, reason=error.message)
            return delivery
        delivery.done = not failed
        return delivery

    async def _next_entries(self, tenant: TenantId, failed: set[str], topics: Sequence[Topic] | None) -> list[OutboxEntry]:
        entries = await self._outbox.pending(tenant, limit=_PAGE + len(failed), topics=topics)
        return [entry for entry in entries if entry.token not in failed]

    async def _handle_all(self, tenant: TenantId, entries: list[OutboxEntry], delivery: Delivery) -> set[str]:
        """Deliver some entries. Return the tokens of those that failed; an immediate retry would fail again."""
        handled = [entry for entry in entries if await self._handle_entries(tenant, entry, delivery)]
        if handled:
            await self._flush()
            await self._outbox.delivered(tenant, handled)
        return {entry.token for entry in entries} - {entry.token for entry in handled}

    async def _handle_entries(self, tenant: TenantId, entry: OutboxEntry, delivery: Delivery) -> bool:
        handler = self._handlers.get(entry.topic)
        if handler is None:
            return False
        try:
            async with contextlib.AsyncExitStack() as stack:
                if entry.topic in _IN_TURN:
                    await stack.enter_async_context(self._queue.tenant_lock(TenantLock.COMMIT, tenant))
                counts = await handler(tenant, entry.subject)
        except AgenticRagError as error:
            _log.warning("entry_not_delivered", **_describe_entries(tenant, entry), code=error.code, reason=error.message)
            return False
        except Exception:  # noqa: BLE001
            # A fault that one entry causes must not keep the entries of other documents and tenants for ever.
            _log.exception("entry_not_delivered", **_describe_entries(tenant, entry))
            return False
        for name, count in (counts or {}).items():
            delivery.counts[name] += count
        return True


def _describe_entries(tenant: TenantId, entry: OutboxEntry) -> dict[str, str]:
    return {"topic": entry.topic.value, "subject": entry.subject, "tenant": str(tenant)}
