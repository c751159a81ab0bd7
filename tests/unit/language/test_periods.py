"""The date of a document, and the end of a fact that several passages state."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.language.times import document_date, end_of

YEARS = st.none() | st.integers(2000, 2009).map(str)


def test_metadata_then_the_title_have_the_date() -> None:
    for title, metadata, date in [
        ("Minutes", {"date": "2016-02-04"}, "2016-02-04"),
        ("Minutes", {"date": "2016-02-04T10:00:00Z"}, "2016-02-04"),
        ("Minutes", {"year": 2016}, "2016"),
        ("Minutes", {"date": "2016-02-04", "updated": "2016-03"}, "2016-03"),
        ("Minutes of 4 February 2016", {"date": "some day"}, "2016-02-04"),
        ("Courier, July 2023", {}, "2023-07"),
        ("Annual report 2014", {}, "2014"),
        ("Survey (2010)", {}, "2010"),
        ("The flood of 1926", {}, ""),
        ("Orle in 1951", {}, ""),
        ("Harbour 2020: the plan", {}, ""),
        ("Minutes", {"date": True, "year": ["2016"]}, ""),
        ("", {}, ""),
    ]:
        assert document_date(title, metadata) == date


def test_an_end_holds_unless_a_passage_states_the_fact_from_then_on_or_at_an_unknown_time() -> None:
    for periods, end in [
        ([], None),
        ([("2019", None)], None),
        ([("2019", "2021")], "2021"),
        ([("2019", None), (None, "2021")], "2021"),
        ([(None, "2021"), (None, "2020")], "2021"),
        ([(None, None), (None, "2021")], None),
        ([("2022", None), ("2019", "2021")], None),
        ([("2021", None), ("2019", "2021")], None),
    ]:
        assert end_of(periods) == end


@sampled(gate=60, deep=2000)
@given(st.lists(st.tuples(YEARS, YEARS), max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_passages_does_not_matter_and_an_older_one_changes_nothing(periods: list[Any], random: Any) -> None:
    shuffled = random.sample(periods, len(periods))
    end = end_of(periods)
    assert end_of(shuffled) == end
    if end is not None:
        assert end == max(each for _, each in periods if each is not None)
        assert end_of([*periods, ("1990", None)]) == end
        assert end_of([*periods, (end, None)]) is None
