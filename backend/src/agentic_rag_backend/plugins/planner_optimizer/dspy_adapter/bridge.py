"""Calls from DSPy's threads into the event loop of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(BaseException):
    """Ends an optimizer. It is no `Exception`, since optimizers catch every exception and go on with the next candidate."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Bridge:
    """Runs coroutines on an event loop, for other threads. Any error there ends the optimizer.

    DSPy copies programs and models with all that they hold: a copy of a bridge is the bridge itself.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __deepcopy__(self, memo: dict[int, Any]) -> Bridge:
        return self

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine.

        Raises:
            Stopped: the coroutine failed.
        """
        if self._loop.is_closed():
            coroutine.close()
            raise Stopped(RuntimeError("the event loop is closed"))
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except Exception as error:
            raise Stopped(error) from error
