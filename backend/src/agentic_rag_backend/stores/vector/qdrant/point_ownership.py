"""Ownership of collections on a Qdrant server: each collection's metadata holds the deployment's id."""

from __future__ import annotations

from collections.abc import Collection as Some
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.ownership import Owner
from agentic_rag_backend.stores.vector.qdrant.server import QdrantServer, collections_of, metadata_of

_LISTED_TENANTS = 100_000
_WAY_OUT = (
    "Give this deployment a name of its own in DEPLOYMENT (then 'agentic-rag reindex' writes its vectors there), "
    "or, if the other one is gone for good, delete those collections and run 'agentic-rag reindex'"
)


async def claim(server: QdrantServer, prefix: str, owner: Owner) -> None:
    """Mark the collections under ``prefix`` that have no owner as the deployment's. Idempotent.

    Raises:
        ConfigurationError: they belong to another deployment, or come from an earlier release and hold no tenant of this
            catalogue.
        StoreUnavailable: the server does not answer.
    """
    unmarked: dict[str, dict[str, Any]] = {}
    for name in await collections_of(server, prefix):
        mark = await metadata_of(server, name)
        if not owner.owns(_read_owner(name), mark, way_out=_WAY_OUT):
            unmarked[name] = mark
    if not unmarked:
        return
    tenants = sorted({tenant for name in unmarked for tenant in await _list_tenants(server, name)})
    await owner.require_adoptable(_read_owner(*sorted(unmarked)), tenants, way_out=_WAY_OUT)
    for name, mark in unmarked.items():
        marked = {**mark, **owner.mark()}
        await server.call("marking a collection", server.client.update_collection, name, metadata=marked)
    # If two deployments adopt at once, the overwritten one fails here.
    await require_owner(server, unmarked, owner)


async def require_owner(server: QdrantServer, names: Some[str], owner: Owner) -> None:
    """Check that the collections belong to the deployment.

    Raises:
        ConfigurationError: a collection belongs to another deployment.
    """
    for name in sorted(names):
        owner.owns(_read_owner(name), await metadata_of(server, name), way_out=_WAY_OUT)


def _read_owner(*names: str) -> str:
    return f"the Qdrant {'collections' if len(names) > 1 else 'collection'} {', '.join(names)}"


async def _list_tenants(server: QdrantServer, name: str) -> list[TenantId]:
    answer = await server.call("listing tenants", server.client.facet, name, "tenant", limit=_LISTED_TENANTS, exact=True)
    return [TenantId(str(hit.value)) for hit in answer.hits if hit.count]
