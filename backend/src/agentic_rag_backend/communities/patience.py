"""Try again while a store does not answer: a rebuild of minutes is not lost to a restart of seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from agentic_rag_backend.errors import StoreLocked, StoreUnavailable

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0
_LOOK_S = 1.0
"""Seconds between two looks whether to stop waiting."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """Waits for stores, ``limit_s`` seconds from the first failure on; 0: not at all."""

    limit_s: float = 0.0

    async def persist(self, work: Callable[[], Awaitable[T]], say: Callable[[str], Awaitable[None]] | None = None) -> T:
        """Return what ``work`` returns; after a failure of a store it is done again from its beginning.

        Args:
            say: told every second what is waited for; whatever it raises ends the wait, but that a store does not answer.

        Raises:
            StoreUnavailable: the store did not come back in time.
        """
        loop = asyncio.get_running_loop()
        pause_s, given_up_at = _FIRST_PAUSE_S, None
        while True:
            try:
                return await work()
            except StoreLocked:
                raise
            except StoreUnavailable as error:
                given_up_at = given_up_at if given_up_at is not None else loop.time() + self.limit_s
                if loop.time() + pause_s > given_up_at:
                    raise
                reason = error.message
            _log.info("rebuild_waits", pause_s=pause_s, reason=reason)
            await _wait(pause_s, f"waiting for a store to answer again: {reason}", say)
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


async def _wait(pause_s: float, message: str, say: Callable[[str], Awaitable[None]] | None) -> None:
    while pause_s > 0:
        try:
            if say is not None:
                await say(message)
        except StoreUnavailable as error:
            _log.debug("rebuild_wait_not_told", reason=error.message)
        await asyncio.sleep(min(pause_s, _LOOK_S))
        pause_s -= _LOOK_S
