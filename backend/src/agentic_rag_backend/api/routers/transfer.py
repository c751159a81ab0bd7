"""Export and import of a tenant as an archive, for the operator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from agentic_rag_backend.api.dependencies import Operator, Process, container_of
from agentic_rag_backend.api.middleware import lift_timeout
from agentic_rag_backend.api.requests.bodies import GuardedRoute, media_type_of, reads
from agentic_rag_backend.api.responses.attachments import content_disposition
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.tenants import ImportAccepted
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.size_limits import MAX_NAME_CHARACTERS
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, InvalidScope, NotFound, UnsupportedMediaType

router = APIRouter(tags=["tenants"], route_class=GuardedRoute)
MEDIA_TYPE = "application/gzip"
_BLOCK_BYTES = 256 * 1024
_BINARY = {"schema": {"type": "string", "format": "binary", "examples": ["acme.tar.gz"]}}


def _archive_limit(request: Request) -> int:
    return container_of(request).settings.max_import_mb * 1024 * 1024


@router.post(
    "/tenants/import",
    status_code=202,
    response_model=Envelope[ImportAccepted],
    dependencies=[Operator],
    summary="Import a tenant from an archive",
    openapi_extra={"requestBody": {"required": True, "content": {MEDIA_TYPE: _BINARY}}},
)
@reads(_archive_limit)
async def import_tenant(
    request: Request,
    services: Process,
    tenant: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MAX_NAME_CHARACTERS,
            description="name or id of an empty tenant to fill; a name that no tenant has creates it",
        ),
    ] = None,
    name: Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_CHARACTERS, description="name of the new tenant")] = None,
) -> dict[str, Any]:
    """Queue the import of the archive in the body. The data becomes visible when the import is complete.

    Without parameters, the import creates the archive's tenant under its own id and name; 409 if this deployment has its data.
    With `tenant`, it fills that empty tenant, or creates it, and the data gets new ids. With `name`, the created tenant has this
    name: under its own id or, if this deployment has the archive's tenant under another name, as a copy with new ids.
    """
    lift_timeout(request.scope)
    if media_type_of(request) != MEDIA_TYPE:
        raise UnsupportedMediaType(f"send {MEDIA_TYPE}; got {media_type_of(request)[:80] or 'no Content-Type'}")
    if tenant is not None and name is not None:
        raise InvalidRequest("give either tenant or name; got both")
    target = None if tenant is None else await _find_target(services, tenant)
    async with services.transfer.receive_archive(request.stream()) as archive:
        started = await services.transfer.begin_import(archive, target=target, name=name or tenant, copy=tenant is not None)
    accepted = ImportAccepted(tenant_id=started.tenant.id.value, job_id=started.job.id, state=started.job.state)
    return wrap_data(request, accepted)


@router.post(
    "/tenants/{tenant_id}/export",
    dependencies=[Operator],
    summary="Export a tenant",
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: _BINARY}, "description": "the archive"}},
)
async def export_tenant(request: Request, services: Process, tenant_id: str) -> StreamingResponse:
    """Return the tenant's data at one moment as an archive. It contains no keys and no secrets."""
    lift_timeout(request.scope)
    try:
        tenant = await services.tenants.get(TenantId(tenant_id))
    except InvalidScope:
        raise NotFound("the tenant does not exist") from None
    async with AsyncExitStack() as stack:
        path = await stack.enter_async_context(services.transfer.export_archive(tenant.id))
        headers = {
            "Content-Length": str((await anyio.Path(path).stat()).st_size),
            "Content-Disposition": content_disposition(f"{tenant.name}.tar.gz"),
        }
        resources = stack.pop_all()
    return StreamingResponse(
        _blocks(path, resources), media_type=MEDIA_TYPE, headers=headers, background=BackgroundTask(resources.aclose)
    )


async def _blocks(path: Path, resources: AsyncExitStack) -> AsyncIterator[bytes]:
    # Closed here as well: no background task runs after the caller disconnects.
    async with resources, await anyio.open_file(path, "rb") as file:
        while block := await file.read(_BLOCK_BYTES):
            yield block


async def _find_target(services: Container, name_or_id: str) -> TenantId | None:
    """Return the tenant to fill, or None if the import creates it. An id that no tenant has is a mistake, not a name."""
    try:
        return (await services.tenants.find(name_or_id)).id
    except NotFound:
        if name_or_id.startswith("t_"):
            raise
    return None
