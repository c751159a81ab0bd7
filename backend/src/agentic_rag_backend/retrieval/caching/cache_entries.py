"""A cache that is bounded in bytes and shared fairly by tenants."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.telemetry.metrics import set_cache_bytes

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

    def forget(self, tenant: TenantId) -> None:
        """Drop all entries of a tenant."""
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
