"""Graphiti's filters on read items, and the names in a query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import name_words, normalise_name
from agentic_rag_backend.plugins.graphiti.filters import edge_passes, holds_at, valid_at
from agentic_rag_backend.plugins.graphiti.interface import list_candidate_names
from agentic_rag_backend.plugins.graphiti.sdk import ComparisonOperator, DateFilter, SearchFilters

NOW = datetime(2026, 1, 1, tzinfo=UTC)
_times = st.none() | st.integers(-2, 2).map(lambda days: NOW + timedelta(days=days))


def row(**named_values: Any) -> dict[str, Any]:
    dates = dict.fromkeys(("valid_at", "invalid_at", "created_at", "expired_at"))
    ends = {"source": "a", "target": "b", "source_labels": ["Entity"], "target_labels": ["Entity"]}
    return {"uuid": "u", "name": "met", **dates, **ends, **named_values}


@given(valid=_times, invalid=_times, expired=_times)
def test_the_filter_that_we_ask_with_says_what_we_apply(
    valid: datetime | None, invalid: datetime | None, expired: datetime | None
) -> None:
    found = row(valid_at=valid, invalid_at=invalid, expired_at=expired)

    assert edge_passes(found, valid_at(NOW)) == holds_at(found, NOW)
    assert holds_at(found, NOW) == (
        (valid is None or valid <= NOW) and (invalid is None or invalid > NOW) and (expired is None or expired > NOW)
    )


def test_alternatives_are_alternatives_and_conditions_all_hold() -> None:
    after = DateFilter(date=NOW - timedelta(days=1), comparison_operator=ComparisonOperator.greater_than)
    before = DateFilter(date=NOW + timedelta(days=1), comparison_operator=ComparisonOperator.less_than)
    null = DateFilter(comparison_operator=ComparisonOperator.is_null)

    both, either = SearchFilters(created_at=[[after, before]]), SearchFilters(created_at=[[null], [before]])
    assert edge_passes(row(created_at=NOW), both)
    assert not edge_passes(row(created_at=NOW + timedelta(days=2)), both)
    assert not edge_passes(row(), both)
    assert edge_passes(row(), either)
    assert edge_passes(row(created_at=NOW), either)
    assert not edge_passes(row(created_at=NOW + timedelta(days=2)), either)


@pytest.mark.parametrize(
    ("operator", "passing"),
    [
        (ComparisonOperator.equals, {0}),
        (ComparisonOperator.not_equals, {-1, 1}),
        (ComparisonOperator.greater_than, {1}),
        (ComparisonOperator.less_than, {-1}),
        (ComparisonOperator.greater_than_equal, {0, 1}),
        (ComparisonOperator.less_than_equal, {-1, 0}),
        (ComparisonOperator.is_null, set()),
        (ComparisonOperator.is_not_null, {-1, 0, 1}),
    ],
)
def test_every_comparison(operator: ComparisonOperator, passing: set[int]) -> None:
    # A date without a zone counts as UTC.
    wanted = SearchFilters(created_at=[[DateFilter(date=NOW.replace(tzinfo=None), comparison_operator=operator)]])

    assert {day for day in (-1, 0, 1) if edge_passes(row(created_at=NOW + timedelta(days=day)), wanted)} == passing


@pytest.mark.parametrize("name", ["edge_types", "edge_uuids", "edge_source_node_uuids", "edge_target_node_uuids", "node_labels"])
def test_an_empty_list_lets_nothing_through(name: str) -> None:
    assert not edge_passes(row(), SearchFilters(**{name: []}))


def test_names_are_runs_of_words_the_longest_first() -> None:
    assert list_candidate_names("Who met Ada Lovelace's aunt?")[:2] == ["who met ada lovelace aunt", "who met ada lovelace"]
    assert {"ada lovelace", "ada", "lovelace", "aunt"} <= set(list_candidate_names("Who met Ada Lovelace's aunt?"))
    assert list_candidate_names("who is the") == []
    assert list_candidate_names("") == []


@given(
    before=st.lists(st.sampled_from(["who", "met", "the", "old"]), max_size=5),
    name=st.sampled_from(["Zoë Ünal", "I.B.M.", "Ada's Bar"]),
)
def test_a_name_in_the_query_is_among_them(before: list[str], name: str) -> None:
    assert normalise_name(name) in list_candidate_names(" ".join([*before, name, "there"]))


def test_long_queries_are_bounded() -> None:
    found = list_candidate_names("word " * 10_000 + "another")

    assert len(found) == 10
    assert max(len(name_words(name)) for name in found) == 10
