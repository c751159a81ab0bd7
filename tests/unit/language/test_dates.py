"""Years and dates in sentences, and the order of time."""

from __future__ import annotations

from agentic_rag_backend.language.times import find_years, first_date, in_order_of_time


def test_years() -> None:
    for text, expected in [
        ("It opened on 14 June 2014, five years after 2009.", [2014, 2009]),
        ("It cost 2014 crowns.", [2014]),
        ("It cost £2014, or 2014.5, or 2,014, for 12014 people in room A2014 at 1400.", []),
        ("In 1887–1960 the yard built boats.", [1887, 1960]),
        ("", []),
    ]:
        assert find_years(text) == expected


def test_a_date_is_as_exact_as_it_is_written() -> None:
    assert first_date("On 14 June 2014 it opened.") == (2014, 6, 14)
    assert first_date("In June 2014 it opened.") == (2014, 6, 0)
    assert first_date("In 2014, before 3 May 2015, it opened.") == (2014, 0, 0)
    assert first_date("It opened in June.") is None


def test_order_of_time_needs_dates_in_half_of_the_items() -> None:
    assert in_order_of_time(["in 2014", "later", "in 2009"], first_date) == ["in 2009", "in 2014", "later"]
    few = ["in 2014", "later", "soon"]
    assert in_order_of_time(few, first_date) == few
