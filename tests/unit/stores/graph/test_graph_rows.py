"""Rows and values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.graph import graph_rows
from agentic_rag_testing.stores.graph_samples import ONE, A, community


@given(st.text(st.characters(categories=None)))
def test_storable_text_is_valid_and_of_the_same_length(text: str) -> None:
    stored = graph_rows.make_storable(text)  # type: ignore[attr-defined]
    assert len(stored) == len(text)
    assert "\0" not in stored
    stored.encode()
    assert all(now == then for now, then in zip(stored, text, strict=True) if now != "\ufffd")


def test_a_relationship_without_any_support_is_not_stored() -> None:
    supports = graph_rows.support_rows(A, ONE)
    assert len(graph_rows.relationship_rows(A, ONE, supports)) == len(ONE.relationships)
    assert graph_rows.relationship_rows(A, ONE, supports[:1]) == graph_rows.relationship_rows(A, ONE, supports)[:1]


def test_a_passage_without_a_sentence_supports_all_the_same() -> None:
    (first, *_) = graph_rows.support_rows(A, replace(ONE, relationship_supports=()))
    assert (first["start"], first["end"], first["fact"]) == (0, 0, ONE.relationships[0].fact)


def test_a_community_of_another_generation_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="of generation 1, not 2"):
        graph_rows.community_rows(A, 2, [community("x", 1, ["Ada"])])


def test_relationships_take_the_first_fact_the_weight_of_each_document_and_the_widest_validity() -> None:
    early, late = datetime(2019, 1, 1, tzinfo=UTC), datetime(2020, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    key = ("r", "s", "t", "is")
    found = [
        (*key, "d1", 1, "c1", "first", 0.5, graph_rows._text(late), None),
        (*key, "d1", 1, "c1", "same passage", 0.9, graph_rows._text(early), graph_rows._text(late)),
        (*key, "d2", 1, "c2", "other", 0.1, None, graph_rows._text(early)),
        ("r2", "s", "t", "was", "d2", 1, "c2", "alone", 1.0, None, graph_rows._text(late)),
    ]
    first, second = graph_rows.to_relationships(found)
    assert (first.fact, first.weight, first.valid_at, first.invalid_at) == ("first", 1.0, early, late)
    assert [support.chunk_id for support in first.supports] == ["c1", "c2"]
    assert (second.fact, second.valid_at, second.invalid_at) == ("alone", None, late)


def test_a_time_without_zone_is_utc() -> None:
    assert graph_rows._text(datetime(2020, 1, 1)) == "2020-01-01T00:00:00.000000+00:00"  # noqa: DTZ001
