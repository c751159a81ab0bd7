"""Years in a text, and the order of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

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
