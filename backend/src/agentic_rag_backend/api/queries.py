"""From bodies to queries: strategy, weights, filters and options, each refused where it is outside its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from fastapi import Request

from agentic_rag_backend.api.middleware import shorten_timeout
from agentic_rag_backend.api.schemas.search import DualLevelBody, SearchBody, rounded
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.retrieval.queries.defaults import Wanted
from agentic_rag_backend.retrieval.queries.filters import parse_filter
from agentic_rag_backend.retrieval.registry import DUAL_LEVEL, check_options
from agentic_rag_backend.tenancy.features import DUAL_LEVEL as DUAL_LEVEL_FLAG


def limit_time(request: Request, body: SearchBody | DualLevelBody) -> None:
    """End the request at the time that its body names, if it does."""
    if body.timeout_ms is not None:
        shorten_timeout(request.scope, body.timeout_ms)


def strategy_of(services: Container, body: SearchBody) -> str:
    """Return the canonical name of the strategy a body asks for, or the deployment's default."""
    return services.retrievers.canonical(body.strategy or services.settings.default_strategy)


def query_of(services: Container, caller: Principal, body: SearchBody, strategy: str) -> tuple[Query, tuple[str, ...]]:
    """Return the query, and warnings about what was adjusted."""
    check_options(strategy, body.options)
    given = body.weights.model_dump() if body.weights is not None else {}
    return _query(
        services,
        caller,
        Question(
            text=body.query,
            filters=parse_filter(body.filters),
            as_of=body.as_of,
            options=body.options,
            timeout_ms=body.timeout_ms,
        ),
        Wanted(limit=body.limit, **given),
        strategy,
    )


def dual_level_query(services: Container, caller: Principal, body: DualLevelBody) -> tuple[Query, tuple[str, ...]]:
    """Return the query of a dual-level search, and warnings about what was adjusted."""
    wanted = Wanted(
        low_limit=body.low_limit,
        high_limit=body.high_limit,
        low=body.low_weight,
        high=body.high_weight,
        preset=body.preset,
    )
    return _query(services, caller, Question(text=body.query, timeout_ms=body.timeout_ms), wanted, DUAL_LEVEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a request asks, beside limits and weights."""

    text: str
    filters: Filter | None = None
    as_of: datetime | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    timeout_ms: int | None = None


def _query(
    services: Container, caller: Principal, question: Question, wanted: Wanted, strategy: str
) -> tuple[Query, tuple[str, ...]]:
    resolved = services.defaults.resolve(wanted, strategy=strategy, question=question.text, flags=caller.flags)
    query = Query(
        tenant=caller.tenant,
        text=question.text,
        limit=resolved.limit,
        high_limit=resolved.high_limit,
        weights=resolved.weights,
        leg_weights=resolved.leg_weights,
        filters=question.filters,
        as_of=question.as_of,
        options=question.options,
        timeout_s=None if question.timeout_ms is None else question.timeout_ms / 1000,
        dual_level=services.features.enabled(DUAL_LEVEL_FLAG, caller.flags),
    )
    return query, (*resolved.warnings, *_cut(services, question.text))


def _cut(services: Container, question: str) -> tuple[str, ...]:
    """Return a warning where the embedder reads only the beginning of a question."""
    read = services.embedder.query_characters(question)
    if read == len(question):
        return ()
    return (f"query has {len(question)} characters; only the first {read} were embedded, and all of it was searched as words",)


def with_warnings(found: Retrieval, warnings: tuple[str, ...]) -> Retrieval:
    """Return what was found with warnings about the request, which come first."""
    return replace(found, trace=replace(found.trace, warnings=(*warnings, *found.trace.warnings))) if warnings else found


def trace_meta(found: Retrieval, warnings: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the part of ``meta`` that says how the results came about."""
    trace = found.trace
    return {
        "strategy": trace.strategy,
        "methods_used": list(trace.methods_used),
        "fusion": trace.fusion,
        "fallback_used": trace.fallback_used,
        "fallback_reason": trace.fallback_reason,
        "processing_time_ms": rounded(trace.processing_time_ms),
        "warnings": [*warnings, *trace.warnings],
    }
