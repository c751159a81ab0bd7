"""Tenants by name or id, as operators write them."""

from __future__ import annotations

from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.errors import InvalidScope, NotFound
from agentic_rag_backend.stores.catalogue.base import TenantDirectory

_SHOWN_CHARACTERS = 128


async def find_tenant(directory: TenantDirectory, name_or_id: str) -> Tenant:
    """Return the tenant with that id, else the tenant with that name. So no name hides the id of another tenant.

    Raises:
        NotFound: no tenant has this id or name.
    """
    try:
        return await directory.tenant(TenantId(name_or_id))
    except (InvalidScope, NotFound):
        tenant = await directory.tenant_by_name(name_or_id)
    if tenant is None:
        raise NotFound(f"tenant {name_or_id[:_SHOWN_CHARACTERS]!r} does not exist: no tenant has this name or id")
    return tenant
