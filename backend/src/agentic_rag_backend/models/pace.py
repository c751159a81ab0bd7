"""Pace of requests to a model: its measured speed with the time limits that follow, and the places of concurrent requests.

A model that reads and writes slowly is not down: as long as pieces of a reply arrive, the reply may take longer than the
configured timeout, up to `MOST` times of it.

A job's request never takes the last free place if there are several. With one place, a waiting question goes before all waiting
requests of jobs, so it waits for at most one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.fairness import Rotation, current_actor, share_of

CHARACTERS_PER_TOKEN = 4
"""Measuring and limits use the same estimate, so its error cancels out."""
MOST = 5.0
"""A call takes at most this many times its timeout, however slow the model is."""
MARGIN = 2.0
"""A call may take this many times what the measured speed predicts."""
GAP_SHARE = 0.5
"""Share of the timeout that may pass between two pieces of a reply."""
_NEWEST = 0.3
"""Weight of the newest measurement."""
_LEAST_READ = 100
"""Tokens of a prompt below which the time to the first piece says little about the speed of reading."""


@dataclass(slots=True)
class Pace:
    """Speed of one model in estimated tokens per second, as moving averages. None: not measured yet."""

    read_tps: float | None = None
    write_tps: float | None = None

    def note_read(self, tokens: float, seconds: float) -> None:
        """Record the time from a prompt to the first piece of its reply."""
        if tokens >= _LEAST_READ:
            self.read_tps = _update_average(self.read_tps, tokens / max(seconds, 1e-3))

    def note_reply(self, tokens: float, seconds: float) -> None:
        """Record the time from the first piece of a reply to its last. A reply in one piece is not a measurement."""
        if tokens > 0 and seconds > 0:
            self.write_tps = _update_average(self.write_tps, tokens / max(seconds, 1e-3))

    def note_late(self, tokens: float, seconds: float) -> None:
        """Record that a model which has answered before took longer than this to read a prompt."""
        if self.read_tps is not None and tokens >= _LEAST_READ:
            self.read_tps = min(self.read_tps, tokens / max(seconds, 1e-3))

    def first_piece_s(self, prompt_tokens: float, timeout_s: float, *, patient: bool) -> float:
        """Return the limit for the first piece of a reply, in seconds.

        Args:
            patient: nobody waits for the reply. The first calls then have time to measure the speed.
        """
        if self.read_tps is None:
            return MOST * timeout_s if patient else timeout_s
        return min(max(timeout_s, MARGIN * prompt_tokens / self.read_tps), MOST * timeout_s)

    def whole_s(self, prompt_tokens: float, reply_tokens: float, timeout_s: float) -> float:
        """Return the limit for a whole reply of at most ``reply_tokens`` that keeps arriving, in seconds."""
        if self.read_tps is None or self.write_tps is None:
            return MOST * timeout_s
        predicted = prompt_tokens / self.read_tps + reply_tokens / self.write_tps
        return min(max(timeout_s, MARGIN * predicted), MOST * timeout_s)


def tokens_in(characters: int) -> float:
    """Return the estimated number of tokens in a text of this length."""
    return characters / CHARACTERS_PER_TOKEN


def _update_average(before: float | None, measured: float) -> float:
    return measured if before is None else (1 - _NEWEST) * before + _NEWEST * measured


class ModelSlots:
    """Places for coroutines, granted by kind and tenant of the current `fairness.Actor`. It belongs to one event loop.

    One tenant takes at most `share_of` the places, and its jobs one place less, so that its questions find one.

    Args:
        places: limit of requests at once.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._reserved = min(1, places - 1)
        """Free places that jobs leave to questions."""
        share, running = share_of(places), Counter[TenantId | None]()
        self._questions: Rotation[asyncio.Future[None]] = Rotation(share, running)
        self._jobs: Rotation[asyncio.Future[None]] = Rotation(max(1, share - self._reserved), running)

    @contextlib.asynccontextmanager
    async def hold_slot(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it."""
        tenant, rotation = current_actor().tenant, self._jobs if current_actor().job else self._questions
        grant = asyncio.get_running_loop().create_future()
        rotation.add(tenant, grant)
        self._grant_slots()
        try:
            await grant
            yield
        finally:
            if grant.done() and not grant.cancelled():
                rotation.done(tenant)
                self._free += 1
                self._grant_slots()

    def _grant_slots(self) -> None:
        for rotation, reserved in ((self._questions, 0), (self._jobs, self._reserved)):
            while self._free > reserved and (waiting := rotation.take()) is not None:
                tenant, grant = waiting
                if grant.done():  # cancelled while it waited
                    rotation.done(tenant)
                    continue
                self._free -= 1
                grant.set_result(None)
