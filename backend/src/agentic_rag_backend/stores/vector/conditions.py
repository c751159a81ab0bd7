"""Filters as engine-independent conditions on tags: exact for every operator, with no filtering after the search.

Equality, membership and presence are tags (`tags`) that an engine's index answers. An index of tags cannot compare strings by
order or find case-folded substrings. `domain.filters.matches` decides those comparisons on the distinct values of the one
field, and the tags of the matching values select the points. The result is exact, also for lists: each of these operators
matches a list if it matches one item of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentic_rag_backend.domain.filters import OPERATORS, TIME_OPERATORS, And, Comparison, Filter, Not, Or, matches
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.tags import presence_tag, value_tag
from agentic_rag_backend.stores.vector.vocabulary import FieldValues

TAGS = "tags"
_BY_TAG = frozenset({"eq", "ne", "in", "nin", "exists", "missing"})


@dataclass(frozen=True, slots=True)
class Tagged:
    """Matches a point that has at least one of ``tags``; ``tags`` is never empty."""

    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class All:
    """Holds if all parts hold. There is at least one part."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Holds if any part holds. There is at least one part."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """Holds if ``part`` does not hold."""

    part: Condition


Condition = Tagged | All | Some | Without
Selection = Condition | bool
"""A constant, or a condition that is never empty: an engine takes an empty filter for every point."""


def select(filter: Filter, values: Callable[[], FieldValues]) -> Selection:
    """Return the condition that selects exactly the points whose fields match ``filter``.

    Args:
        values: gives the distinct values of the tenant's fields; called only if `reads_values`.

    Raises:
        InvalidRequest: an operator that the grammar does not have.
    """
    if isinstance(filter, And):
        return _all(select(part, values) for part in filter.filters)
    if isinstance(filter, Or):
        return _some(select(part, values) for part in filter.filters)
    if isinstance(filter, Not):
        return _without(select(filter.filter, values))
    return _comparison(filter, values)


def reads_values(filter: Filter) -> bool:
    """Return whether any part of ``filter`` compares by order or substring, which requires the distinct values."""
    if isinstance(filter, And | Or):
        return any(reads_values(part) for part in filter.filters)
    if isinstance(filter, Not):
        return reads_values(filter.filter)
    return filter.operator not in _BY_TAG


def _comparison(comparison: Comparison, values: Callable[[], FieldValues]) -> Selection:
    operator = comparison.operator
    if operator not in OPERATORS and operator not in TIME_OPERATORS:
        raise InvalidRequest(f"unknown filter operator {operator!r}; known are {', '.join(OPERATORS)}")
    present = _tagged([presence_tag(comparison.field)])
    if operator == "exists":
        return present
    if operator == "missing":
        return _without(present)
    if operator in ("eq", "in"):
        found = _equal(comparison)
    elif operator in ("ne", "nin"):
        found = _all((present, _without(_equal(comparison))))
    else:
        found = _passing(comparison, values())
    if comparison.default is not None and matches(comparison, {}):
        return _some((found, _without(present)))
    return found


def _equal(comparison: Comparison) -> Selection:
    value = comparison.value
    options = value if isinstance(value, tuple) else (value,)
    tags = (value_tag(comparison.field, option) for option in options)
    return _tagged([tag for tag in tags if tag is not None])


def _passing(comparison: Comparison, values: FieldValues) -> Selection:
    field = comparison.field
    return _tagged([tag for tag, value in values.get(field, {}).items() if matches(comparison, {field: value})])


def _tagged(tags: list[str]) -> Selection:
    return Tagged(tuple(tags)) if tags else False


def _all(selections: Iterable[Selection]) -> Selection:
    parts = [selection for selection in selections if selection is not True]
    if any(part is False for part in parts):
        return False
    return All(tuple(part for part in parts if not isinstance(part, bool))) if parts else True


def _some(selections: Iterable[Selection]) -> Selection:
    parts = [selection for selection in selections if selection is not False]
    if any(part is True for part in parts):
        return True
    return Some(tuple(part for part in parts if not isinstance(part, bool))) if parts else False


def _without(selection: Selection) -> Selection:
    return not selection if isinstance(selection, bool) else Without(selection)
