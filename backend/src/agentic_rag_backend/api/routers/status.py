"""Status, feature flags, strategies and rerankers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import RootModel, WithJsonSchema

from agentic_rag_backend.api.dependencies import Administrator, Reader, Services
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, ListEnvelope, wrap_data
from agentic_rag_backend.api.schemas.status import FlagView, RerankerView, StatusView, StrategyView
from agentic_rag_backend.tenancy.features import DUAL_LEVEL

router = APIRouter(tags=["status"], route_class=JsonRoute)


FlagSetting = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]})
]
"""A boolean, a share or null. `Features.check_changes` decides which values a flag takes."""


class FlagChanges(RootModel[dict[str, FlagSetting]]):
    """Flags to set; null restores the default."""

    model_config = {"json_schema_extra": {"examples": [{DUAL_LEVEL: True}]}}


@router.get("/status", response_model=Envelope[StatusView], summary="Version, stores, models, features, counts")
async def get_status(request: Request, services: Services, caller: Reader) -> dict[str, Any]:
    """Return the status of the server and of the caller's tenant."""
    return wrap_data(request, StatusView.model_validate(await services.admin.read_status(caller)))


@router.get("/features", response_model=ListEnvelope[FlagView], summary="Feature flags")
async def get_features(request: Request, services: Services, caller: Reader) -> dict[str, Any]:
    """Return each flag's effective value, default and source."""
    return wrap_data(request, [FlagView.of(flag) for flag in await services.admin.list_flags(caller)])


@router.patch("/features", response_model=ListEnvelope[FlagView], summary="Set features of this tenant")
async def patch_features(request: Request, services: Services, caller: Administrator, body: FlagChanges) -> dict[str, Any]:
    """Set flags. Every process applies them from the next request on."""
    return wrap_data(request, [FlagView.of(flag) for flag in await services.admin.set_flags(caller, body.root)])


@router.get("/strategies", response_model=ListEnvelope[StrategyView], summary="Retrieval strategies")
async def get_strategies(request: Request, services: Services, caller: Reader) -> dict[str, Any]:
    """List the strategies with their options and, if a strategy is unavailable, the reason."""
    rows = await services.admin.list_strategies(caller)
    return wrap_data(request, [StrategyView.model_validate(row) for row in rows])


@router.get("/rerankers", response_model=ListEnvelope[RerankerView], summary="Rerankers")
async def get_rerankers(request: Request, services: Services, caller: Reader) -> dict[str, Any]:
    """List the rerankers with their options and, if a reranker is unavailable, the reason. `rerank` of a search names one."""
    return wrap_data(request, [RerankerView.model_validate(row) for row in await services.admin.list_rerankers(caller)])
