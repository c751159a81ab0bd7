"""The time that a question names: "in 2019", "before March 2012", "since the merger", "now"."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from agentic_rag_backend.language.times.periods import period_of
from agentic_rag_backend.language.values import Moment, placed_moments

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
_EVENT = re.compile(
    r"\b(?P<word>before|prior to|ahead of|after|following|since|until|during|at the time of|when) "
    r"(?P<event>(?!that\b|which\b|what\b|who\b|when\b|how\b|then\b|now\b|did\b|does\b|do\b|is\b|was\b|were\b|are\b|it\b|this\b|he\b|she\b|they\b)[^?.,;]*[^\W\d][^?.,;]{1,120})",
    re.IGNORECASE,
)
_NOW = re.compile(r"\b(?:now|today|nowadays|currently|at present|at the moment|these days|right now)\b", re.IGNORECASE)
_CURRENT = re.compile(r"\b(?P<which>this|last|previous) (?P<unit>year|month)\b|\b(?P<yesterday>yesterday)\b", re.IGNORECASE)
_AGO = re.compile(r"\b(?P<count>\d{1,3}|one|two|three|four|five|ten|twenty|fifty) years? ago\b", re.IGNORECASE)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "twenty": 20, "fifty": 50}
_JOINED = re.compile(r" ?(?:and|to|until|through|–|-) ?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """A time of a question, as written in ``text``.

    ``period`` is the named date. It is None if the question names an ``event`` instead, whose date has to be found.
    """

    text: str
    relation: Relation
    period: Period | None
    event: str = ""


def time_phrase(question: str, now: datetime) -> TimePhrase | None:
    """Return the first time that a question names; None without one.

    A date counts only after a preposition: "the 2014 report" and "the flood of 1926" name things.
    """
    dated = _find_dated_phrase(question)
    if dated is not None:
        return dated
    if (relative := _find_relative_phrase(question, now)) is not None:
        return relative
    if event := _EVENT.search(question):
        dates = [period for moment, _ in placed_moments(event["event"]) if (period := moment_period(moment)) is not None]
        relation = _RELATIONS[event["word"].casefold()]
        return TimePhrase(event[0].strip(), relation, dates[0] if dates else None, "" if dates else event["event"].strip())
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
        year = now.year - (_NUMBERS.get(count) or int(count))
        return TimePhrase(match[0], "at", period_of(year)) if year > 0 else None
    match = _CURRENT.search(question)
    if match is None:
        return None
    if match["yesterday"]:
        day = (now.astimezone(UTC) - timedelta(days=1)).date()
        return TimePhrase(match[0], "at", period_of(day.isoformat()))
    back = 0 if match["which"].casefold() == "this" else 1
    if match["unit"].casefold() == "year":
        return TimePhrase(match[0], "at", period_of(now.year - back))
    month = date(now.year, now.month, 1) - timedelta(days=back)
    return TimePhrase(match[0], "at", period_of(f"{month.year:04d}-{month.month:02d}"))


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
