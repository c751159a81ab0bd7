"""Figures for Prometheus, of an API process and a worker alike: who works, what waits, which store answers. No tenant's name."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import PlainTextResponse

from agentic_rag_backend import __version__
from agentic_rag_backend.api.dependencies import Secret, Services, require_operator
from agentic_rag_backend.api.routers.health import stores_of
from agentic_rag_backend.errors import StoreUnavailable

router = APIRouter(tags=["health"])
MEDIA_TYPE = "text/plain; version=0.0.4"


async def _on_this_machine_or_operator(services: Services, secret: Secret) -> None:
    """Ask for the operator's key where other machines reach the address that is listened on."""
    host = services.settings.host
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        await require_operator(services, secret)


@router.get("/metrics", response_class=PlainTextResponse, summary="Figures in Prometheus's text format")
async def metrics(services: Services, _allowed: Annotated[None, Depends(_on_this_machine_or_operator)]) -> PlainTextResponse:
    """Return workers, jobs of all tenants by state, and stores; what the catalogue does not say now is left out."""
    lines = [
        "# HELP agentic_rag_info The release of this process, and whether it runs jobs.",
        "# TYPE agentic_rag_info gauge",
        f'agentic_rag_info{{version="{__version__}",runs_jobs="{str(services.attendance.here).lower()}"}} 1',
        "# HELP agentic_rag_store_up Whether a store answers this process.",
        "# TYPE agentic_rag_store_up gauge",
        *(f'agentic_rag_store_up{{store="{name}"}} {int(state == "ok")}' for name, state in (await stores_of(services)).items()),
    ]
    try:
        workers, jobs = await services.attendance.workers(), await services.attendance.open_jobs()
    except StoreUnavailable:
        workers, jobs = (), {}
    else:
        lines += ["# HELP agentic_rag_workers Workers that are alive.", "# TYPE agentic_rag_workers gauge"]
        lines += [f"agentic_rag_workers {len(workers)}"]
        lines += ["# HELP agentic_rag_jobs Jobs that have not ended, of all tenants.", "# TYPE agentic_rag_jobs gauge"]
        lines += [f'agentic_rag_jobs{{state="{state}"}} {count}' for state, count in sorted(jobs.items())]
    return PlainTextResponse("\n".join([*lines, ""]), media_type=MEDIA_TYPE)
