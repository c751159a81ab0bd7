"""Equal work at the same time is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    """Running work, and the number of its callers."""

    task: asyncio.Task[T]
    callers: int = 0


class SingleFlight(Generic[T]):
    """Lets overlapping calls with equal keys share one run of the work. Nothing is kept afterwards.

    The work is a task of its own. A caller that is cancelled leaves it to the others, and the last caller cancels it. An error
    reaches every caller.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """Return the result of ``work``, and whether another caller had begun it."""
        flight = self._flights.get(key)
        joined = flight is not None
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(work()))
            flight.task.add_done_callback(lambda _: self._leave(key, flight))
        flight.callers += 1
        try:
            return await asyncio.shield(flight.task), joined
        finally:
            flight.callers -= 1
            if flight.callers == 0 and not flight.task.done():
                self._leave(key, flight)  # a new caller must not join work that is being cancelled
                flight.task.cancel()

    def _leave(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if flight.task.done() and not flight.task.cancelled():
            flight.task.exception()  # Retrieve the error, or asyncio logs it as never retrieved if all callers were cancelled.
