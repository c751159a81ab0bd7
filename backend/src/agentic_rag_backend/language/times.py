"""Dates and periods, in texts, in questions and in metadata."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypeVar

from agentic_rag_backend.language.titles import is_excerpt
from agentic_rag_backend.language.values import Moment, find_moments, placed_moments

_YEAR = re.compile(r"(?<![\w.,£$€%-])(1[5-9]\d{2}|20\d{2})(?![\w%]|[.,]\d)")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = re.compile(rf"\b(?:(\d{{1,2}}) )?({'|'.join(_MONTHS)}) (1[5-9]\d{{2}}|20\d{{2}})\b", re.IGNORECASE)
_MIN_DATED = 2

T = TypeVar("T")
Date = tuple[int, int, int]
"""Year, month and day; 0 for a part that is missing."""


def find_years(text: str) -> list[int]:
    """Return the years from 1500 to 2099 that ``text`` names, in their order."""
    return [int(match[1]) for match in _YEAR.finditer(text)]


def first_date(text: str) -> Date | None:
    """Return the first date that ``text`` names; None without a year."""
    exact = _MONTH.search(text)
    year = _YEAR.search(text)
    if year is None:
        return None
    if exact is not None and exact.end() <= year.end():
        return int(exact[3]), 1 + _MONTHS.index(exact[2].casefold()), int(exact[1] or 0)
    return int(year[1]), 0, 0


def has_dates(items: Sequence[T], date_of: Callable[[T], Date | None]) -> bool:
    """Return whether at least half of the items, and two, have a date."""
    return sum(date_of(item) is not None for item in items) >= max(_MIN_DATED, len(items) / 2)


def in_order_of_time(items: Sequence[T], date_of: Callable[[T], Date | None]) -> list[T]:
    """Return items by date, items without a date last, if they have dates (see `has_dates`); otherwise unchanged."""
    if not has_dates(items, date_of):
        return list(items)
    dated = sorted((date, number) for number, item in enumerate(items) if (date := date_of(item)) is not None)
    order = [number for _, number in dated]
    return [items[number] for number in (*order, *(number for number in range(len(items)) if number not in order))]


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


Relation = Literal["at", "before", "after", "since", "until"]
Period = tuple[datetime, datetime]
"""Beginning and end, exclusive."""

_RELATIONS: dict[str, Relation] = {
    **dict.fromkeys(("in", "on", "at", "by", "during", "as of", "throughout", "between", "at the time of", "when"), "at"),
    **dict.fromkeys(("before", "prior to", "ahead of"), "before"),
    **dict.fromkeys(("after", "following"), "after"),
    **dict.fromkeys(("since", "from"), "since"),
    **dict.fromkeys(("until", "till", "up to"), "until"),
}  # fmt: skip
_WORDS = "|".join(sorted(_RELATIONS, key=len, reverse=True))
_BEFORE_DATE = re.compile(
    rf"\b(?P<word>{_WORDS}) (?:the )?(?:(?:early|late|mid|end of|beginning of|start of|summer of|winter of|spring of|autumn of|"
    r"year|month of) ?-?){0,2}$",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(?P<word>from|between)\b", re.IGNORECASE)
_NOW = re.compile(r"\b(?:now|today|nowadays|currently|at present|at the moment|these days|right now)\b", re.IGNORECASE)
_CURRENT = re.compile(r"\b(?P<which>this|last|previous) (?P<unit>year|month)\b|\b(?P<yesterday>yesterday)\b", re.IGNORECASE)
_AGO = re.compile(r"\b(?P<count>\d{1,3}|one|two|three|four|five|ten|twenty|fifty) years? ago\b", re.IGNORECASE)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "twenty": 20, "fifty": 50}
_JOINED = re.compile(r" ?(?:and|to|until|through|–|-) ?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """A time of a question, as written in ``text``."""

    text: str
    relation: Relation
    period: Period


def time_phrase(question: str, now: datetime) -> TimePhrase | None:
    """Return the first time that a question names; None without one.

    A date counts only after a preposition: "the 2014 report" and "the flood of 1926" name things.
    """
    dated = _find_dated_phrase(question)
    if dated is not None:
        return dated
    if (relative := _find_relative_phrase(question, now)) is not None:
        return relative
    if present := _NOW.search(question):
        return TimePhrase(present[0], "at", (now, now))
    return None


def _find_dated_phrase(question: str) -> TimePhrase | None:
    placed_dates = placed_moments(question)
    for number, (moment, (start, end)) in enumerate(placed_dates):
        # The text of a range has its preposition: "from 2009 to 2014".
        word, period = _BEFORE_DATE.search(question[:start]) or _RANGE.match(moment.text), moment_period(moment)
        if period is None or word is None:
            continue
        begin = min(word.start(), start) if word.string is not moment.text else start
        relation = _RELATIONS[word["word"].casefold()]
        joined = _join_range(question, placed_dates, number) if word["word"].casefold() in ("from", "between") else None
        if joined is not None:
            return TimePhrase(question[begin : joined[1]], "at", (period[0], joined[0][1]))
        spans = moment.years is not None and moment.years[0] != moment.years[1]
        return TimePhrase(question[begin:end], "at" if spans and relation == "since" else relation, period)
    return None


def _join_range(question: str, placed_dates: Sequence[tuple[Moment, tuple[int, int]]], number: int) -> tuple[Period, int] | None:
    """Return the period and the end of the date that a range leads to, such as 2014 in "from 2009 to 2014"."""
    if number + 1 == len(placed_dates):
        return None
    (_, (_, end)), (next_moment, (start, end_of_range)) = placed_dates[number], placed_dates[number + 1]
    period = moment_period(next_moment)
    return (period, end_of_range) if period is not None and _JOINED.fullmatch(question[end:start]) else None


def _find_relative_phrase(question: str, now: datetime) -> TimePhrase | None:
    if match := _AGO.search(question):
        count = match["count"].casefold()
        period = period_of(now.year - (_NUMBERS.get(count) or int(count)))
    elif match := _CURRENT.search(question):
        back = 0 if (match["which"] or "").casefold() == "this" else 1
        if match["yesterday"]:
            period = period_of((now.astimezone(UTC) - timedelta(days=1)).date().isoformat())
        elif match["unit"].casefold() == "year":
            period = period_of(now.year - back)
        else:
            month = date(now.year, now.month, 1) - timedelta(days=back)
            period = period_of(f"{month.year:04d}-{month.month:02d}")
    else:
        return None
    return None if period is None else TimePhrase(match[0], "at", period)


def moment_period(moment: Moment) -> Period | None:
    """Return the period of a date; None without a year of our era."""
    if moment.years is None:
        return None
    first_year, last_year = moment.years
    if not moment.month:
        begin, end = period_of(first_year), period_of(last_year)
    else:
        day = min(moment.day, monthrange(first_year, moment.month)[1]) if moment.day else 0
        text = f"{first_year:04d}-{moment.month:02d}" + (f"-{day:02d}" if day else "")
        begin = end = period_of(text)
    return (begin[0], end[1]) if begin is not None and end is not None else None
