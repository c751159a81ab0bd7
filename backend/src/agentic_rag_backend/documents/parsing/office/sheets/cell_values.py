"""Values of cells as text."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

_WHOLE = 1e15
"""Doubles represent every whole number below this, and a spreadsheet shows 15 digits."""


def format_value(value: object) -> str:
    """Return a value as text: dates in ISO 8601, numbers with at most 15 digits."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and -_WHOLE < value < _WHOLE else f"{value:.15g}"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (datetime, time)):
        return value.isoformat(timespec="seconds" if value.second else "minutes")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value)
