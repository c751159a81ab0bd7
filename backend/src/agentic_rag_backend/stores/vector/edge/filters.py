"""Filters in the embedded engine's types; `conditions` defines their meaning.

Some comparisons need the distinct values of a field. The first such comparison in a tenant reads them from the store (10 µs a
point, .2 s at 20,000) and keeps them in memory (`vocabulary`). This is safe: no other process writes to an embedded store.
"""

from __future__ import annotations

from collections.abc import Callable

from qdrant_edge import FieldCondition, HasIdCondition, MatchAny, MatchValue
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.conditions import TAGS, All, Condition, Some, Tagged, select
from agentic_rag_backend.stores.vector.vocabulary import FieldValues


def match(field: str, value: str | int) -> FieldCondition:
    """Return the condition that ``field`` is, or holds, ``value``."""
    return FieldCondition(key=field, match=MatchValue(value))


def within(tenant: TenantId, *conditions: FieldCondition | HasIdCondition) -> EngineFilter:
    """Return the filter of every operation except searches: always the tenant, and the given conditions."""
    return EngineFilter(must=[match("tenant", tenant.value), *conditions])


def translate(filter: Filter, values: Callable[[], FieldValues]) -> EngineFilter | bool:
    """Return `conditions.select` as a constant, or as a filter with at least one condition."""
    selection = select(filter, values)
    return selection if isinstance(selection, bool) else _engine_filter(selection)


def _engine_filter(condition: Condition) -> EngineFilter:
    if isinstance(condition, Tagged):
        tags = list(condition.tags)
        found = MatchValue(tags[0]) if len(tags) == 1 else MatchAny(tags)
        return EngineFilter(must=[FieldCondition(key=TAGS, match=found)])
    if isinstance(condition, All):
        return EngineFilter(must=[_engine_filter(part) for part in condition.parts])
    if isinstance(condition, Some):
        return EngineFilter(should=[_engine_filter(part) for part in condition.parts])
    return EngineFilter(must_not=[_engine_filter(condition.part)])
