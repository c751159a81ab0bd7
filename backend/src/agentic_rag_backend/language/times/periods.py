"""Times in metadata: a year, a month or a day means the whole period. The date of a document."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from agentic_rag_backend.language.titles import is_excerpt
from agentic_rag_backend.language.values import find_moments

_Time = TypeVar("_Time", datetime, str)
DATE_FIELDS = ("updated", "modified", "date", "published", "year")
"""Fields of metadata with the date of a document, the first one that is a time counts."""
_DAY = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_LAST_YEAR = re.compile(r"(?:^|\b(?P<before>[a-z]{1,20} )|[ (,-])(?P<year>1\d{3}|20\d{2})\)?$", re.IGNORECASE)
_OF_SUBJECT = frozenset({"in", "of", "by", "from", "since", "until", "before", "after", "to"})
_YEAR_OR_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


def period_of(value: Any) -> tuple[datetime, datetime] | None:
    """Return the start and the end (exclusive) of a year, a month or a day. For a time, both are the time itself.

    None if the value is none of these.
    """
    text = f"{value:04d}" if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        return None
    try:
        if match := _YEAR_OR_MONTH.fullmatch(text):
            year, month = int(match[1]), int(match[2] or 12)
            return datetime(year, int(match[2] or 1), 1, tzinfo=UTC), _day_after(date(year, month, monthrange(year, month)[1]))
        try:
            day = date.fromisoformat(text)
        except ValueError:
            time = datetime.fromisoformat(text)
            time = time if time.tzinfo else time.replace(tzinfo=UTC)
            return time, time
        return datetime(day.year, day.month, day.day, tzinfo=UTC), _day_after(day)
    except ValueError:
        return None


def end_of(periods: Sequence[tuple[_Time | None, _Time | None]]) -> _Time | None:
    """Return the end that several passages together give a fact. None: it holds, or the end is unknown.

    Each period is the beginning and the end that one passage gives, None where it gives none. A passage without an end that
    begins before the last end is older than that end. A passage without both, or that begins later, states that the fact holds.
    """
    end = max((end for _, end in periods if end is not None), default=None)
    if end is None or any(other_end is None and (begin is None or begin >= end) for begin, other_end in periods):
        return None
    return end


def _day_after(day: date) -> datetime:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return midnight + timedelta(days=1) if day < date.max else datetime.max.replace(tzinfo=UTC)


def document_date(title: str, metadata: Mapping[str, Any]) -> str:
    """Return the date of a document as ISO 8601: a day, a month or a year; empty if it has none.

    The metadata have it (`DATE_FIELDS`), or the title: "Minutes, 4 February 2016", "Annual report 2014". "The flood of 1926"
    names the year of its subject, and an excerpt has no date. The time of ingestion says nothing about the age of a document.
    """
    for name in DATE_FIELDS:
        value = metadata.get(name)
        if period_of(value) is not None and (match := _DAY.match(str(value))):
            return match[0]
    if is_excerpt(title):
        return ""
    for moment in find_moments(title):
        if moment.years and moment.month:
            return "-".join((f"{moment.years[0]:04d}", *(f"{part:02d}" for part in (moment.month, moment.day) if part)))
    year = _LAST_YEAR.search(title.rstrip())
    return year["year"] if year and (year["before"] or "").strip().casefold() not in _OF_SUBJECT else ""
