"""Values that are read by id and kept while the state of their tenant lasts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.retrieval.caching.entries import State, TenantCache

V = TypeVar("V")


class ReadThrough(Generic[V]):
    """One kind of value in a cache that holds several.

    A value must depend on its id and on the state only, and not on the query that reads it.

    Args:
        cache: holds the values.
        kind: distinguishes the keys of this kind.
        size_of: memory of a value in bytes.
    """

    def __init__(self, cache: TenantCache[Any], kind: str, size_of: Callable[[V], int]) -> None:
        self._cache = cache
        self._kind = f"{kind}\0"
        self._size_of = size_of

    async def read(
        self, query: Query, state: State, ids: Sequence[str], load: Callable[[list[str]], Awaitable[Mapping[str, V]]]
    ) -> dict[str, V]:
        """Return the values of ``ids``. Those that are not kept come from ``load``, which may leave some out."""
        found = self._kept(query, state, ids)
        if missing := [id for id in ids if id not in found]:
            loaded = await load(missing)
            found |= loaded
            self._keep(query, state, loaded)
        return found

    def compute(self, query: Query, state: State, ids: Sequence[str], make: Callable[[str], V]) -> dict[str, V]:
        """Return the values of ``ids``. Those that are not kept come from ``make``."""
        found = self._kept(query, state, ids)
        made = {id: make(id) for id in ids if id not in found}
        self._keep(query, state, made)
        return found | made

    def _kept(self, query: Query, state: State, ids: Sequence[str]) -> dict[str, V]:
        if not (self._cache.enabled and query.cache):
            return {}
        values = ((id, self._cache.get(query.tenant_id, self._key(id), state=state)) for id in ids)
        return {id: value for id, value in values if value is not None}

    def _keep(self, query: Query, state: State, values: Mapping[str, V]) -> None:
        if self._cache.enabled and query.cache:
            for id, value in values.items():
                self._cache.put(query.tenant_id, self._key(id), value, self._size_of(value), state=state)

    def _key(self, id: str) -> bytes:
        return (self._kind + id).encode()
