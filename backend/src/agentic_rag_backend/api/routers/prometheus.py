"""Prometheus metrics of API and worker processes: requests, model calls, jobs, workers and stores.

`telemetry.metrics` has the counters of the process. Metrics from the catalogue are read for each response. No label names a
tenant.
"""

from __future__ import annotations

import contextlib

from fastapi import APIRouter, Depends
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from agentic_rag_backend import __version__
from agentic_rag_backend.api.dependencies import Process, require_metrics_key
from agentic_rag_backend.api.routers.probes import stores_of
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.worker_status import WorkerStatus
from agentic_rag_backend.telemetry.metrics import REGISTRY

router = APIRouter(tags=["health"])


_EXAMPLE = 'agentic_rag_store_up{store="graph"} 1.0\nagentic_rag_jobs{state="queued"} 7.0\n'


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    dependencies=[Depends(require_metrics_key)],
    summary="Metrics in Prometheus's text format",
    responses={200: {"content": {"text/plain": {"example": _EXAMPLE}}}},
)
async def metrics(services: Process) -> Response:
    """Return metrics of requests, model calls, stores, workers and jobs. Without the catalogue, its metrics are absent."""
    registry = CollectorRegistry()  # for this response only: every value is read on request
    release = Gauge(
        "agentic_rag_info", "Release of this process, and whether it runs jobs.", ["version", "runs_jobs"], registry=registry
    )
    release.labels(__version__, str(services.worker_status.here).lower()).set(1)
    up = Gauge("agentic_rag_store_up", "Whether a store responds to this process.", ["store"], registry=registry)
    for name, state in (await stores_of(services)).items():
        up.labels(name).set(state == "ok")
    with contextlib.suppress(StoreUnavailable):
        await _add_jobs(services.worker_status, registry)
    return Response(generate_latest(registry) + generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)


async def _add_jobs(worker_status: WorkerStatus, registry: CollectorRegistry) -> None:
    workers, open_jobs, waited_s = (
        await worker_status.list_workers(),
        await worker_status.open_jobs(),
        await worker_status.queue_lag_s(),
    )
    Gauge("agentic_rag_workers", "Live workers.", registry=registry).set(len(workers))
    jobs = Gauge("agentic_rag_jobs", "Jobs of all tenants that have not ended.", ["state"], registry=registry)
    for state, count in open_jobs.items():
        jobs.labels(state).set(count)
    lag = Gauge(
        "agentic_rag_queue_lag_seconds",
        "Seconds that the oldest job of a queue has waited to start, over all tenants; 0 if none waits.",
        ["queue"],
        registry=registry,
    )
    for queue in QueueName:
        lag.labels(queue.value).set(waited_s.get(queue, 0.0))
