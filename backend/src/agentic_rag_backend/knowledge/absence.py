"""How jobs wait for a language model that does not answer, or not in time, before they do without it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from agentic_rag_backend.errors import ModelReplyInvalid, ModelTimeout, ModelUnavailable
from agentic_rag_backend.jobs.base import LONGEST_PAUSE_S, Backoff, is_transient

MAX_TIMEOUTS = 3
"""Attempts at a request for which the model takes too long, while it answers other requests."""
_FORGOTTEN_S = 3 * LONGEST_PAUSE_S
"""Seconds without a failure after which an absence counts as over, although nobody has asked the model since."""


class Absence:
    """The time since the model last answered. All jobs of a process share it, so that each of many documents does not wait anew.

    Args:
        patience_s: seconds after which jobs do without the model, until it answers again.
        clock: a monotonic clock in seconds.
    """

    def __init__(self, patience_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._backoff = Backoff(patience_s)
        self._clock = clock
        self._failed_at = -_FORGOTTEN_S
        self.answers = 0
        """Number of replies so far."""

    def end(self) -> None:
        """Record a reply."""
        self.answers += 1

    def pause_s(self, error: ModelUnavailable) -> float | None:
        """Return the seconds until the next attempt. None: the jobs have waited long enough, or waiting is useless."""
        now = self._clock()
        if now - self._failed_at >= _FORGOTTEN_S:
            self.end()
        self._failed_at = now
        return self._backoff.pause_s(error, now=now, progress=self.answers)


@dataclass(slots=True)
class Persistence:
    """Decides which failed requests of one document are repeated.

    Args:
        absence: None: no request is repeated.
    """

    absence: Absence | None
    _timeouts: Counter[int] = field(default_factory=Counter)
    _answers: int = 0

    def begin(self) -> None:
        """Record that a group of requests is sent."""
        self._answers = self.absence.answers if self.absence is not None else 0

    def is_worth_waiting(self, number: int, error: ModelUnavailable | None) -> bool:
        """Return whether the request of this number may succeed later."""
        if self.absence is None or error is None or not is_transient(error) or isinstance(error, ModelReplyInvalid):
            return False
        if isinstance(error, ModelTimeout) and self.absence.answers > self._answers:
            self._timeouts[number] += 1
        return not self.is_too_large(number)

    def is_too_large(self, number: int) -> bool:
        """Return whether the model takes too long for this request alone."""
        return self._timeouts[number] >= MAX_TIMEOUTS
