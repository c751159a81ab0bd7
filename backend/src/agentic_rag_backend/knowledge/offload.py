"""Runs pure functions of values off the event loop.

A function whose cost depends on a document must not run on the loop of the serving process. `Offload` is the port. Its adapter
in `ingestion.isolation` runs the function in a child process with limits of time and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")

SMALL_ITEMS = 1_000
"""Calls with fewer items take less than about 10 ms. They run in place: a call of a child process costs 2 ms."""


class Offload(Protocol):
    """Runs a pure function of picklable values."""

    async def __call__(self, function: Callable[..., T], *arguments: object, items: int) -> T:
        """Return ``function(*arguments)``.

        Args:
            function: a function that `ingestion.isolation.calls` registers.
            items: number of values that the function reads. Its cost is at most about proportional to them.

        Raises:
            ResourceLimit: the function took too much time or memory.
        """


async def run_in_place(function: Callable[..., T], *arguments: object, items: int) -> T:
    """`Offload` on the calling thread, for tools that serve nobody else."""
    del items
    return function(*arguments)
