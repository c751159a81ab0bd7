"""Tenants by name or id, as operators write them."""

from __future__ import annotations

from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.errors import InvalidScope, NotFound
from agentic_rag_backend.stores.catalogue.base import TenantDirectory

_SHOWN_CHARACTERS = 128


async def find_tenant(directory: TenantDirectory, name_or_id: str) -> Tenant:
    """Return the tenant with that id or name.

    A text of the form of an id is never read as a name, so that no name stands for a deleted tenant.

    Raises:
        NotFound: no tenant has this id or name.
    """
    try:
        tenant_id = TenantId(name_or_id)
    except InvalidScope:
        tenant = await directory.tenant_by_name(name_or_id)
    else:
        return await directory.tenant(tenant_id)
    if tenant is None:
        raise NotFound(f"tenant {name_or_id[:_SHOWN_CHARACTERS]!r} does not exist: no tenant has this name or id")
    return tenant
