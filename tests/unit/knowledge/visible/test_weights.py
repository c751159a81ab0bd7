"""Tests of the weight of a relationship."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.visible.facts import HALF_LIFE_DAYS, MAX_DOCUMENTS, recency, weigh_fact

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
times = st.none() | st.integers(-5000, 500).map(lambda days: NOW + timedelta(days=days))
passages = st.lists(st.tuples(st.sampled_from("abcdefg"), st.floats(0.05, 9.0), times), min_size=1, max_size=12)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def test_a_document_loses_at_most_half_with_time() -> None:
    for since, moment, expected in [
        (days_ago(0), NOW, 1.0),
        (days_ago(0.9), NOW, 1.0),
        (days_ago(-40), NOW, 1.0),
        (days_ago(HALF_LIFE_DAYS), NOW, 0.75),
        (days_ago(2 * HALF_LIFE_DAYS), NOW, 0.625),
        (days_ago(300 * HALF_LIFE_DAYS), NOW, 0.5),
        (None, NOW, 1.0),
        (days_ago(900), None, 1.0),
    ]:
        assert recency(since, moment) == pytest.approx(expected)


def test_documents_are_added_and_each_counts_once() -> None:
    assert weigh_fact([("a", 0.8, None), ("a", 0.5, None), ("b", 0.7, None)], NOW) == 1.5
    assert weigh_fact([("a", 0.8, days_ago(HALF_LIFE_DAYS)), ("b", 0.8, NOW)], NOW) == 1.4


def test_a_later_moment_finds_the_documents_older() -> None:
    stated = [("a", 1.0, days_ago(HALF_LIFE_DAYS))]
    assert (weigh_fact(stated, days_ago(HALF_LIFE_DAYS)), weigh_fact(stated, NOW), weigh_fact(stated, None)) == (
        1.0,
        0.75,
        1.0,
    )


def test_the_heaviest_documents_count_up_to_a_bound() -> None:
    many = [(str(number), 1.0, None) for number in range(MAX_DOCUMENTS + 5)]
    assert weigh_fact([("light", 0.1, None), *many], NOW) == MAX_DOCUMENTS


@given(passages, st.randoms(), st.sampled_from([NOW, None]))
def test_the_order_does_not_matter_and_more_documents_never_weigh_less(
    stated: list[tuple[str, float, datetime | None]], random: object, moment: datetime | None
) -> None:
    shuffled = stated.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    weight = weigh_fact(stated, moment)
    assert weigh_fact(shuffled, moment) == weight
    assert weigh_fact(stated[:-1], moment) <= weight <= weigh_fact([*stated, ("new", 1.0, None)], moment)
    assert 0 < weight <= weigh_fact(stated, None)
