"""A passage fits a time by the dates in its text, otherwise by the time of its document."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.language.times import period_of
from agentic_rag_backend.retrieval.strategies.temporal_search import BY_DOCUMENT, UNDATED, fit, window_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
Make = Callable[..., VisibleChunk]


def of(year: str) -> tuple[datetime, datetime]:
    period = period_of(year)
    assert period is not None
    return period


def test_the_window_of_a_phrase() -> None:
    for relation, as_of, begin, end in [
        ("at", 2015, 2015, 2016),
        ("before", 2014, 2014, 2015),
        ("until", 2015, 2014, 2016),
        ("after", None, 2016, 2026),
        ("since", None, 2015, 2026),
    ]:
        window = window_of(relation, of("2015"), NOW)
        assert (window.as_of.year if window.as_of else None) == as_of
        assert abs(window.begin.year - begin) <= 1
        assert window.end.year == end
        assert window.as_of is None or window.as_of < window.end


def test_a_period_that_has_not_ended_is_seen_from_now() -> None:
    assert window_of("at", of("2026"), NOW).as_of == NOW
    assert window_of("at", of("2027"), NOW).as_of == datetime(2027, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert window_of("at", (NOW, NOW), NOW).as_of == NOW


def test_dates_of_the_text_come_before_those_of_the_document(visible: Make) -> None:
    window = window_of("at", of("2015"), NOW)
    said = visible("a", "The board met in March 2015.", date="2020-01-01")
    dated = visible("b", "The board met.", date="2015-05-01")
    valid = visible("c", "The board met.", valid_from="2014", valid_to="2016")
    older, oldest = (visible(id, "The board met.", date=date) for id, date in (("d", "2013-12-31"), ("e", "1990")))
    later, unknown = visible("f", "The board met.", date="2017-01-01"), visible("g", "The board met.")
    assert fit(said, window) == 1.0
    assert fit(dated, window) == fit(valid, window) == BY_DOCUMENT
    assert fit(unknown, window) == UNDATED
    assert BY_DOCUMENT > fit(older, window) > fit(oldest, window)
    assert fit(older, window) > fit(later, window) > fit(oldest, window) >= 0.0


def test_a_document_of_another_time_does_not_hide_a_date_of_its_text(visible: Make) -> None:
    window = window_of("since", of("2020"), NOW)
    assert fit(visible("a", "It closed in 2022.", valid_from="2000", valid_to="2001"), window) == 1.0
    assert fit(visible("b", "It opened in 1900.", date="2023"), window) == BY_DOCUMENT
