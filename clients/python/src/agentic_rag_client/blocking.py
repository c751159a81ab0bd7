"""Run coroutines that never wait, without an event loop.

The operations are written once, as coroutines. In a blocking client, their transport blocks instead of waiting, so a
coroutine runs to its end in one step.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits.

    Raises:
        RuntimeError: the coroutine waits for something else than a blocking transport.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        coroutine.close()
    raise RuntimeError("a blocking client waited for an event loop")


def iterate_to_end(generator: AsyncGenerator[T, None]) -> Iterator[T]:
    """Yield the values of an asynchronous generator that never waits, and close it at the end."""

    async def advance() -> T:
        return await anext(generator)

    try:
        while True:
            try:
                value = run_to_end(advance())
            except StopAsyncIteration:
                return
            yield value
    finally:
        run_to_end(generator.aclose())
