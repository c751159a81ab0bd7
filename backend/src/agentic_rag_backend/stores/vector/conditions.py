"""Filters as engine-independent conditions: exact for every operator, with no filtering after the search.

Equality, membership and presence are tags that an engine's index answers, and a set of chunks is a list of ids. An index
of tags cannot compare strings by order or find substrings. `domain.filters.matches_filter` decides those comparisons on the
distinct values of the one field, and the tags of the matching values select the points. The result is exact, also for lists: each
of these operators matches a list if it matches one item of the list.

Filterable fields as tags: one exact keyword per (field, value), and one per field that is present.

Metadata has no schema, so its keys cannot each have an index; tags of all fields share one. A tag is the JSON text
``["field", value]`` (``["field"]`` for presence). This text keeps true, 1 and "true" apart, is the same for 1 and 1.0, as in
Python, and stays unambiguous if a key holds dots, quotes or control characters.

The distinct values of each tenant's fields, for range and substring comparisons.

It may hold values that no point has any more, because their tags select nothing. It must not miss an existing value. So it is
loaded completely from the store, and every write adds to it before the store is changed.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
    has_value,
    list_leaves,
    matches_filter,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.base import NodeKind


def presence_tag(field: str) -> str:
    """Return the tag of every point that has ``field``."""
    return json.dumps([field])


def value_tag(field: str, value: object) -> str | None:
    """Return the tag of ``value`` in ``field``. None for a value that equals nothing: NaN, an object, a nested list."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer():
            value = int(value)
    elif value is not None and not isinstance(value, (str, int)):
        return None
    return json.dumps([field, value])


def tags_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the tags of a point's fields. A list field has one tag per item; a missing or empty field has none.

    Raises:
        InvalidRequest: a value is not JSON.
    """
    tags: dict[str, None] = {}
    for field, value in fields.items():
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        if not has_value(value):
            continue
        if not isinstance(field, str):
            raise InvalidRequest(f"metadata keys are strings; got {field!r} of type {type(field).__name__}")
        tags[presence_tag(field)] = None
        for item in items:
            if item is not None and not isinstance(item, (str, int, float, list, tuple, dict)):
                raise InvalidRequest(f"metadata values are JSON; field {field!r} holds a {type(item).__name__}")
            tag = value_tag(field, item)
            if tag is not None:
                tags[tag] = None
    return list(tags)


def read_tag(tag: str) -> tuple[str, list[Any]]:
    """Return the field and the value of a tag. The value is in a list, which is empty for a presence tag."""
    field, *values = json.loads(tag)
    return field, values


_MAX_VALUES = 500_000
FieldValues = Mapping[str, Mapping[str, Any]]
"""Field → tag → value."""


class Vocabulary:
    """Values of one collection by tenant, loaded on first use.

    Args:
        max_values: maximum number of values over all tenants. Beyond it, the least recently used tenants are dropped.
    """

    def __init__(self, *, max_values: int = _MAX_VALUES) -> None:
        self._max_values = max_values
        self._tenants: OrderedDict[TenantId, dict[str, dict[str, Any]]] = OrderedDict()
        self._size = 0

    def values(self, tenant: TenantId, load: Callable[[], Iterable[str]]) -> FieldValues:
        """Return the tenant's values. If they are not in memory, ``load`` is called for the tags of all its points."""
        if tenant not in self._tenants:
            self._tenants[tenant] = {}
            self.add(tenant, load())
        self._tenants.move_to_end(tenant)
        fields = self._tenants[tenant]
        while self._size > self._max_values and len(self._tenants) > 1:
            self.forget(next(iter(self._tenants)))
        return fields

    def add(self, tenant: TenantId, tags: Iterable[str]) -> None:
        """Add the tags of points that are about to be written. No effect if the tenant is not in memory."""
        fields = self._tenants.get(tenant)
        if fields is None:
            return
        for tag in tags:
            field, values = read_tag(tag)
            values_of_field = fields.setdefault(field, {})
            if values and tag not in values_of_field:
                values_of_field[tag] = values[0]
                self._size += 1

    def forget(self, tenant: TenantId) -> None:
        """Drop the tenant's values."""
        fields = self._tenants.pop(tenant, {})
        self._size -= sum(len(values) for values in fields.values())


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
