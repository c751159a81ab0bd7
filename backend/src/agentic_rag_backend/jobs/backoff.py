"""Decides how long a job waits for a store or model that does not answer. `jobs.runner` does the waiting."""

from __future__ import annotations

from agentic_rag_backend.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable, StoreLocked, StoreUnavailable

PATIENCE_S = 3600.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
MAX_INVALID_REPLIES = 5
"""Maximum attempts at a model whose replies are invalid, because waiting seldom helps."""


def is_transient(error: BaseException) -> bool:
    """Return whether a later attempt may succeed."""
    return isinstance(error, StoreUnavailable | ModelUnavailable) and not isinstance(error, StoreLocked | ModelRefused)


class Backoff:
    """Decides after each failure how long to wait. Progress since the last failure resets the wait.

    Args:
        patience_s: seconds without any progress after which the job is not tried again.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: float | None = None
        self._progress = 0
        self._failures = 0

    def pause_s(self, error: BaseException, *, now: float, progress: int = 0) -> float | None:
        """Return the seconds until the next attempt; None to give up.

        The pauses double up to `LONGEST_PAUSE_S`. A longer pause that the model asked for wins; a pause that would outlast
        the patience means giving up at once.

        Args:
            now: of a clock that only grows, in seconds.
            progress: a count that grows with completed work.
        """
        if not is_transient(error):
            return None
        if self._since is None or progress > self._progress:
            self._since, self._progress, self._failures = now, progress, 0
        self._failures += 1
        if isinstance(error, ModelReplyInvalid) and self._failures >= MAX_INVALID_REPLIES:
            return None
        left_s = self._since + self._patience_s - now
        asked_s = getattr(error, "retry_after_s", None) or 0.0
        grown_s = FIRST_PAUSE_S * 2 ** min(self._failures - 1, 30)
        chosen_s = float(max(min(LONGEST_PAUSE_S, grown_s, max(left_s, 0.0)), asked_s))
        return chosen_s if left_s > 0 and chosen_s <= left_s else None
