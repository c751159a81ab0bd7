"""Liveness and readiness for load balancers, without a key."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response

from agentic_rag_backend.api.dependencies import Process
from agentic_rag_backend.api.responses.error_responses import RETRY_AFTER_S
from agentic_rag_backend.api.schemas.status import Live, Ready
from agentic_rag_backend.application.status import model_states
from agentic_rag_backend.container import Container
from agentic_rag_backend.errors import AgenticRagError

router = APIRouter(prefix="/health", tags=["health"])
PING_TIMEOUT_S = 5.0
_DOWN = frozenset({"model_unavailable", "model_refused"})


@router.get("/live", response_model=Live, summary="Liveness of the process")
async def live() -> dict[str, str]:
    """Return immediately."""
    return {"status": "ok"}


@router.get(
    "/ready",
    response_model=Ready,
    response_model_exclude_unset=True,
    summary="Readiness of the stores and the embedder",
    responses={503: {"model": Ready, "description": "a store or the embedder does not respond; see `stores` and `models`"}},
)
async def ready(response: Response, services: Process) -> dict[str, Any]:
    """Ping every store. 503 if one does not respond within 5 s, or if the embedder is unavailable.

    If the language model is unavailable, the status is `degraded`: searches work, and answers are extractive.
    """
    states, models = await asyncio.gather(stores_of(services), model_states(services))
    ok = all(state == "ok" for state in states.values()) and models["embedder"] not in _DOWN
    word = "unavailable" if not ok else "ok" if set(models.values()) == {"ok"} else "degraded"
    if not ok:
        response.status_code = 503
        response.headers["Retry-After"] = str(RETRY_AFTER_S[HTTPStatus.SERVICE_UNAVAILABLE])
    readiness: dict[str, Any] = {"status": word, "stores": states, "models": models, "workers": await _workers(services)}
    # True as well if the embedder of the vectors still responds: the configured one needs `agentic-rag reindex`.
    return readiness if services.reindex_due is None else {**readiness, "reindex_required": True}


async def _workers(services: Process) -> int | None:
    """Return the number of live workers; None if it is unknown. A server serves requests without workers."""
    try:
        async with asyncio.timeout(PING_TIMEOUT_S):
            return len(await services.worker_status.list_workers())
    except (TimeoutError, AgenticRagError):
        return None


async def stores_of(services: Container) -> dict[str, str]:
    """Return the state of each store and of the job queue: ``ok`` or the problem."""
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
