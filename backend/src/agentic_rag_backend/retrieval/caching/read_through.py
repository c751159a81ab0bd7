"""Values that are read by id and kept while the state of their tenant lasts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.retrieval.caching.cache_entries import State, TenantCache
from agentic_rag_backend.telemetry.metrics import count_cache_use

V = TypeVar("V")


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
