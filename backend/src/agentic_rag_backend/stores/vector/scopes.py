"""Whose a point is: the engine's ids, the keywords of what a search is over, and the filters that name the tenant."""

from __future__ import annotations

import uuid

from qdrant_edge import FieldCondition, HasIdCondition, MatchValue
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind

_NAMESPACE = uuid.UUID("9b0c7a3e-6a0f-5d0b-8a53-0f6f6f0e4c55")


def match(field: str, value: str | int) -> FieldCondition:
    """Return the condition that ``field`` is, or holds, ``value``."""
    return FieldCondition(key=field, match=MatchValue(value))


def within(tenant: TenantId, *conditions: FieldCondition | HasIdCondition) -> EngineFilter:
    """Return the filter of everything but searches: the tenant always, and whatever else."""
    return EngineFilter(must=[match("tenant", tenant.value), *conditions])


def scope_name(tenant: TenantId, kind: NodeKind, generation: int | None) -> str:
    """Name what a search is over: one keyword, since a conjunction of two costs the engine five times a single match."""
    return f"{tenant.value}/{kind.value}" if generation is None else f"{tenant.value}/{kind.value}/{generation}"


def point_id(tenant: TenantId, collection: Collection, id: str) -> str:
    """Return the engine's id of a point; equal ids of two tenants are two points."""
    return str(uuid.uuid5(_NAMESPACE, f"{tenant.value}/{collection}/{id}"))
