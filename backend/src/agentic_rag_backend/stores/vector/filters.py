"""Filters in the engine's words: exact for every operator, with no filtering after the search.

Equality, membership and presence are tags (`tags`) that the engine's index answers. It cannot compare strings by order nor
find case-folded substrings; those comparisons are decided by `domain.filters.matches` itself on the distinct values of
the one field, and the tags of the values that pass select the points. That is exact, lists included, because each of
these operators holds for a list when it holds for one of its items. The values are read from the store at the first such
comparison in a tenant (10 µs a point, .2 s at 20,000) and kept in memory from then on (`vocabulary`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qdrant_edge import FieldCondition, MatchAny, MatchValue
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.filters import OPERATORS, And, Comparison, Filter, Not, Or, matches
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.tags import presence_tag, value_tag
from agentic_rag_backend.stores.vector.vocabulary import FieldValues

TAGS = "tags"
Condition = EngineFilter | bool
"""A constant, or a filter with at least one condition: an empty one would match every point."""


def translate(filter: Filter, values: Callable[[], FieldValues]) -> Condition:
    """Return the condition that selects exactly the points whose fields match ``filter``.

    Args:
        values: gives the distinct values of the tenant's fields; called only if the filter compares by order or substring.

    Raises:
        InvalidRequest: an operator that the grammar does not have.
    """
    if isinstance(filter, And):
        return _all(translate(part, values) for part in filter.filters)
    if isinstance(filter, Or):
        return _any(translate(part, values) for part in filter.filters)
    if isinstance(filter, Not):
        return _not(translate(filter.filter, values))
    return _comparison(filter, values)


def _comparison(comparison: Comparison, values: Callable[[], FieldValues]) -> Condition:
    operator = comparison.operator
    if operator not in OPERATORS:
        raise InvalidRequest(f"unknown filter operator {operator!r}; known are {', '.join(OPERATORS)}")
    present = _tagged([presence_tag(comparison.field)])
    if operator == "exists":
        return present
    if operator == "missing":
        return _not(present)
    if operator in ("eq", "in"):
        found = _equal(comparison)
    elif operator in ("ne", "nin"):
        found = _all((present, _not(_equal(comparison))))
    else:
        found = _passing(comparison, values())
    if comparison.default is not None and matches(comparison, {}):
        return _any((found, _not(present)))
    return found


def _equal(comparison: Comparison) -> Condition:
    value = comparison.value
    options = value if isinstance(value, tuple) else (value,)
    tags = (value_tag(comparison.field, option) for option in options)
    return _tagged([tag for tag in tags if tag is not None])


def _passing(comparison: Comparison, values: FieldValues) -> Condition:
    field = comparison.field
    return _tagged([tag for tag, value in values.get(field, {}).items() if matches(comparison, {field: value})])


def _tagged(tags: list[str]) -> Condition:
    if not tags:
        return False
    match = MatchValue(tags[0]) if len(tags) == 1 else MatchAny(tags)
    return EngineFilter(must=[FieldCondition(key=TAGS, match=match)])


def _all(conditions: Iterable[Condition]) -> Condition:
    parts = [condition for condition in conditions if condition is not True]
    if any(part is False for part in parts):
        return False
    return EngineFilter(must=[part for part in parts if not isinstance(part, bool)]) if parts else True


def _any(conditions: Iterable[Condition]) -> Condition:
    parts = [condition for condition in conditions if condition is not False]
    if any(part is True for part in parts):
        return True
    return EngineFilter(should=[part for part in parts if not isinstance(part, bool)]) if parts else False


def _not(condition: Condition) -> Condition:
    if isinstance(condition, bool):
        return not condition
    return EngineFilter(must_not=[condition])
