"""Tenants and their keys, for the operator, and a tenant's view of itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from agentic_rag_backend.api.dependencies import Operator, Process, Reader, Services
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute, shown_once
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.tenants import (
    DeletedTenant,
    KeyRotation,
    KeyView,
    NewKey,
    NewTenant,
    OwnTenantView,
    TenantPatch,
    TenantView,
)
from agentic_rag_backend.domain.tenant import KeyRequest, TenantId
from agentic_rag_backend.errors import InvalidScope, NotFound

_LABEL_PARAMETER: Mapping[str, Any] = {
    "name": "labels.NAME",
    "in": "query",
    "required": False,
    "schema": {"type": "string"},
    "description": "selects tenants whose label NAME has this value; may be given for several names",
}
router = APIRouter(tags=["tenants"], route_class=IdempotentRoute)


def read_tenant_id(tenant_id: str) -> TenantId:
    """Return the id in a path. `NotFound` if it is none."""
    try:
        return TenantId(tenant_id)
    except InvalidScope:
        raise NotFound("the tenant does not exist") from None


@router.get("/tenants/me", response_model=Envelope[OwnTenantView], summary="Get the tenant of this key")
async def get_own_tenant(request: Request, services: Services, caller: Reader) -> dict[str, Any]:
    """Return the caller's tenant, with the use of its limits and of the limits of the key."""
    return wrap_data(request, OwnTenantView.with_limits(caller.tenant, await services.admin.list_quota_uses(caller)))


@router.post("/tenants", status_code=201, response_model=Envelope[TenantView], dependencies=[Operator], summary="Create a tenant")
async def create_tenant(request: Request, services: Process, body: NewTenant) -> dict[str, Any]:
    """Create a tenant without keys."""
    return wrap_data(request, TenantView.of(await services.tenants.create(body.name)))


@router.get(
    "/tenants",
    response_model=ListEnvelope[TenantView],
    dependencies=[Operator],
    summary="List tenants",
    openapi_extra={"parameters": [_LABEL_PARAMETER]},
)
async def list_tenants(request: Request, services: Process, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """List tenants, newest first. `labels.NAME=VALUE` in the query string selects tenants with that label."""
    parameters = request.query_params.items()
    labels = {name.removeprefix("labels."): value for name, value in parameters if name.startswith("labels.")}
    page = await services.tenants.list(limit=limit, cursor=cursor, labels=labels)
    return wrap_page(request, [TenantView.of(tenant) for tenant in page.items], page.next_cursor)


@router.get("/tenants/{tenant_id}", response_model=Envelope[TenantView], dependencies=[Operator], summary="Get a tenant")
async def get_tenant(request: Request, services: Process, tenant_id: str) -> dict[str, Any]:
    """Return a tenant."""
    return wrap_data(request, TenantView.of(await services.tenants.get(read_tenant_id(tenant_id))))


@router.patch(
    "/tenants/{tenant_id}",
    response_model=Envelope[TenantView],
    dependencies=[Operator],
    summary="Rename, label or suspend a tenant",
)
async def change_tenant(request: Request, services: Process, tenant_id: str, body: TenantPatch) -> dict[str, Any]:
    """Change the fields that are given. A suspended tenant keeps its data; its keys are refused, and its jobs wait."""
    return wrap_data(request, TenantView.of(await services.tenants.change(read_tenant_id(tenant_id), body.to_change())))


@router.delete(
    "/tenants/{tenant_id}",
    response_model=Envelope[DeletedTenant],
    dependencies=[Operator],
    summary="Delete a tenant",
    responses={
        202: {
            "model": Envelope[DeletedTenant],
            "description": "the tenant's requests are refused; its data is still being removed",
        }
    },
)
async def delete_tenant(request: Request, response: Response, services: Process, tenant_id: str) -> dict[str, Any]:
    """Refuse the tenant's requests immediately and remove its data. The receipt counts the removed data.

    If the removal takes longer than 30 s, or a store fails, it continues in the background and the status is 202.
    """
    removal = await services.tenants.delete(read_tenant_id(tenant_id))
    if not removal.done:
        response.status_code = 202
    state: Literal["deleted", "deleting"] = "deleted" if removal.done else "deleting"
    return wrap_data(request, DeletedTenant(id=tenant_id, state=state, removed=dict(removal.counts)))


@router.post(
    "/tenants/{tenant_id}/keys",
    status_code=201,
    response_model=Envelope[KeyView],
    dependencies=[Operator],
    summary="Issue a key",
)
async def create_key(request: Request, services: Process, tenant_id: str, body: NewKey) -> dict[str, Any]:
    """Issue a key. Its secret is in this response only; a repetition with the same `Idempotency-Key` does not show it."""
    asked = KeyRequest(body.name, body.scopes, body.expires_at, body.filter)
    issued = await services.tenants.issue_key(read_tenant_id(tenant_id), asked)
    shown_once(request, f"this request issued key {issued.key.id}; its secret was shown once; revoke the key and issue another")
    return wrap_data(request, KeyView.of(issued.key, issued.secret))


@router.get(
    "/tenants/{tenant_id}/keys", response_model=ListEnvelope[KeyView], dependencies=[Operator], summary="List a tenant's keys"
)
async def list_keys(request: Request, services: Process, tenant_id: str) -> dict[str, Any]:
    """List keys, newest first, without secrets, including revoked keys."""
    return wrap_page(request, [KeyView.of(key) for key in await services.tenants.list_keys(read_tenant_id(tenant_id))], None)


@router.post(
    "/tenants/{tenant_id}/keys/{key_id}/rotate",
    status_code=201,
    response_model=Envelope[KeyView],
    dependencies=[Operator],
    summary="Rotate a key",
)
async def rotate_key(request: Request, services: Process, tenant_id: str, key_id: str, body: KeyRotation) -> dict[str, Any]:
    """Issue a key with the name, the scopes and the length of life of another, which ends after the overlap.

    The secret is in this response only.
    """
    overlap = timedelta(seconds=body.overlap_s)
    issued = await services.tenants.rotate_key(read_tenant_id(tenant_id), key_id, overlap=overlap)
    shown_once(request, f"this request issued key {issued.key.id}; its secret was shown once; rotate or revoke that key")
    return wrap_data(request, KeyView.of(issued.key, issued.secret))


@router.delete(
    "/tenants/{tenant_id}/keys/{key_id}", status_code=204, response_model=None, dependencies=[Operator], summary="Revoke a key"
)
async def revoke_key(services: Process, tenant_id: str, key_id: str) -> None:
    """Revoke a key. Every process refuses the next request with it, and ends its open streams within seconds."""
    await services.tenants.revoke_key(read_tenant_id(tenant_id), key_id)
