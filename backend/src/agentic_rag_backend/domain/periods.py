"""Times in metadata: a year, a month or a day means the whole period."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import Any

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


def _day_after(day: date) -> datetime:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return midnight + timedelta(days=1) if day < date.max else datetime.max.replace(tzinfo=UTC)
