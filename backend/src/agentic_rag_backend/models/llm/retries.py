"""Decides when a failed model call is retried, from the failure and the remaining time."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agentic_rag_backend.errors import ModelInputRefused, ModelRefused, ModelUnavailable

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 8.0
MAX_ATTEMPTS = 6
LONGEST_ASKED_S = 7 * 86_400.0
"""A longer requested wait is treated as this one."""
_TRANSIENT = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 522, 524, 529})
_OF_INPUT = frozenset({400, 413, 422})
"""Status codes that refuse the request's content, not its sender."""


class RetryVerdict(enum.Enum):
    """The reaction to a failure."""

    RETRY = "retry"
    RATE_LIMITED = "rate_limited"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One failed attempt. ``status`` is None without a response (connection, time). ``retry_after_s`` is the requested wait.

    ``exhausted`` marks a 429 that waiting does not solve: the account's budget is used up.
    """

    status: int | None
    retry_after_s: float | None = None
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """``pause_s`` is the pause before the next attempt. If the call is rate limited, the caller gets ``retry_after_s``."""

    verdict: RetryVerdict
    pause_s: float = 0.0
    retry_after_s: float | None = None


def decide_retry(failure: FailedAttempt, *, attempt: int, left_s: float, jitter: float) -> RetryDecision:
    """Decide after the ``attempt``-th attempt (from 1) failed.

    Args:
        left_s: seconds until the call's deadline.
        jitter: a random number in [0, 1). It spreads the pauses over 50–100 % of their length, so that callers that failed
            together do not retry together.
    """
    limited = failure.status == 429
    if not limited and failure.status is not None and failure.status not in _TRANSIENT:
        return RetryDecision(RetryVerdict.GIVE_UP)
    if failure.exhausted:
        return RetryDecision(RetryVerdict.RATE_LIMITED, retry_after_s=failure.retry_after_s)
    if failure.retry_after_s is not None:
        pause = failure.retry_after_s
    else:
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempt - 1)) * (0.5 + jitter / 2)
    if attempt < MAX_ATTEMPTS and pause < left_s:
        return RetryDecision(RetryVerdict.RETRY, pause_s=pause)
    if limited:
        return RetryDecision(RetryVerdict.RATE_LIMITED, retry_after_s=pause)
    return RetryDecision(RetryVerdict.GIVE_UP, retry_after_s=failure.retry_after_s)


def error_for_status(status: int | None) -> type[ModelUnavailable]:
    """Return the error of a call that was given up after HTTP ``status`` (None: no response)."""
    if status in _OF_INPUT:
        return ModelInputRefused
    refused = status is not None and 400 <= status < 500 and status not in _TRANSIENT
    return ModelRefused if refused else ModelUnavailable


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds a server asks to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or as a date.

    None if the header is missing or invalid.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / scale
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return min(seconds, LONGEST_ASKED_S)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return min(max(0.0, (date - (now or datetime.now(UTC))).total_seconds()), LONGEST_ASKED_S)
