"""Cache of search results, in front of every strategy.

A key has the tenant, its ``state_version``, the strategy and every field of the query, so each change that can alter an answer
makes the older entries unreachable. Decision 46 lists the changes and who counts them.
"""

from __future__ import annotations

import hashlib
import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.caching import reuse
from agentic_rag_backend.retrieval.caching.cache_entries import State, TenantCache
from agentic_rag_backend.retrieval.caching.single_flight import SingleFlight
from agentic_rag_backend.telemetry.metrics import RESULTS_CACHE, count_cache_use


@dataclass(frozen=True, slots=True)
class _Found:
    """Results, and the version of each document that the search read.

    From ``valid_until`` on, a part of them is not valid any more.
    """

    retrieval: Retrieval
    seen: Mapping[str, int]
    valid_until: datetime | None


class ResultCache:
    """Results of complete searches, pickled: their size is known, and no reader can change them.

    Args:
        max_bytes: bound of all results together. 0: no results are kept or shared.
    """

    def __init__(self, max_bytes: int) -> None:
        self.entries = TenantCache[bytes](RESULTS_CACHE, max_bytes)
        self.flights = SingleFlight[_Found]()


class CachedRetriever:
    """Returns results from the cache if it has them, and otherwise those of ``retriever``, which several equal queries share."""

    def __init__(self, strategy: str, retriever: Retriever, cache: ResultCache) -> None:
        self._strategy = strategy
        self._retriever = retriever
        self._cache = cache

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`. ``trace.cache`` names the origin of results that were not searched for this query."""
        # A session changes with each of its searches.
        reusable = query.cache and query.embedding is None and query.session is None
        if not (reusable and self._cache.entries.enabled):
            return await self._retriever.retrieve(query)
        started = time.perf_counter()
        key, state = key_of(self._strategy, query), _state_of(query)
        cached = self._cache.entries.get(query.tenant_id, key, state=state)
        entry: _Found | None = pickle.loads(cached) if cached is not None else None  # noqa: S301 - written by this process
        if entry is not None and (entry.valid_until is None or query.moment < entry.valid_until):
            count_cache_use(RESULTS_CACHE, "hit")
            return _reuse_results(entry, query, "hit", started)
        result, joined = await self._cache.flights.run((query.tenant_id, key), lambda: self._search(query, key, state))
        count_cache_use(RESULTS_CACHE, "shared" if joined else "miss")
        return _reuse_results(result, query, "shared", started) if joined else result.retrieval

    async def _search(self, query: Query, key: bytes, state: State) -> _Found:
        permission = reuse.begin()
        retrieval = await self._retriever.retrieve(query)
        for fact in retrieval.facts:
            if fact.invalid_at is not None and fact.invalid_at > query.moment:
                query.seen.ends_at(fact.invalid_at)
        result = _Found(retrieval, query.seen.versions, query.seen.valid_until)
        if permission.allows(retrieval):
            pickled = pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL)
            self._cache.entries.put(query.tenant_id, key, pickled, len(pickled), state=state)
        return result


def key_of(strategy: str, query: Query) -> bytes:
    """Return the key of a query: a digest of the strategy and of all fields that `Query` shows in its ``repr``.

    The time of the request counts in minutes. A time that the request names counts exactly.
    """
    minute = query.asked_at.replace(second=0, microsecond=0)
    return hashlib.sha256(repr((strategy, replace(query, asked_at=minute))).encode("utf-8", "surrogatepass")).digest()


def _state_of(query: Query) -> State:
    # A tenant that is created again under the same id counts from the beginning.
    return (query.tenant.created_at, query.tenant.state_version)


def _reuse_results(result: _Found, query: Query, origin: Literal["hit", "shared"], started: float) -> Retrieval:
    """Return results of an earlier query. Reads that follow, such as those of an answer, agree with them on versions."""
    for document_id, version in result.seen.items():
        query.seen.agree_on_version(document_id, version)
    if result.valid_until is not None:
        query.seen.ends_at(result.valid_until)
    times = {"retrieval": (time.perf_counter() - started) * 1000}
    trace = replace(result.retrieval.trace, cache=origin, processing_time_ms=times)
    return replace(result.retrieval, usage=Usage(), trace=trace)
