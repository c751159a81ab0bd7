"""Applies a reranker to the candidates of a strategy within its time limit, with the strategy's order as the fallback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.query import Hit, Query, Rerank, Retrieval, Trace
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ModelUnavailable, StoreUnavailable
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.rerank.base import Reranker, Reranking
from agentic_rag_backend.telemetry.logs import get_logger

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
