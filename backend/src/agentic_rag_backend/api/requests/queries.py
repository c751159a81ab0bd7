"""Shared steps of routes that retrieve: the query of a body, and the ``meta`` of a result."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from agentic_rag_backend.api.middleware import shorten_timeout
from agentic_rag_backend.api.schemas.questions import DualLevelBody, RankedSearch
from agentic_rag_backend.api.schemas.search import rounded
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.retrieval.building import BuiltQuery


async def accept(request: Request, services: Container, caller: Principal, body: RankedSearch | DualLevelBody) -> BuiltQuery:
    """Return the query of a body, and apply the body's ``timeout_ms`` to the request."""
    if body.timeout_ms is not None:
        shorten_timeout(request.scope, body.timeout_ms)
    return await services.queries.build(body.request(), caller)


def trace_meta(found: Retrieval) -> dict[str, Any]:
    """Return the summary of a retrieval in ``meta``. All else about it is in ``data.trace`` only."""
    trace = found.trace
    return {
        "strategy": trace.strategy,
        "methods_used": list(trace.methods_used),
        "fusion": trace.fusion,
        "fallback_used": trace.fallback_used,
        "fallback_reason": trace.fallback_reason,
        "processing_time_ms": rounded(trace.processing_time_ms),
        "warnings": list(trace.warnings),
    }
