"""Filters as engine-independent conditions: exact for every operator, with no filtering after the search.

Equality, membership and presence are tags (`tags`) that an engine's index answers, and a set of chunks is a list of ids. An index
of tags cannot compare strings by order or find substrings. `domain.filters.matches_filter` decides those comparisons on the
distinct values of the one field, and the tags of the matching values select the points. The result is exact, also for lists: each
of these operators matches a list if it matches one item of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentic_rag_backend.domain.filters import (
    OPERATORS,
    TIME_OPERATORS,
    And,
    ChunkSet,
    Comparison,
    Filter,
    LinkCondition,
    Not,
    Or,
    list_leaves,
    matches_filter,
)
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.base import NodeKind
from agentic_rag_backend.stores.vector.tags import presence_tag, value_tag
from agentic_rag_backend.stores.vector.vocabulary import FieldValues

TAGS = "tags"
_BY_TAG = frozenset({"eq", "ne", "in", "nin", "exists", "missing"})


@dataclass(frozen=True, slots=True)
class Tagged:
    """Matches a point that has at least one of ``tags``; ``tags`` is never empty."""

    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identified:
    """Matches the points with one of ``ids``; ``ids`` is never empty."""

    ids: frozenset[str]


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


Condition = Tagged | Identified | All | Some | Without
Selection = Condition | bool
"""A constant, or a condition that is never empty: an engine takes an empty filter for every point."""


def select(filter: Filter, values: Callable[[], FieldValues], kind: NodeKind = NodeKind.CHUNK) -> Selection:
    """Return the condition that selects the points whose fields match ``filter``.

    It selects exactly these, except for a `ChunkSet` that is too large, and for points of another kind, which have other ids than
    the chunks. Both are ignored, so the condition then selects more points, never fewer.

    Args:
        values: gives the distinct values of the tenant's fields; called only if `reads_values`.
        kind: kind of the points.

    Raises:
        InvalidRequest: an operator that the grammar does not have.
    """
    return _select(filter, _Reading(values, kind), outcome=True)


def reads_values(filter: Filter) -> bool:
    """Return whether any part of ``filter`` compares by order or substring, which requires the distinct values."""
    return any(isinstance(leaf, Comparison) and leaf.operator not in _BY_TAG for leaf in list_leaves(filter))


@dataclass(frozen=True, slots=True)
class _Reading:
    values: Callable[[], FieldValues]
    kind: NodeKind


def _select(filter: Filter, reading: _Reading, *, outcome: bool) -> Selection:
    """Return the condition of a part. Below a negation, ``outcome`` is false: fewer points there are more in all."""
    if isinstance(filter, And):
        return _all(_select(part, reading, outcome=outcome) for part in filter.filters)
    if isinstance(filter, Or):
        return _some(_select(part, reading, outcome=outcome) for part in filter.filters)
    if isinstance(filter, Not):
        return _without(_select(filter.filter, reading, outcome=not outcome))
    if isinstance(filter, ChunkSet):
        if reading.kind is not NodeKind.CHUNK or not filter.stored:
            return outcome
        return Identified(filter.ids) if filter.ids else False
    if isinstance(filter, LinkCondition):
        raise ValueError(f"the comparison of {filter.field!r} is not resolved")
    return _comparison(filter, reading.values)


def _comparison(comparison: Comparison, values: Callable[[], FieldValues]) -> Selection:
    operator = comparison.operator
    if operator not in OPERATORS and operator not in TIME_OPERATORS:
        raise InvalidRequest(f"unknown filter operator {operator!r}; known are {', '.join(OPERATORS)}")
    present = _has_tag([presence_tag(comparison.field)])
    if operator == "exists":
        return present
    if operator == "missing":
        return _without(present)
    if operator in ("eq", "in"):
        selection = _equal(comparison)
    elif operator in ("ne", "nin"):
        selection = _all((present, _without(_equal(comparison))))
    else:
        selection = _keep_passing(comparison, values())
    if comparison.default is not None and matches_filter(comparison, {}):
        return _some((selection, _without(present)))
    return selection


def _equal(comparison: Comparison) -> Selection:
    value = comparison.value
    options = value if isinstance(value, tuple) else (value,)
    tags = (value_tag(comparison.field, option) for option in options)
    return _has_tag([tag for tag in tags if tag is not None])


def _keep_passing(comparison: Comparison, values: FieldValues) -> Selection:
    field = comparison.field
    return _has_tag([tag for tag, value in values.get(field, {}).items() if matches_filter(comparison, {field: value})])


def _has_tag(tags: list[str]) -> Selection:
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
