"""Applies Graphiti's search filters to items that were read. Graphiti passes the filters on and does not apply them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.plugins.graphiti.sdk import ComparisonOperator, DateFilter, SearchFilters

_DATES = ("valid_at", "invalid_at", "created_at", "expired_at")


def valid_at(moment: datetime) -> SearchFilters:
    """Return the filter for facts that hold at ``moment``, including facts with unknown dates."""

    def known(operator: ComparisonOperator) -> list[list[DateFilter]]:
        unknown = DateFilter(comparison_operator=ComparisonOperator.is_null)
        return [[DateFilter(date=moment, comparison_operator=operator)], [unknown]]

    return SearchFilters(
        valid_at=known(ComparisonOperator.less_than_equal),
        invalid_at=known(ComparisonOperator.greater_than),
        expired_at=known(ComparisonOperator.greater_than),
    )


def holds_at(row: Mapping[str, Any], moment: datetime) -> bool:
    """Return whether a fact holds at ``moment`` and was not retracted before."""
    return (
        (row["valid_at"] is None or row["valid_at"] <= moment)
        and (row["invalid_at"] is None or row["invalid_at"] > moment)
        and (row["expired_at"] is None or row["expired_at"] > moment)
    )


def edge_passes(row: Mapping[str, Any], filters: SearchFilters) -> bool:
    """Return whether a fact passes, including the labels of its ends.

    Raises:
        InvalidRequest: the filter names properties. Graphiti 0.31.1 defines these, but none of its engines applies them.
    """
    _refuse_properties(filters)
    among = (
        (filters.edge_types, row["name"]),
        (filters.edge_uuids, row["uuid"]),
        (filters.edge_source_node_uuids, row["source"]),
        (filters.edge_target_node_uuids, row["target"]),
    )
    return (
        all(allowed is None or value in allowed for allowed, value in among)
        and _label_condition(row["source_labels"], filters)
        and _label_condition(row["target_labels"], filters)
        and all(_date_condition(row[name], getattr(filters, name)) for name in _DATES)
    )


def node_passes(row: Mapping[str, Any], filters: SearchFilters) -> bool:
    """Return whether an entity passes. Raises as `edge_passes` does."""
    _refuse_properties(filters)
    return _label_condition(row["labels"], filters)


def _refuse_properties(filters: SearchFilters) -> None:
    if filters.property_filters:
        raise InvalidRequest("filters on properties are not applied by Graphiti 0.31.1: they are refused rather than ignored")


def _label_condition(labels: Sequence[str], filters: SearchFilters) -> bool:
    return filters.node_labels is None or bool(set(labels) & set(filters.node_labels))


def _date_condition(value: datetime | None, alternatives: Sequence[Sequence[DateFilter]] | None) -> bool:
    """Return whether all conditions of one alternative hold. No conditions hold always."""
    return not alternatives or any(
        all(_compare_dates(value, condition) for condition in conditions) for conditions in alternatives
    )


def _compare_dates(value: datetime | None, condition: DateFilter) -> bool:
    operator = condition.comparison_operator
    if operator in (ComparisonOperator.is_null, ComparisonOperator.is_not_null):
        return (value is None) == (operator is ComparisonOperator.is_null)
    if value is None or condition.date is None:
        return False  # As in Cypher: a comparison with null is not true.
    date = condition.date if condition.date.tzinfo else condition.date.replace(tzinfo=UTC)
    results = {
        ComparisonOperator.equals: value == date,
        ComparisonOperator.not_equals: value != date,
        ComparisonOperator.greater_than: value > date,
        ComparisonOperator.less_than: value < date,
        ComparisonOperator.greater_than_equal: value >= date,
        ComparisonOperator.less_than_equal: value <= date,
    }
    return results[operator]
