"""Circuit breaker: while a server is unavailable, callers fail fast instead of waiting for it.

The pattern is Nygard's ("Release It!", 2007): closed, open for a while, then half open for one trial. The circuit opens
immediately if the server cannot be reached. After timeouts it opens only if several follow one another, because one slow
question of a large tenant must not refuse the questions of others. Stores and models use the same breaker.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentic_rag_backend.errors import AgenticRagError

PAUSE_S = 3.0
"""Seconds for which all calls are refused. Then one call is allowed."""
TOO_LATE = 3
"""Consecutive timeouts that open the circuit."""


@dataclass(frozen=True, slots=True)
class Outages:
    """Errors that show that a server is unavailable.

    Args:
        counted: errors that are counted. A refused call raises this class, too.
        unreachable: errors of ``counted`` that open the circuit immediately.
        answered: errors of ``counted`` that an available server returns, such as a rate limit.
    """

    counted: type[AgenticRagError]
    unreachable: type[AgenticRagError]
    answered: tuple[type[AgenticRagError], ...] = ()


class Breaker:
    """Counts outcomes and refuses calls immediately while the server is unavailable.

    Args:
        clock: monotonic clock in seconds.
    """

    def __init__(self, outages: Outages, *, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._outages = outages
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._open_until: float | None = None
        self._trying = False
        self._reason = ""

    @property
    def open(self) -> bool:
        """Whether the server is known to be unavailable."""
        return self._open_until is not None

    @property
    def reason(self) -> str:
        """Message of the last counted failure."""
        return self._reason

    def check_state(self) -> None:
        """Return if a call would be allowed now.

        Raises:
            AgenticRagError: as in `watch_call`.
        """
        if self._open_until is None:
            return
        left_s = self._open_until - self._clock()
        if self._trying or left_s > 0:
            raise self._outages.counted(
                f"{self._reason} recently; it is tried again soon", retry_after_s=float(max(1, math.ceil(left_s)))
            )

    @contextlib.contextmanager
    def watch_call(self, *, always: bool = False) -> Iterator[None]:
        """Watch a call's outcome. ``always`` allows it in any state, as a probe.

        Raises:
            AgenticRagError: the call is refused, because the server was unavailable recently. The class is the counted
                class. ``retry_after_s`` is the time until the next call is allowed.
        """
        trial = self._open_until is not None
        if trial and not always:
            self.check_state()
            self._trying = True
        try:
            yield
        except self._outages.counted as error:
            self._count_failure(error, trial=trial)
            raise
        else:  # other outcomes do not depend on the server: the caller cancelled, or the request is invalid
            self._close_circuit()
        finally:
            if trial and not always:
                self._trying = False

    def _count_failure(self, error: AgenticRagError, *, trial: bool) -> None:
        if isinstance(error, self._outages.answered):
            self._close_circuit()
            return
        self._failures, self._reason = self._failures + 1, error.message
        if trial or isinstance(error, self._outages.unreachable) or self._failures >= TOO_LATE:
            self._open_until = self._clock() + self._pause_s

    def _close_circuit(self) -> None:
        self._failures, self._open_until = 0, None
