"""A circuit breaker: a server that is known to be away is not waited for by everyone who asks.

The pattern is Nygard's ("Release It!", 2007): closed, open for a while, then half open for one trial. It opens at once where
the server cannot be reached, and after a few answers in a row that did not come in time: one large tenant's slow question
is no reason to refuse the others'.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from agentic_rag_backend.errors import StoreUnavailable

PAUSE_S = 3.0
"""Seconds for which nobody is let through; then one is."""
TOO_LATE = 3
"""Answers in a row that did not come in time."""


class Unreachable(StoreUnavailable):
    """There is no server to talk to, as opposed to one that does not answer in time."""


class Breaker:
    """Counts outcomes and refuses at once while the server is away.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, *, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._open_until: float | None = None
        self._trying = False
        self._reason = ""

    @contextlib.contextmanager
    def watching(self, *, always: bool = False) -> Iterator[None]:
        """Watch a call's outcome; ``always`` lets it through in any state, as a probe.

        Raises:
            StoreUnavailable: the call is not made: the server did not answer a moment ago.
        """
        trial = self._open_until is not None
        if trial and not always:
            if self._trying or self._clock() < (self._open_until or 0.0):
                raise StoreUnavailable(f"{self._reason}, a moment ago; it is tried again soon")
            self._trying = True
        try:
            yield
        except StoreUnavailable as error:
            self._failures, self._reason = self._failures + 1, error.message
            if trial or isinstance(error, Unreachable) or self._failures >= TOO_LATE:
                self._open_until = self._clock() + self._pause_s
            raise
        else:  # any other end says nothing of the server: the caller went away, or the statement is at fault
            self._failures, self._open_until = 0, None
        finally:
            if trial and not always:
                self._trying = False
