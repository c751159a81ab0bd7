"""From bodies to queries: strategy, weights, filters and options, each refused where it is outside its limits."""

from __future__ import annotations

from typing import Any

from agentic_rag_backend.api.schemas.search import DualLevelBody, SearchBody, Weights, rounded
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.query import LevelWeights, Query, Retrieval
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.retrieval.dual_level import AUTO, choose_weights, preset_for
from agentic_rag_backend.retrieval.filters import parse_filter
from agentic_rag_backend.retrieval.registry import check_options
from agentic_rag_backend.tenancy.features import AUTO_WEIGHTS, DUAL_LEVEL, LOW_WEIGHT


def strategy_of(services: Container, body: SearchBody) -> str:
    """Return the canonical name of the strategy a body asks for, or the deployment's default."""
    return services.retrievers.canonical(body.strategy or services.settings.default_strategy)


def query_of(services: Container, caller: Principal, body: SearchBody, strategy: str) -> tuple[Query, tuple[str, ...]]:
    """Return the query, and warnings about what was adjusted."""
    check_options(strategy, body.options)
    weights, warnings = _weights(services, caller, body.query, body.weights or Weights(low=None, high=None, preset=None))
    settings = services.settings
    return (
        Query(
            tenant=caller.tenant,
            text=body.query,
            limit=body.limit,
            high_limit=settings.dual_level_high_limit,
            weights=weights,
            filters=parse_filter(body.filters),
            as_of=body.as_of,
            options=body.options,
            dual_level=services.features.enabled(DUAL_LEVEL, caller.flags),
        ),
        warnings,
    )


def dual_level_query(services: Container, caller: Principal, body: DualLevelBody) -> tuple[Query, tuple[str, ...]]:
    """Return the query of a dual-level search, and warnings about what was adjusted."""
    given = Weights(low=body.low_weight, high=body.high_weight, preset=body.preset)
    weights, warnings = _weights(services, caller, body.query, given)
    settings = services.settings
    return (
        Query(
            tenant=caller.tenant,
            text=body.query,
            limit=body.low_limit or settings.dual_level_low_limit,
            high_limit=body.high_limit or settings.dual_level_high_limit,
            weights=weights,
            dual_level=services.features.enabled(DUAL_LEVEL, caller.flags),
        ),
        warnings,
    )


def _weights(services: Container, caller: Principal, question: str, given: Weights) -> tuple[LevelWeights, tuple[str, ...]]:
    """Return the request's weights, else its preset's, else those of the question's form where that is on, else the tenant's."""
    features = services.features
    preset: str | None = given.preset
    if preset == AUTO or (preset is None and features.enabled(AUTO_WEIGHTS, caller.flags)):
        preset = preset_for(question)
    low = features.number(LOW_WEIGHT, caller.flags)
    usual = choose_weights(low, None)[0] if LOW_WEIGHT in caller.flags else default_weights(services)
    return choose_weights(given.low, given.high, preset=preset, default=usual)


def default_weights(services: Container) -> LevelWeights:
    """Return the deployment's weights, normalised."""
    settings = services.settings
    return choose_weights(settings.dual_level_low_weight, settings.dual_level_high_weight)[0]


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
