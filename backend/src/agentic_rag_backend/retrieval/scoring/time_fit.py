"""How well a passage fits a time: by the dates in its text, otherwise by the time for which its document speaks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import VALID_FROM, VALID_TO
from agentic_rag_backend.language.times.periods import document_date, period_of
from agentic_rag_backend.language.times.time_phrases import Period, Relation, moment_period
from agentic_rag_backend.language.values import find_moments

BY_DOCUMENT = 0.8
"""Fit of a passage without a date in its text, in a document of exactly the time."""
UNDATED = 0.2
"""Fit of a passage of which no time is known."""
LATER = 0.5
"""Factor for documents from after the time."""
HALVED_EVERY_YEARS = 2.0
TIME_SHARE = 0.3
"""Share of the fit in the score of a result. The rest is its score in the inner strategy."""
_YEAR = timedelta(days=365.25)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time that passages are compared with: beginning and end, and the moment at which facts must hold (None: now)."""

    begin: datetime
    end: datetime
    as_of: datetime | None


def window_of(relation: Relation, period: Period, now: datetime) -> TimeWindow:
    """Return the time that a phrase means.

    "In 2019" is the whole year, and facts must hold at its end, as for ``as_of``; for a period that has not ended, now. "Before
    2019" is the year before it. "After 2019" and "since 2019" last until now, and facts hold now.
    """
    begin, end = period
    if relation in ("before", "until"):
        last = begin if relation == "before" else end
        return TimeWindow(_earlier(last), last, last - timedelta(microseconds=1))
    if relation in ("after", "since"):
        first = end if relation == "after" else begin
        return TimeWindow(first, max(first, now), None)
    if begin == end:
        return TimeWindow(begin, end, begin)
    return TimeWindow(begin, end, min(end - timedelta(microseconds=1), now) if begin <= now else end - timedelta(microseconds=1))


def fit(passage: VisibleChunk, window: TimeWindow) -> float:
    """Return how well a passage fits a time, in [0, 1]: 1 for a date within it, half for each two years of distance.

    A document from after the time counts half: it may describe a newer state.
    """
    dates = (period for moment in find_moments(passage.chunk.text) if (period := moment_period(moment)) is not None)
    document = document_period(passage)
    by_document = UNDATED
    if document is not None:
        by_document = BY_DOCUMENT * _nearness([document], window) * (LATER if document[0] >= window.end else 1.0)
    return max(by_document, _nearness(dates, window))


def document_period(passage: VisibleChunk) -> Period | None:
    """Return the time for which a passage's document speaks: its validity, otherwise its date."""
    begin, end = (period_of(passage.metadata.get(name)) for name in (VALID_FROM, VALID_TO))
    if begin is not None:
        return begin[0], end[1] if end is not None else datetime.max.replace(tzinfo=UTC)
    return period_of(document_date(passage.document_title, passage.metadata))


def _nearness(periods: Iterable[Period], window: TimeWindow) -> float:
    gaps = (max(begin - window.end, window.begin - end, timedelta()) / _YEAR for begin, end in periods)
    return max((0.5 ** (gap / HALVED_EVERY_YEARS) for gap in gaps), default=0.0)


def _earlier(moment: datetime) -> datetime:
    """Return the moment a year earlier."""
    return moment - _YEAR if moment.year > 1 else moment
