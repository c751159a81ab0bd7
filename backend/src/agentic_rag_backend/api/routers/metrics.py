"""Figures for Prometheus, of an API process and a worker alike: who works, what waits, which store answers. No tenant's name."""

from __future__ import annotations

import contextlib
import ipaddress
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from agentic_rag_backend import __version__
from agentic_rag_backend.api.dependencies import Secret, Services, require_operator
from agentic_rag_backend.api.routers.health import stores_of
from agentic_rag_backend.errors import StoreUnavailable

router = APIRouter(tags=["health"])


async def _on_this_machine_or_operator(services: Services, secret: Secret) -> None:
    """Ask for the operator's key where other machines reach the address that is listened on."""
    host = services.settings.host
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        await require_operator(services, secret)


@router.get("/metrics", response_class=PlainTextResponse, summary="Figures in Prometheus's text format")
async def metrics(services: Services, _allowed: Annotated[None, Depends(_on_this_machine_or_operator)]) -> Response:
    """Return workers, jobs of all tenants by state, and stores; what the catalogue does not say now is left out."""
    registry = CollectorRegistry()  # of this answer alone: every figure is read when it is asked for
    release = Gauge(
        "agentic_rag_info", "The release of this process, and whether it runs jobs.", ["version", "runs_jobs"], registry=registry
    )
    release.labels(__version__, str(services.attendance.here).lower()).set(1)
    up = Gauge("agentic_rag_store_up", "Whether a store answers this process.", ["store"], registry=registry)
    for name, state in (await stores_of(services)).items():
        up.labels(name).set(state == "ok")
    with contextlib.suppress(StoreUnavailable):
        workers, open_jobs = await services.attendance.workers(), await services.attendance.open_jobs()
        Gauge("agentic_rag_workers", "Workers that are alive.", registry=registry).set(len(workers))
        jobs = Gauge("agentic_rag_jobs", "Jobs that have not ended, of all tenants.", ["state"], registry=registry)
        for state, count in open_jobs.items():
            jobs.labels(state).set(count)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
