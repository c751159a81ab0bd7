"""The filter grammar as JSON: ``{"author": "Mara Venn", "year": {"gte": 2019}, "or": [{…}, {…}], "not": {…}}``.

There are three kinds of fields: metadata and fields of the document; ``source`` and ``language``, which are metadata with rules
of their own (`_of_source`, `_of_language`); and `LINK_FIELDS` of single passages. ``metadata.NAME`` is always plain metadata.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from agentic_rag_backend.domain.filters import (
    LINK_FIELDS,
    LINK_OPERATORS,
    OPERATORS,
    RESERVED_FIELDS,
    And,
    Comparison,
    Filter,
    LinkCondition,
    Not,
    Or,
    Scalar,
    list_leaves,
)
from agentic_rag_backend.errors import InvalidRequest, in_field
from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.wording import format_value, shorten_line

MAX_DEPTH = 5
MAX_COMPARISONS = 50
MAX_OPTIONS = 100
MAX_TEXT = 512
MAX_INTEGER = 2**63 - 1
DEFAULTS: Mapping[str, Scalar] = {"confidence": 1.0, "language": ENGLISH}
"""Value that a comparison uses for a missing field if the filter has no default. Ingestion sets no language for English."""
_TEXT_OPERATORS = ("contains", "prefix")
_ORDERED_OPERATORS = ("gt", "gte", "lt", "lte")
MAX_SHOWN_NAME = 100
"""Characters of a field's name that a message repeats."""


def parse_filter(value: Mapping[str, Any] | None, *, of_documents: bool = False) -> Filter | None:
    """Return the parsed filter. None if ``value`` is empty.

    A field name is a metadata key (``author`` or ``metadata.author``), one of document_id, key, title, source and language, or
    one of `LINK_FIELDS`. ``{"field": value}`` means ``eq``, a list means ``in``. An object holds operators, which must all hold,
    and optionally ``default``.

    Args:
        of_documents: whether whole documents are selected, which have no `LINK_FIELDS`.

    Raises:
        InvalidRequest: an unknown operator, a reserved field, a value of a wrong type, or a limit is exceeded.
    """
    if value is None or (isinstance(value, Mapping) and not value):
        return None
    parser = _Written()
    parsed = parser.parse(value, 1)
    if parser.comparisons > MAX_COMPARISONS:
        raise InvalidRequest(f"filters may hold at most {MAX_COMPARISONS} comparisons; got {parser.comparisons}")
    if of_documents:
        for leaf in list_leaves(parsed):
            if isinstance(leaf, LinkCondition):
                raise InvalidRequest(
                    f"{leaf.field}: belongs to passages, so only searches and answers filter by it; "
                    f"to filter documents by a metadata key of this name, write 'metadata.{leaf.field}'",
                    field=leaf.field,
                )
    return parsed


class _Written:
    """Parses one filter and counts its comparisons as they are written."""

    def __init__(self) -> None:
        self.comparisons = 0

    def parse(self, value: Any, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise InvalidRequest(
                f"filters may be nested at most {MAX_DEPTH} deep; got {format_value(value)} inside {MAX_DEPTH} others"
            )
        if not isinstance(value, Mapping) or not value:
            raise InvalidRequest(f"a filter must be an object with at least one field; got {format_value(value)}")
        parts: list[Filter] = []
        for name, operand in value.items():
            if name in {"and", "or"}:
                if not isinstance(operand, list) or not operand:
                    raise InvalidRequest(f"'{name}' takes a list of filters; got {format_value(operand)}", field=name)
                inner = tuple(self._part(f"{name}[{number}]", item, depth) for number, item in enumerate(operand))
                parts.append(And(inner) if name == "and" else Or(inner))
            elif name == "not":
                parts.append(Not(self._part(name, operand, depth)))
            else:
                with _name_path(shorten_line(name, MAX_SHOWN_NAME) or "''"):
                    parts.extend(self._of_field(name, operand))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _part(self, path: str, value: Any, depth: int) -> Filter:
        with _name_path(path):
            return self.parse(value, depth + 1)

    def _of_field(self, name: str, operand: Any) -> list[Filter]:
        field = _field_name(name)
        if not isinstance(operand, Mapping):
            operand = {"in" if isinstance(operand, list) else "eq": operand}
        if name in LINK_FIELDS:
            parts: list[Filter] = list(_parse_links(name, operand))
        else:
            compared = _parse_comparisons(field, operand, DEFAULTS.get(name))
            rule = {"source": _of_source, "language": _of_language}.get(name)
            parts = [rule(comparison) for comparison in compared] if rule is not None else list(compared)
        self.comparisons += len(parts)
        return parts


@contextmanager
def _name_path(path: str) -> Iterator[None]:
    """Put a place before the path of a refusal of the block. The message begins with the innermost place."""
    with in_field(path):
        try:
            yield
        except InvalidRequest as error:
            if error.field is not None:
                raise
            raise InvalidRequest(f"{path}: {error.message}") from None


def _field_name(name: str) -> str:
    field = name.removeprefix("metadata.")
    if not field or len(field) > MAX_TEXT:
        raise InvalidRequest(f"a filter's field must have 1 to {MAX_TEXT} characters; got {len(field)}")
    if name == field and (field in RESERVED_FIELDS or field.startswith("_")):
        raise InvalidRequest(f"cannot be filtered on; to filter by a metadata key of this name, write 'metadata.{field}'")
    return field


def _parse_comparisons(name: str, operand: Mapping[str, Any], default_value: Scalar | None) -> list[Comparison]:
    default = _parse_scalar(operand["default"]) if operand.get("default") is not None else default_value
    comparisons: list[Comparison] = []
    for operator, value in operand.items():
        if operator == "default":
            continue
        if operator not in OPERATORS:
            raise InvalidRequest(
                f"unknown filter operator {format_value(operator)}; known are {', '.join(OPERATORS)} and default"
            )
        if operator in {"exists", "missing"}:
            comparisons.append(Comparison(name, _parse_presence(operator, value)))
        else:
            comparisons.append(Comparison(name, operator, _parse_value(operator, value), default))
    if not comparisons:
        raise InvalidRequest(f"has no operator; known are {', '.join(OPERATORS)}")
    return comparisons


def _of_source(comparison: Comparison) -> Filter:
    """Return the comparison of a document's source: its metadata ``source``, or else its key."""
    if comparison.operator in {"exists", "missing"}:
        present = Or((Comparison("source", "exists"), Comparison("key", "exists")))
        return present if comparison.operator == "exists" else Not(present)
    keyed = And((Comparison("source", "missing"), replace(comparison, field="key")))
    return Or((replace(comparison, default=None), keyed))


def _of_language(comparison: Comparison) -> Filter:
    """Return the comparison of a language. A code also equals its regional forms: "de" equals "de-AT"."""
    if comparison.operator in {"ne", "nin"}:
        equal = replace(comparison, operator="eq" if comparison.operator == "ne" else "in")
        return Not(_of_language(equal))
    if comparison.operator not in {"eq", "in"}:
        return comparison
    codes = comparison.value if isinstance(comparison.value, tuple) else (comparison.value,)
    regional = (Comparison("language", "prefix", f"{code}-") for code in codes if isinstance(code, str))
    return Or((comparison, *regional))


def _parse_links(name: str, operand: Mapping[str, Any]) -> Iterator[LinkCondition]:
    if not operand:
        raise InvalidRequest(f"has no operator; it takes {', '.join(LINK_OPERATORS)}")
    for operator, value in operand.items():
        if operator not in LINK_OPERATORS:
            raise InvalidRequest(
                f"takes the operators {', '.join(LINK_OPERATORS)}; got {format_value(operator)}. "
                f"To filter by a metadata key of this name, write 'metadata.{name}'"
            )
        if operator in {"exists", "missing"}:
            yield LinkCondition(name, _parse_presence(operator, value))
            continue
        options = _parse_value(operator, value)
        texts = options if isinstance(options, tuple) else (options,)
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise InvalidRequest(f"is compared with text that is not blank; got {format_value(text)}")
        yield LinkCondition(name, operator, tuple(map(str, texts)))


def _parse_presence(operator: str, value: Any) -> str:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{operator!r} takes true or false; got {format_value(value)}")
    return operator if value else {"exists": "missing", "missing": "exists"}[operator]


def _parse_value(operator: str, value: Any) -> Scalar | tuple[Scalar, ...]:
    if operator in {"in", "nin"}:
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_OPTIONS:
            size = len(value) if isinstance(value, list) else format_value(value)
            raise InvalidRequest(f"{operator!r} takes a list of 1 to {MAX_OPTIONS} values; got {size}")
        return tuple(_parse_scalar(item) for item in value)
    scalar = _parse_scalar(value)
    if operator in _TEXT_OPERATORS and not isinstance(scalar, str):
        raise InvalidRequest(f"{operator!r} takes text; got {format_value(value)}")
    if operator in _ORDERED_OPERATORS and isinstance(scalar, bool):
        raise InvalidRequest(f"{operator!r} takes text or a number; got {format_value(value)}")
    return scalar


def _parse_scalar(value: Any) -> Scalar:
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise InvalidRequest(f"a filter's text may have at most {MAX_TEXT} characters; got {len(value)}")
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER:
        raise InvalidRequest(f"a filter's whole number must be within ±{MAX_INTEGER}; got {format_value(value)}")
    if isinstance(value, bool) or (isinstance(value, (int, float)) and math.isfinite(value)):
        return value
    if value is None:
        raise InvalidRequest(
            'a filter compares with text, a number, true or false; got null. For absent fields, write {"missing": true}'
        )
    raise InvalidRequest(f"a filter's value must be text, a finite number, true or false; got {format_value(value)}")
