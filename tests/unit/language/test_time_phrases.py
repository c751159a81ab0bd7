"""The time that a question names: a date after a preposition, a relative time, or now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.times import time_phrase

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def test_dates() -> None:
    for question, text, relation, begin, end in [
        ("Who led STEC in 2015?", "in 2015", "at", "2015-01-01", "2016-01-01"),
        ("As of March 2012, who led it?", "As of March 2012", "at", "2012-03-01", "2012-04-01"),
        ("What happened on 4 May 1950?", "on 4 May 1950", "at", "1950-05-04", "1950-05-05"),
        ("Who was mayor in the 1990s?", "in the 1990s", "at", "1990-01-01", "2000-01-01"),
        ("Who led it in early 2018?", "in early 2018", "at", "2018-01-01", "2019-01-01"),
        ("What happened between 2012 and 2014?", "between 2012 and 2014", "at", "2012-01-01", "2015-01-01"),
        ("Who ran it from 2009 to 2014?", "from 2009 to 2014", "at", "2009-01-01", "2015-01-01"),
        ("Between March 2012 and May 2014, who led?", "Between March 2012 and May 2014", "at", "2012-03-01", "2014-06-01"),
        ("Who was chief executive before March 2012?", "before March 2012", "before", "2012-03-01", "2012-04-01"),
        ("Who has led it since 2018?", "since 2018", "since", "2018-01-01", "2019-01-01"),
        ("What changed after 2019?", "after 2019", "after", "2019-01-01", "2020-01-01"),
        ("Who was chair until 2016?", "until 2016", "until", "2016-01-01", "2017-01-01"),
        ("What was decided last year?", "last year", "at", "2025-01-01", "2026-01-01"),
        ("What was decided last month?", "last month", "at", "2026-10-01", "2026-11-01"),
        ("Who led it three years ago?", "three years ago", "at", "2023-01-01", "2024-01-01"),
        ("Who came yesterday?", "yesterday", "at", "2026-11-23", "2026-11-24"),
    ]:
        found = time_phrase(question, NOW)
        assert found is not None
        dates = [each.date().isoformat() for each in found.period]
        assert (found.text, found.relation, dates) == (text, relation, [begin, end])


@pytest.mark.parametrize("question", ["Who leads it now?", "Who currently leads it?", "Who leads it these days?"])
def test_now(question: str) -> None:
    found = time_phrase(question, NOW)
    assert found is not None
    assert (found.relation, found.period) == ("at", (NOW, NOW))


def test_no_time() -> None:
    for question in [
        "What does the 2014 report say?",
        "What did the flood of 1926 destroy?",
        "Who was chair during the storm of 2016?",
        "Who led it before the merger?",
        "When did it open?",
        "Since when is he chair?",
        "What did he do before he was elected?",
        "who led after 0000",
        "Who is Rowan Teller?",
        "",
    ]:
        assert time_phrase(question, NOW) is None


@given(st.text(alphabet=" 0123456789-abceinorsfuBJ.,?–", max_size=60), st.datetimes(timezones=st.just(UTC)))
def test_any_text_has_a_time_or_none(question: str, now: datetime) -> None:
    for before in ("in ", "before ", "between ", "since ", ""):
        found = time_phrase(before + question, now)
        if found is not None:
            assert found.text in before + question
            assert found.period[0] <= found.period[1]
