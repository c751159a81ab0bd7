"""Quotas of tenants and keys, for the operator."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from agentic_rag_backend.api.dependencies import Operator, Process
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.routers.tenants import read_tenant_id
from agentic_rag_backend.api.schemas.quota_views import KeyQuotaBody, QuotaBody, QuotaView
from agentic_rag_backend.api.schemas.tenants import KeyView

router = APIRouter(tags=["tenants"], route_class=JsonRoute)


@router.get(
    "/tenants/{tenant_id}/quota", response_model=Envelope[QuotaView], dependencies=[Operator], summary="Get a tenant's quota"
)
async def get_quota(request: Request, services: Process, tenant_id: str) -> dict[str, Any]:
    """Return the limits that were set for a tenant, and the use of all limits that apply."""
    tenant = await services.tenants.get(read_tenant_id(tenant_id))
    return wrap_data(request, QuotaView.of(tenant, await services.quotas.list_uses(tenant)))


@router.put(
    "/tenants/{tenant_id}/quota", response_model=Envelope[QuotaView], dependencies=[Operator], summary="Set a tenant's quota"
)
async def put_quota(request: Request, services: Process, tenant_id: str, body: QuotaBody) -> dict[str, Any]:
    """Replace the limits of a tenant. null: no limit. A limit that is left out has its default, `QUOTA_…`.

    Every process applies them from the next request on. Jobs that wait for a quota start again.
    """
    tenant = await services.quotas.set_tenant_quota(read_tenant_id(tenant_id), body.to_values())
    return wrap_data(request, QuotaView.of(tenant, await services.quotas.list_uses(tenant)))


@router.put(
    "/tenants/{tenant_id}/keys/{key_id}/quota",
    response_model=Envelope[KeyView],
    dependencies=[Operator],
    summary="Set a key's quota",
)
async def put_key_quota(request: Request, services: Process, tenant_id: str, key_id: str, body: KeyQuotaBody) -> dict[str, Any]:
    """Replace the limits of a key. It also has those of its tenant. Without limits in the body, it has no others."""
    tenant = read_tenant_id(tenant_id)
    await services.quotas.set_key_quota(tenant, key_id, body.to_values())
    key = next(key for key in await services.tenants.list_keys(tenant) if key.id == key_id)
    return wrap_data(request, KeyView.of(key))
