"""How long a job waits for a store or model that does not answer: decided here, done by `ingestion.runs`."""

from __future__ import annotations

from agentic_rag_backend.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable, StoreLocked, StoreUnavailable

PATIENCE_S = 3600.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
MOST_INVALID_REPLIES = 5
"""Attempts at a model that answers, but nonsense: waiting seldom mends that."""


def passes(error: BaseException) -> bool:
    """Tell whether waiting may help."""
    return isinstance(error, StoreUnavailable | ModelUnavailable) and not isinstance(error, StoreLocked | ModelRefused)


class Waiting:
    """Decides after each failure how long to wait; ``progress`` made since the last one begins the wait anew.

    Args:
        patience_s: seconds without any progress after which the job is not tried again.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: float | None = None
        self._progress = 0
        self._failures = 0

    def after(self, error: BaseException, *, now: float, progress: int = 0) -> float | None:
        """Return the seconds until the next attempt; None to give up.

        The pauses double up to `LONGEST_PAUSE_S`; what a model asked for is kept to where it is longer, and is not waited
        for where it is beyond what is left.

        Args:
            now: of a clock that only grows, in seconds.
            progress: a count that grows with what was achieved.
        """
        if not passes(error):
            return None
        if self._since is None or progress > self._progress:
            self._since, self._progress, self._failures = now, progress, 0
        self._failures += 1
        if isinstance(error, ModelReplyInvalid) and self._failures >= MOST_INVALID_REPLIES:
            return None
        left_s = self._since + self._patience_s - now
        asked_s = getattr(error, "retry_after_s", None) or 0.0
        grown_s = FIRST_PAUSE_S * 2 ** min(self._failures - 1, 30)
        pause_s = float(max(min(LONGEST_PAUSE_S, grown_s, max(left_s, 0.0)), asked_s))
        return pause_s if left_s > 0 and pause_s <= left_s else None
