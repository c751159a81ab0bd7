"""Filters in the embedded engine's types; `conditions` defines their meaning.

Some comparisons need the distinct values of a field. The first such comparison in a tenant reads them from the store (10 µs a
point, .2 s at 20,000) and keeps them in memory (`vocabulary`). This is safe: no other process writes to an embedded store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from qdrant_edge import FieldCondition, HasIdCondition, MatchAny, MatchValue
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind
from agentic_rag_backend.stores.vector.conditions import TAGS, All, Condition, Identified, Some, Tagged, select
from agentic_rag_backend.stores.vector.points import point_id
from agentic_rag_backend.stores.vector.vocabulary import FieldValues


def match(field: str, value: str | int) -> FieldCondition:
    """Return the condition that ``field`` is, or holds, ``value``."""
    return FieldCondition(key=field, match=MatchValue(value))


def within(tenant: TenantId, *conditions: FieldCondition | HasIdCondition) -> EngineFilter:
    """Return the filter of every operation except searches: always the tenant, and the given conditions."""
    return EngineFilter(must=[match("tenant", tenant.value), *conditions])


def having_ids(tenant: TenantId, collection: Collection, ids: Iterable[str]) -> HasIdCondition:
    """Return the condition that a point is one of the tenant's ``ids``."""
    return HasIdCondition({point_id(tenant, collection, id) for id in ids})


@dataclass(frozen=True, slots=True)
class Translation:
    """Translates the filters of searches in one collection of a tenant. ``values`` are as in `conditions.select`."""

    tenant: TenantId
    collection: Collection
    values: Callable[[], FieldValues]

    def of(self, filter: Filter, kind: NodeKind = NodeKind.CHUNK) -> EngineFilter | bool:
        """Return `conditions.select` as a constant, or as a filter with at least one condition."""
        selection = select(filter, self.values, kind)
        return selection if isinstance(selection, bool) else self._engine_filter(selection)

    def _engine_filter(self, condition: Condition) -> EngineFilter:
        if isinstance(condition, Tagged):
            tags = list(condition.tags)
            match = MatchValue(tags[0]) if len(tags) == 1 else MatchAny(tags)
            return EngineFilter(must=[FieldCondition(key=TAGS, match=match)])
        if isinstance(condition, Identified):
            return EngineFilter(must=[having_ids(self.tenant, self.collection, condition.ids)])
        if isinstance(condition, All):
            return EngineFilter(must=[self._engine_filter(part) for part in condition.parts])
        if isinstance(condition, Some):
            return EngineFilter(should=[self._engine_filter(part) for part in condition.parts])
        return EngineFilter(must_not=[self._engine_filter(condition.part)])
