"""The filter grammar as values. `matches_filter` defines its meaning, and every store adapter translates it.

An absent field makes any comparison false (also ``ne`` and ``nin``), except ``missing``. ``exists`` and ``missing`` test for
absence. ``default`` on a comparison replaces an absent field; ``confidence`` has the default 1.0.

Metadata belongs to documents. Entities and communities belong to single passages: a request compares them with a `LinkCondition`,
which is resolved to a `ChunkSet` before any store reads the filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any

from agentic_rag_backend.language.times import period_of

Scalar = str | int | float | bool
OPERATORS = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "prefix", "exists", "missing")
BEGUN_BY = "begun_by"
OVER_AFTER = "over_after"
TIME_OPERATORS = (BEGUN_BY, OVER_AFTER)
"""Operators of `valid_at`. Requests cannot use them. They compare the start or the end of a period with a timestamp."""
VALID_FROM = "valid_from"
VALID_TO = "valid_to"
DOCUMENT_FIELDS = ("document_id", "key", "title")
"""Fields that are not metadata. Every other field name is a metadata key."""
LINK_FIELDS = ("entity", "entity_type", "community")
"""Fields of single passages, which the knowledge graph answers."""
LINK_OPERATORS = ("eq", "ne", "in", "nin", "exists", "missing")
MAX_STORED_CHUNKS = 10_000
"""Chunks of a `ChunkSet` up to which stores select exactly its chunks. They ignore a larger set, and the reader applies it."""
RESERVED_FIELDS = frozenset({"tenant_id", "group_id", "visible", "version", "generation", "kind"})
"""Fields that requests cannot filter on."""


def filterable_fields(
    metadata: Mapping[str, Any], *, document_id: str | None, key: str | None, title: str | None
) -> dict[str, Any]:
    """Return the fields that a filter compares: the metadata and `DOCUMENT_FIELDS`. These override metadata of the same name."""
    return {**metadata, "document_id": document_id, "key": key, "title": title}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``field operator value``; ``value`` is a tuple for ``in`` and ``nin``, ignored for ``exists`` and ``missing``."""

    field: str
    operator: str
    value: Scalar | tuple[Scalar, ...] | None = None
    default: Scalar | None = None


@dataclass(frozen=True, slots=True)
class LinkCondition:
    """A comparison of one of `LINK_FIELDS`, as a list field of a passage. ``values`` is empty for ``exists`` and ``missing``."""

    field: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkSet:
    """Matches the passages ``ids``. ``link`` is the comparison that it answers, and ``unknown`` its values that do not exist."""

    ids: frozenset[str]
    link: LinkCondition
    unknown: tuple[str, ...] = ()

    @property
    def stored(self) -> bool:
        """Whether stores select its chunks; see `MAX_STORED_CHUNKS`."""
        return len(self.ids) <= MAX_STORED_CHUNKS


@dataclass(frozen=True, slots=True)
class And:
    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    filter: Filter


Filter = Comparison | LinkCondition | ChunkSet | And | Or | Not


def list_leaves(filter: Filter) -> Iterator[Comparison | LinkCondition | ChunkSet]:
    """Yield the comparisons of a filter, in order."""
    if isinstance(filter, And | Or):
        for part in filter.filters:
            yield from list_leaves(part)
    elif isinstance(filter, Not):
        yield from list_leaves(filter.filter)
    else:
        yield filter


def narrow_filter(filter: Filter | None, addition: Filter | None) -> Filter | None:
    """Return the conjunction of two filters. None selects everything."""
    if filter is None or addition is None:
        return addition if filter is None else filter
    return And((filter, addition))


def valid_at(moment: datetime) -> Filter:
    """Return the filter of documents that are valid at ``moment`` by their metadata, or have no validity.

    Valid from the beginning of ``valid_from`` to the end of ``valid_to``: "2019" lasts until the end of 2019. A value that is
    not a time is ignored.
    """
    at = moment.timestamp()
    has_begun = Or((Comparison(VALID_FROM, "missing"), Comparison(VALID_FROM, BEGUN_BY, at)))
    lasts = Or((Comparison(VALID_TO, "missing"), Comparison(VALID_TO, OVER_AFTER, at)))
    return And((has_begun, lasts))


def valid_until(metadata: Mapping[str, Any], moment: datetime) -> datetime | None:
    """Return the first end of validity after ``moment``, or None."""
    end_moment = metadata.get(VALID_TO)
    ends = (_read_period(item) for item in (end_moment if isinstance(end_moment, (list, tuple)) else [end_moment]))
    return min((end[1] for end in ends if end is not None and end[1] > moment), default=None)


def has_value(field_value: Any) -> bool:
    """Return whether a field has a value. An empty list has none, nor has a list of nulls."""
    return field_value is not None and not (isinstance(field_value, (list, tuple)) and all(item is None for item in field_value))


def _in_time(operator: str, field_value: Any, at: float) -> bool:
    period = _read_period(field_value)
    if period is None:
        return True
    return period[0].timestamp() <= at if operator == BEGUN_BY else at < period[1].timestamp()


def _read_period(field_value: Any) -> tuple[datetime, datetime] | None:
    return period_of(int(field_value) if isinstance(field_value, float) and field_value.is_integer() else field_value)


def _are_equal(value: Any, right: Any) -> bool:
    # True == 1 in Python; in metadata they are different values.
    return isinstance(value, bool) == isinstance(right, bool) and value == right


def _is_among(value: Any, options: Any) -> bool:
    # A text equals only itself, so that long lists of ids are searched without a call for each.
    return value in options if isinstance(value, str) else any(_are_equal(value, option) for option in options)


def _are_ordered(value: Any, right: Any) -> bool:
    number = (int, float)
    if isinstance(value, bool) or isinstance(right, bool):
        return False
    return (isinstance(value, number) and isinstance(right, number)) or (isinstance(value, str) and isinstance(right, str))


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}


def _compare_values(operator: str, field_value: Any, value: Any) -> bool:
    items = field_value if isinstance(field_value, (list, tuple)) else [field_value]
    if operator == "eq":
        return any(_are_equal(item, value) for item in items)
    if operator == "ne":
        return not any(_are_equal(item, value) for item in items)
    if operator == "in":
        return any(_is_among(item, value) for item in items)
    if operator == "nin":
        return not any(_is_among(item, value) for item in items)
    if operator == "contains":
        return any(isinstance(item, str) and isinstance(value, str) and value.casefold() in item.casefold() for item in items)
    if operator == "prefix":
        return any(isinstance(item, str) and isinstance(value, str) and item.startswith(value) for item in items)
    if operator in TIME_OPERATORS:
        return any(_in_time(operator, item, value) for item in items)
    holds = _ORDERS.get(operator)
    return holds is not None and any(_are_ordered(item, value) and holds(item, value) for item in items)


def matches_filter(filter: Filter, fields: Mapping[str, Any], chunk_id: str | None = None) -> bool:
    """Return whether ``fields`` (metadata and document fields) of a passage pass ``filter``. This defines the grammar.

    Raises:
        ValueError: the filter has a `LinkCondition`, which must be resolved first.
    """
    if isinstance(filter, And):
        return all(matches_filter(part, fields, chunk_id) for part in filter.filters)
    if isinstance(filter, Or):
        return any(matches_filter(part, fields, chunk_id) for part in filter.filters)
    if isinstance(filter, Not):
        return not matches_filter(filter.filter, fields, chunk_id)
    if isinstance(filter, ChunkSet):
        return chunk_id in filter.ids
    if isinstance(filter, LinkCondition):
        raise ValueError(f"the comparison of {filter.field!r} is not resolved")
    field_value = fields.get(filter.field)
    present = has_value(field_value)
    if filter.operator == "exists":
        return present
    if filter.operator == "missing":
        return not present
    if not present:
        if filter.default is None:
            return False
        field_value = filter.default
    return _compare_values(filter.operator, field_value, filter.value)
