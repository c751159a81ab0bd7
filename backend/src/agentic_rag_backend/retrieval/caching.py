"""Caches of one process: values within bounded bytes that tenants share fairly, and equal work that is done once.

Most failures are in the trace. A part that leaves something out without a failure in the trace calls `forbid_reuse`. So does a
search that ends by the clock, because the next one may find more.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.telemetry.metrics import count_cache_use, set_cache_bytes

V = TypeVar("V")

ENTRY_BYTES = 400
"""Memory of an entry in addition to its value: key, places in dictionaries, and objects around them."""
LARGEST_SHARE = 0.25
"""Largest part of the cache that one entry may take."""

State = tuple[Any, ...]
"""The state of a tenant, which grows. Entries of an older state are never returned."""


@dataclass(slots=True)
class _Share(Generic[V]):
    """The entries of one tenant, all of one state, least recently used first."""

    state: State
    entries: OrderedDict[bytes, tuple[V, int]] = field(default_factory=OrderedDict)
    size_bytes: int = 0


class TenantCache(Generic[V]):
    """Values by tenant and key.

    If the cache is full, the tenant whose entries take most memory loses the least recently used one. So one tenant may use the
    whole cache while nobody else needs it, and it can never push out a tenant that holds less than it does.

    Args:
        name: label of the metrics.
        max_bytes: bound of all entries together. 0: nothing is kept.
    """

    def __init__(self, name: str, max_bytes: int) -> None:
        self.name = name
        self._max_bytes = max_bytes
        self._shares: dict[TenantId, _Share[V]] = {}
        self.size_bytes = 0

    @property
    def enabled(self) -> bool:
        """Whether it keeps anything."""
        return self._max_bytes > 0

    def get(self, tenant: TenantId, key: bytes, *, state: State = ()) -> V | None:
        """Return the value of a key in the tenant's ``state``. Entries of older states are dropped."""
        share = self._shares.get(tenant)
        if share is None:
            return None
        if share.state < state:
            self.forget(tenant)
        if share.state != state or key not in share.entries:
            return None
        share.entries.move_to_end(key)
        return share.entries[key][0]

    def put(self, tenant: TenantId, key: bytes, value: V, size_bytes: int, *, state: State = ()) -> None:
        """Keep a value. A value that is too large, or of an older state than the tenant's other entries, is not kept."""
        self.put_all(tenant, {key: (value, size_bytes)}, state=state)

    def put_all(self, tenant: TenantId, values: Mapping[bytes, tuple[V, int]], *, state: State = ()) -> None:
        """Keep several values with their sizes in bytes, as `put` does. Room is made once."""
        largest = self._max_bytes * LARGEST_SHARE
        entries = {key: (value, size + ENTRY_BYTES) for key, (value, size) in values.items() if size + ENTRY_BYTES <= largest}
        share = self._shares.get(tenant)
        if not entries or (share is not None and share.state > state):
            return
        if share is None or share.state < state:
            self.forget(tenant)
            share = self._shares[tenant] = _Share(state)
        for key, entry in entries.items():
            if key in share.entries:
                self._resize(share, -share.entries.pop(key)[1])
            share.entries[key] = entry
            self._resize(share, entry[1])
        self._make_room()
        set_cache_bytes(self.name, self.size_bytes)

    def forget_tenant(self, tenant: TenantId) -> None:
        """Drop all entries of a tenant, those of restricted keys included."""
        for scope in [scope for scope in self._shares if scope.value == tenant.value]:
            self.forget(scope)

    def forget(self, tenant: TenantId) -> None:
        """Drop all entries of a scope."""
        share = self._shares.pop(tenant, None)
        if share is not None:
            self.size_bytes -= share.size_bytes
            set_cache_bytes(self.name, self.size_bytes)

    def size_of(self, tenant: TenantId) -> int:
        """Return the bytes of a tenant's entries."""
        share = self._shares.get(tenant)
        return share.size_bytes if share is not None else 0

    def _make_room(self) -> None:
        while self.size_bytes > self._max_bytes:
            (tenant, share), *runner_up = heapq.nlargest(2, self._shares.items(), key=lambda item: item[1].size_bytes)
            # The tenants are compared again only when another one may hold the most.
            until = runner_up[0][1].size_bytes if runner_up else 0
            while share.entries and self.size_bytes > self._max_bytes:
                self._resize(share, -share.entries.popitem(last=False)[1][1])
                if share.size_bytes < until:
                    break
            if not share.entries:
                del self._shares[tenant]

    def _resize(self, share: _Share[V], by_bytes: int) -> None:
        share.size_bytes += by_bytes
        self.size_bytes += by_bytes


class ReadThrough(Generic[V]):
    """One kind of value in a cache that holds several.

    A value must depend on its id and on the state only, and not on the query that reads it.

    Args:
        cache: holds the values.
        kind: distinguishes the keys of this kind.
        size_of: memory of a value in bytes.
        counted: whether its reads count as uses of the cache. A read is a hit if it found all values.
    """

    def __init__(self, cache: TenantCache[Any], kind: str, size_of: Callable[[V], int], *, counted: bool = False) -> None:
        self._cache = cache
        self._kind = f"{kind}\0"
        self._size_of = size_of
        self._counted = counted

    async def read(
        self, query: Query, state: State, ids: Sequence[str], load: Callable[[list[str]], Awaitable[Mapping[str, V]]]
    ) -> dict[str, V]:
        """Return the values of ``ids``. ``load`` reads the missing ones, and may leave some out."""
        values = self._read_entries(query, state, ids)
        if missing_ids := [id for id in ids if id not in values]:
            loaded = await load(missing_ids)
            values |= loaded
            self._write_entries(query, state, loaded)
        return values

    def compute(self, query: Query, state: State, ids: Sequence[str], make: Callable[[str], V]) -> dict[str, V]:
        """Return the values of ``ids``. ``make`` computes the missing ones."""
        values = self._read_entries(query, state, ids)
        computed = {id: make(id) for id in ids if id not in values}
        self._write_entries(query, state, computed)
        return values | computed

    def _read_entries(self, query: Query, state: State, ids: Sequence[str]) -> dict[str, V]:
        if not (self._cache.enabled and query.cache):
            return {}
        values = ((id, self._cache.get(query.tenant_id, self._key_of(id), state=state)) for id in ids)
        entries = {id: value for id, value in values if value is not None}
        if self._counted and ids:
            count_cache_use(self._cache.name, "hit" if len(entries) == len(ids) else "miss")
        return entries

    def _write_entries(self, query: Query, state: State, values: Mapping[str, V]) -> None:
        if self._cache.enabled and query.cache:
            entries = {self._key_of(id): (value, self._size_of(value)) for id, value in values.items()}
            self._cache.put_all(query.tenant_id, entries, state=state)

    def _key_of(self, id: str) -> bytes:
        return (self._kind + id).encode()


class Reuse:
    """The permission for one search, which its tasks share."""

    def __init__(self) -> None:
        self.forbidden = False

    def allows(self, retrieval: Retrieval) -> bool:
        """Return whether the search was complete: nothing failed, and nothing was left out."""
        return not (self.forbidden or retrieval.trace.failures or retrieval.trace.hidden)


_CURRENT: ContextVar[Reuse | None] = ContextVar("reuse", default=None)


def begin() -> Reuse:
    """Return the permission for the search that begins in the current task."""
    reuse = Reuse()
    _CURRENT.set(reuse)
    return reuse


def forbid_reuse() -> None:
    """Let the results of the current search be used only once."""
    reuse = _CURRENT.get()
    if reuse is not None:
        reuse.forbidden = True


T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    """Running work, and the number of its callers."""

    task: asyncio.Task[T]
    callers: int = 0


class SingleFlight(Generic[T]):
    """Lets overlapping calls with equal keys share one run of the work. Nothing is kept afterwards.

    The work is a task of its own. A caller that is cancelled leaves it to the others, and the last caller cancels it. An error
    reaches every caller.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """Return the result of ``work``, and whether another caller had begun it."""
        flight = self._flights.get(key)
        joined = flight is not None
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(work()))
            flight.task.add_done_callback(lambda _: self._leave(key, flight))
        flight.callers += 1
        try:
            return await asyncio.shield(flight.task), joined
        finally:
            flight.callers -= 1
            if flight.callers == 0 and not flight.task.done():
                self._leave(key, flight)  # a new caller must not join work that is being cancelled
                flight.task.cancel()

    def _leave(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if flight.task.done() and not flight.task.cancelled():
            flight.task.exception()  # Retrieve the error, or asyncio logs it as never retrieved if all callers were cancelled.
