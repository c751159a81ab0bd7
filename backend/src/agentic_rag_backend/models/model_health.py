"""The health of a remote model: the outcome of its last calls, or of a request that costs no tokens if those are old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from agentic_rag_backend.telemetry.metrics import Outcome

OK: Final = "ok"
FRESH_S = 15.0
"""Seconds for which an outcome is current. At most one probe is sent in this time."""
PROBE_TIMEOUT_S = 1.0
_STATES: dict[Outcome, str] = {
    "ok": OK,
    "invalid": OK,
    "rate_limited": "model_rate_limited",
    "refused": "model_refused",
    "unavailable": "model_unavailable",
}
"""States by outcome. A model that sends unusable replies is up. A cancelled call leaves the state unchanged."""

Ping = Callable[[float], Awaitable[Outcome]]
"""Requests a reply from the endpoint within the given seconds."""


async def state_of(model: object) -> str:
    """Return ``ok``, or the error code that a call of ``model`` would fail with. A local model is ``ok``."""
    health = getattr(model, "health", None)
    return await health.read_state() if isinstance(health, Health) else OK


class Health:
    """Remembers the last outcome.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, ping: Ping, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ping = ping
        self._clock = clock
        self._state = OK
        self._known_at: float | None = None
        self._probe: asyncio.Task[None] | None = None

    def note_outcome(self, outcome: Outcome) -> None:
        """Record the outcome of a request."""
        state = _STATES.get(outcome)
        if state is not None:
            self._state, self._known_at = state, self._clock()

    async def read_state(self) -> str:
        """Return ``ok`` or the error code that a call would fail with, within `PROBE_TIMEOUT_S`.

        Concurrent callers share one probe.
        """
        if self._known_at is None or self._clock() - self._known_at >= FRESH_S:
            if self._probe is None or self._probe.done():
                self._probe = asyncio.create_task(self._ask_server())
            await asyncio.shield(self._probe)
        return self._state

    async def close(self) -> None:
        """Cancel a running probe."""
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)

    async def _ask_server(self) -> None:
        self.note_outcome(await self._ping(PROBE_TIMEOUT_S))
