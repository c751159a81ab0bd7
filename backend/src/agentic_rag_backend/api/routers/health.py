"""Liveness and readiness, for load balancers; no key, no tenant, no counts."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from agentic_rag_backend.api.dependencies import Services
from agentic_rag_backend.container import Container
from agentic_rag_backend.errors import AgenticRagError

router = APIRouter(prefix="/health", tags=["health"])
PING_TIMEOUT_S = 5.0


@router.get("/live", summary="The process answers")
async def live() -> dict[str, str]:
    """Return at once."""
    return {"status": "ok"}


@router.get("/ready", summary="Every store answers", responses={503: {"description": "a store does not; which, is named"}})
async def ready(response: Response, services: Services) -> dict[str, Any]:
    """Ask every store; 503 if one does not answer within 5 s."""
    states = await stores_of(services)
    ok = all(state == "ok" for state in states.values())
    response.status_code = 200 if ok else 503
    told: dict[str, Any] = {"status": "ok" if ok else "unavailable", "stores": states, "workers": await _workers(services)}
    # Also where the embedder that made the vectors still answers: the configured one waits for `agentic-rag reindex`.
    return told if services.reindex_due is None else {**told, "reindex_required": True}


async def _workers(services: Services) -> int | None:
    """Count the workers that are alive; None where nobody can tell. A server without any answers requests all the same."""
    try:
        async with asyncio.timeout(PING_TIMEOUT_S):
            return len(await services.attendance.workers())
    except (TimeoutError, AgenticRagError):
        return None


async def stores_of(services: Container) -> dict[str, str]:
    """Return ``ok``, or what is wrong, of each store and the job queue."""
    parts = {
        "catalogue": services.catalogue.ping,
        "graph": services.graph.ping,
        "vectors": services.vectors.ping,
        "blobs": services.blobs.ping,
        "jobs": services.queue.ping,
    }
    return dict(zip(parts, await asyncio.gather(*(_state(ping) for ping in parts.values())), strict=True))


async def _state(ping: Any) -> str:
    try:
        async with asyncio.timeout(PING_TIMEOUT_S):
            await ping()
    except TimeoutError:
        return f"no answer within {PING_TIMEOUT_S:g} s"
    except AgenticRagError as error:
        return error.code
    return "ok"
