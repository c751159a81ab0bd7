"""The filter grammar as JSON: ``{"author": "Mara Venn", "year": {"gte": 2019}, "or": [{…}, {…}], "not": {…}}``."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

from agentic_rag_backend.domain.filters import OPERATORS, RESERVED_FIELDS, And, Comparison, Filter, Not, Or, Scalar
from agentic_rag_backend.errors import InvalidRequest

MAX_DEPTH = 5
MAX_COMPARISONS = 50
MAX_OPTIONS = 100
MAX_TEXT = 512
MAX_INTEGER = 2**63 - 1
DEFAULTS: Mapping[str, Scalar] = {"confidence": 1.0}
"""Value that a comparison uses for a missing field if the filter has no default."""


def parse_filter(value: Mapping[str, Any] | None) -> Filter | None:
    """Return the parsed filter. None if ``value`` is empty.

    A field name is a metadata key (``author`` or ``metadata.author``) or one of document_id, key, title. ``{"field": value}``
    means ``eq``, a list means ``in``. An object holds operators, which must all hold, and optionally ``default``.

    Raises:
        InvalidRequest: an unknown operator, a reserved field, a value of a wrong type, or a limit is exceeded.
    """
    if value is None or (isinstance(value, Mapping) and not value):
        return None
    parsed = _parse(value, 1)
    count = _count(parsed)
    if count > MAX_COMPARISONS:
        raise InvalidRequest(f"filters may hold at most {MAX_COMPARISONS} comparisons; got {count}")
    return parsed


def _parse(value: Any, depth: int) -> Filter:
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"filters may be nested at most {MAX_DEPTH} deep")
    if not isinstance(value, Mapping) or not value:
        raise InvalidRequest(f"a filter must be an object with at least one field; got {_shown(value)}")
    parts: list[Filter] = []
    for name, operand in value.items():
        if name in {"and", "or"}:
            if not isinstance(operand, list) or not operand:
                raise InvalidRequest(f"'{name}' takes a list of filters; got {_shown(operand)}")
            inner = tuple(_parse(item, depth + 1) for item in operand)
            parts.append(And(inner) if name == "and" else Or(inner))
        elif name == "not":
            parts.append(Not(_parse(operand, depth + 1)))
        else:
            parts.extend(_field(_field_name(name), operand))
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _field_name(name: str) -> str:
    field = name.removeprefix("metadata.")
    if not field or len(field) > MAX_TEXT:
        raise InvalidRequest(f"a filter's field must have 1 to {MAX_TEXT} characters; got {len(field)}")
    if name == field and (field in RESERVED_FIELDS or field.startswith("_")):
        raise InvalidRequest(f"the field {field!r} cannot be filtered on")
    return field


def _field(name: str, operand: Any) -> list[Filter]:
    if not isinstance(operand, Mapping):
        operand = {"in" if isinstance(operand, list) else "eq": operand}
    default = _scalar(operand["default"]) if operand.get("default") is not None else DEFAULTS.get(name)
    comparisons: list[Filter] = []
    for operator, value in operand.items():
        if operator == "default":
            continue
        if operator not in OPERATORS:
            raise InvalidRequest(f"unknown filter operator {_shown(operator)}; known are {', '.join(OPERATORS)} and default")
        if operator in {"exists", "missing"}:
            if not isinstance(value, bool):
                raise InvalidRequest(f"{operator!r} takes true or false; got {_shown(value)}")
            chosen = operator if value else {"exists": "missing", "missing": "exists"}[operator]
            comparisons.append(Comparison(name, chosen))
        else:
            comparisons.append(Comparison(name, operator, _value(operator, value), default))
    if not comparisons:
        raise InvalidRequest(f"the field {name!r} has no operator; known are {', '.join(OPERATORS)}")
    return comparisons


def _value(operator: str, value: Any) -> Scalar | tuple[Scalar, ...]:
    if operator in {"in", "nin"}:
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_OPTIONS:
            size = len(value) if isinstance(value, list) else _shown(value)
            raise InvalidRequest(f"{operator!r} takes a list of 1 to {MAX_OPTIONS} values; got {size}")
        return tuple(_scalar(item) for item in value)
    scalar = _scalar(value)
    if operator == "contains" and not isinstance(scalar, str):
        raise InvalidRequest(f"'contains' takes text; got {_shown(value)}")
    return scalar


def _scalar(value: Any) -> Scalar:
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise InvalidRequest(f"a filter's text may have at most {MAX_TEXT} characters; got {len(value)}")
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER:
        raise InvalidRequest(f"a filter's whole number must be within ±{MAX_INTEGER}; got {_shown(value)}")
    if isinstance(value, bool) or (isinstance(value, (int, float)) and math.isfinite(value)):
        return value
    raise InvalidRequest(f"a filter's value must be text, a finite number, true or false; got {_shown(value)}")


def _count(parsed: Filter) -> int:
    if isinstance(parsed, Comparison):
        return 1
    if isinstance(parsed, Not):
        return _count(parsed.filter)
    return sum(_count(part) for part in parsed.filters)


def _shown(value: Any) -> str:
    # Not repr: a value may be nested deeper than Python's recursion limit.
    return reprlib.repr(value)[:80]
