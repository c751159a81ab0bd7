"""Experiments: two configurations compared on the requests of callers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from agentic_rag_backend.api.dependencies import Administrator, Reader, Services
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.experiment_views import ExperimentBody, ExperimentView

router = APIRouter(prefix="/evaluation/experiments", tags=["evaluation"], route_class=IdempotentRoute)


@router.post("", status_code=201, response_model=Envelope[ExperimentView], summary="Compare two configurations on requests")
async def start_experiment(request: Request, services: Services, caller: Administrator, body: ExperimentBody) -> dict[str, Any]:
    """Start an experiment. From now on, a hash of each question decides which configuration searches and answers it."""
    configurations = [configuration.to_values() for configuration in body.configurations]
    experiment = await services.experiments.start_experiment(
        caller, body.name, configurations, share=body.share, rule=body.stop.to_rule()
    )
    return wrap_data(request, ExperimentView.of(experiment))


@router.get("", response_model=ListEnvelope[ExperimentView], summary="List experiments, newest first")
async def list_experiments(
    request: Request, services: Services, caller: Reader, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """List the tenant's experiments without their figures."""
    page = await services.experiments.list_experiments(caller, limit=limit, cursor=cursor)
    return wrap_page(request, [ExperimentView.of(item) for item in page.items], page.next_cursor)


@router.get("/{experiment_id}", response_model=Envelope[ExperimentView], summary="Get an experiment with its figures")
async def get_experiment(request: Request, services: Services, caller: Reader, experiment_id: str) -> dict[str, Any]:
    """Return the figures until now. They may be read at any time: intervals and p hold at all looks together."""
    return wrap_data(request, ExperimentView.of_result(await services.experiments.get_experiment(caller, experiment_id)))


@router.post("/{experiment_id}/stop", response_model=Envelope[ExperimentView], summary="End an experiment")
async def stop_experiment(request: Request, services: Services, caller: Administrator, experiment_id: str) -> dict[str, Any]:
    """End an experiment. Requests are answered as before it, from the next one on. The figures stay."""
    return wrap_data(request, ExperimentView.of_result(await services.experiments.stop_experiment(caller, experiment_id)))


@router.delete("/{experiment_id}", status_code=204, summary="Delete an experiment")
async def delete_experiment(services: Services, caller: Administrator, experiment_id: str) -> Response:
    """Delete an experiment that has ended, with its outcomes."""
    await services.experiments.delete_experiment(caller, experiment_id)
    return Response(status_code=204)
