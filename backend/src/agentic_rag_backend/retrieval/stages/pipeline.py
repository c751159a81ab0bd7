"""The stages that every search passes. Each one is a retriever that holds the next one; the strategy is the innermost.

A key has the tenant, its ``state_version``, the strategy and every field of the query, so each change that can alter an answer
makes the older entries unreachable. Decision 46 lists the changes and who counts them.
"""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from agentic_rag_backend.domain.query import Hit, Query, Rerank, Retrieval, Trace
from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import ModelUnavailable, StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entity_reader import BearerReader
from agentic_rag_backend.retrieval import caching
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.caching import SingleFlight, State, TenantCache
from agentic_rag_backend.retrieval.rerank.base import Reranker, Reranking
from agentic_rag_backend.retrieval.rerank.registry import RerankerRegistry
from agentic_rag_backend.retrieval.stages.correction import CorrectedRetriever, Corrector
from agentic_rag_backend.retrieval.stages.namesakes import NamesakeRetriever
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.metrics import RESULTS_CACHE, count_cache_use, observe_search
from agentic_rag_backend.telemetry.tracing import start_span


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
        begun = time.perf_counter()
        with start_span(f"search {self._strategy}", tenant=query.tenant_id.value, strategy=self._strategy) as span:
            retrieval = await self._retrieve_results(query)
            span.set(results=len(retrieval.hits), cache=retrieval.trace.cache, question=query.text)
        observe_search(self._strategy, time.perf_counter() - begun)
        return retrieval

    async def _retrieve_results(self, query: Query) -> Retrieval:
        # A session changes with each of its searches.
        reusable = query.cache and query.embedding is None and query.session is None
        if not (reusable and self._cache.entries.enabled):
            return await self._retriever.retrieve(query)
        started = time.perf_counter()
        key, state = key_of(self._strategy, query), (query.tenant.created_at, query.tenant.state_version)
        cached = self._cache.entries.get(query.tenant_id, key, state=state)
        entry: _Found | None = pickle.loads(cached) if cached is not None else None  # noqa: S301 - written by this process
        if entry is not None and (entry.valid_until is None or query.moment < entry.valid_until):
            count_cache_use(RESULTS_CACHE, "hit")
            return _reuse_results(entry, query, "hit", started)
        result, joined = await self._cache.flights.run((query.tenant_id, key), lambda: self._search(query, key, state))
        count_cache_use(RESULTS_CACHE, "shared" if joined else "miss")
        return _reuse_results(result, query, "shared", started) if joined else result.retrieval

    async def _search(self, query: Query, key: bytes, state: State) -> _Found:
        permission = caching.begin()
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


def _reuse_results(result: _Found, query: Query, origin: Literal["hit", "shared"], started: float) -> Retrieval:
    """Return results of an earlier query. Reads that follow, such as those of an answer, agree with them on versions."""
    for document_id, version in result.seen.items():
        query.seen.agree_on_version(document_id, version)
    if result.valid_until is not None:
        query.seen.ends_at(result.valid_until)
    times = {"retrieval": (time.perf_counter() - started) * 1000}
    trace = replace(result.retrieval.trace, cache=origin, processing_time_ms=times)
    return replace(result.retrieval, usage=Usage(), trace=trace)


CHUNKS_PER_PARENT = 4
"""Candidates for each result, if chunks of one parent are merged."""


class RankedRetriever:
    """Retriever that returns the best candidates of another one, at most ``query.limit`` chunks and ``query.high_limit`` themes.

    Args:
        candidates: finds the candidates.
        documents: reads the parents around small chunks. None: hits have none.
    """

    def __init__(self, candidates: Retriever, documents: DocumentCatalogue | None = None) -> None:
        self._candidates = candidates
        self._documents = documents

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`. The trace has the milliseconds of the whole ``retrieval``."""
        started = time.perf_counter()
        limit = query.limit if query.rerank is None else min(query.limit, query.rerank.top_n or query.limit)
        retrieval = await self._candidates.retrieve(query)
        hits = cut(retrieval.hits, limit=limit, min_score=query.min_score)
        if _has_merged_parents(retrieval.hits, hits, query, limit) and retrieval.usage.calls == 0:
            # More candidates give other parents. They are not looked for if a model would be paid again.
            retrieval = await self._candidates.retrieve(query.with_candidates(query.limit * CHUNKS_PER_PARENT))
            hits = cut(retrieval.hits, limit=limit, min_score=query.min_score)
        if self._documents is not None:
            hits = await with_parents(self._documents, query, hits)
        times = {**retrieval.trace.processing_time_ms, "retrieval": (time.perf_counter() - started) * 1000}
        trace = replace(retrieval.trace, processing_time_ms=times)
        if retrieval.hits and not hits:
            best = max(hit.score for hit in retrieval.hits)
            below = f"min_score {query.min_score:g} leaves no result; the best score is {best:.4f}"
            trace = replace(trace, warnings=(*trace.warnings, below))
        return replace(retrieval, hits=hits, themes=retrieval.themes[: query.high_limit], trace=trace)


def _has_merged_parents(candidates: Sequence[Hit], hits: Sequence[Hit], query: Query, limit: int) -> bool:
    """Return whether there are too few ``hits`` because several candidates are of one parent."""
    return len(hits) < min(sum(hit.score >= query.min_score for hit in candidates), limit)


def cut(candidates: Sequence[Hit], *, limit: int, min_score: float = 0.0) -> tuple[Hit, ...]:
    """Return the first ``limit`` candidates with a score of at least ``min_score``, in their order, one of each parent."""
    return merge_parents([hit for hit in candidates if hit.score >= min_score])[:limit]


def merge_parents(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, of several chunks of one parent only the first."""
    parents: set[str] = set()
    unique = []
    for hit in hits:
        parent = hit.visible.chunk.parent_id
        if parent is None or parent not in parents:
            unique.append(hit)
        if parent is not None:
            parents.add(parent)
    return tuple(unique)


async def with_parents(documents: DocumentCatalogue, query: Query, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with the parents around their chunks. Hits that have a passage already keep it."""
    small = [hit.id for hit in hits if hit.parent is None and hit.visible.chunk.parent_id is not None]
    if not small:
        return tuple(hits)
    # The id of a parent names its version, so that a parent of another version than the chunk's is not taken.
    parents = await documents.parents(query.tenant_id, small)
    return tuple(replace(hit, parent=hit.parent or parents.get(hit.visible.chunk.parent_id or "")) for hit in hits)


_log = get_logger(__name__)


class RerankedRetriever:
    """Retriever that returns the candidates of another one in the order of the reranker that the query names.

    Args:
        candidates: finds the candidates.
        rerankers: by name. None: no search is reranked.
    """

    def __init__(self, candidates: Retriever, rerankers: Callable[[str], Reranker] | None = None) -> None:
        self._candidates = candidates
        self._rerankers = rerankers

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`. A query without ``rerank`` keeps order and scores."""
        request = query.rerank
        if request is None or self._rerankers is None:
            return await self._candidates.retrieve(query)
        retrieval = await self._candidates.retrieve(query.with_candidates(request.candidates))
        return await rerank(self._rerankers(request.name), request, query, retrieval) if retrieval.hits else retrieval


async def rerank(reranker: Reranker, request: Rerank, query: Query, retrieval: Retrieval) -> Retrieval:
    """Return the retrieval with its hits in the reranker's order.

    If the reranker fails or exceeds its time, the hits keep their order and scores, and the trace has the failure. Its model
    calls are counted in both cases.
    """
    head = retrieval.hits[: request.candidates]
    account, started = UsageAccount(), time.perf_counter()
    failure: str | None = None
    try:
        with start_span(f"rerank {request.name}"):
            async with asyncio.timeout(request.timeout_s):
                reranking = await reranker.rerank(query, head, account)
        if time.perf_counter() - started > request.timeout_s:  # a reranker that computes without a pause cannot be interrupted
            failure = _describe_delay(request)
    except TimeoutError:
        failure = _describe_delay(request)
    except (ModelUnavailable, StoreUnavailable) as error:
        failure = f"reranking by {request.name} failed: {error.code}: {error.message}"
    times = {**retrieval.trace.processing_time_ms, "rerank": (time.perf_counter() - started) * 1000}
    usage = retrieval.usage + account.usage
    if failure is not None:
        _log.warning("rerank_failed", tenant_id=query.tenant_id.value, reranker=request.name, reason=failure)
        failures = (*retrieval.trace.failures, f"{failure}; the results have the order of the strategy")
        return replace(retrieval, usage=usage, trace=replace(retrieval.trace, failures=failures, processing_time_ms=times))
    hits = tuple(hit for hit in reorder_hits(retrieval.hits, reranking.scores) if hit.score >= request.min_score)
    return replace(retrieval, hits=hits, usage=usage, trace=_make_trace(retrieval, request, reranking, len(head), times))


def _describe_delay(request: Rerank) -> str:
    limit = "the request's timeout_ms" if request.own_timeout else "RERANK_TIMEOUT_S"
    return f"reranking by {request.name} took more than {request.timeout_s:g} s ({limit})"


def reorder_hits(candidates: Sequence[Hit], scores: Mapping[str, float]) -> tuple[Hit, ...]:
    """Return the candidates with new scores, best first. Equal scores keep the order of ``scores``.

    Candidates without a new score stay behind, in their order. They keep their own scores, lowered to the least new score.
    """
    by_id = {hit.id: hit for hit in candidates}
    order = sorted((id for id in scores if id in by_id), key=lambda id: -scores[id])
    least = min(scores.values(), default=1.0)
    ranked = [replace(by_id[id], score=scores[id], scores={**by_id[id].scores, "rerank": scores[id]}) for id in order]
    unranked = []
    for hit in candidates:
        if hit.id not in scores:
            least = min(least, hit.score)
            unranked.append(replace(hit, score=least))
    return (*ranked, *unranked)


def _make_trace(
    retrieval: Retrieval, request: Rerank, reranking: Reranking, candidate_count: int, times: Mapping[str, float]
) -> Trace:
    details = {**retrieval.trace.details, "rerank": {"name": request.name, "candidates": candidate_count, **reranking.details}}
    return replace(
        retrieval.trace,
        methods_used=(*retrieval.trace.methods_used, request.name),
        warnings=(*retrieval.trace.warnings, *reranking.warnings),
        processing_time_ms=times,
        details=details,
    )


Stage = Callable[[Retriever], Retriever]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """What the stages use. Without ``rerankers``, no search is reranked."""

    cache: ResultCache
    graphs: TenantGraphs
    bearers: BearerReader
    documents: DocumentCatalogue
    rerankers: RerankerRegistry | None
    corrector: Corrector

    def stages(self, strategy: str) -> tuple[Stage, ...]:
        """Return the stages of a strategy's searches, the outermost first."""
        return (
            lambda inner: CachedRetriever(strategy, inner, self.cache),  # an equal search was made before, or is being made
            lambda inner: NamesakeRetriever(inner, self.graphs, self.bearers),  # the bearers of a shared name
            lambda inner: RankedRetriever(inner, self.documents),  # least score, limit, parents
            lambda inner: RerankedRetriever(inner, self.rerankers.get if self.rerankers is not None else None),
            lambda inner: CorrectedRetriever(inner, self.corrector),  # other wordings, if too few results are relevant
        )

    def wrap_strategy(self, strategy: str, retriever: Retriever) -> Retriever:
        """Return a strategy behind all stages."""
        for stage in reversed(self.stages(strategy)):
            retriever = stage(retriever)
        return retriever
