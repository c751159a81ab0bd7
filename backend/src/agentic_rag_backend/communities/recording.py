"""Put summaries on record as they are written: what a model was paid for is not lost with the process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agentic_rag_backend.communities.writing import Written
from agentic_rag_backend.domain.graph import CommunitySummary

_LOOK_AGAIN_S = 0.5


async def all_recorded(
    tasks: Sequence[asyncio.Future[Written]],
    save: Callable[[list[CommunitySummary]], Awaitable[None]],
    look: Callable[[], Awaitable[None]],
) -> list[Written]:
    """Return what every task wrote, saved as soon as it was there; whatever ends the wait ends the tasks.

    Args:
        look: called twice a second; raises where to stop.
    """
    now = asyncio.get_running_loop().time
    looked = now()
    try:
        pending = set(tasks)
        while pending:
            done, pending = await asyncio.wait(pending, timeout=_LOOK_AGAIN_S, return_when=asyncio.FIRST_COMPLETED)
            # One that failed takes nothing away from those that ended beside it.
            written = [task.result().summary for task in done if task.exception() is None]
            if written:
                await save(written)
            if pending and now() - looked >= _LOOK_AGAIN_S:
                await look()
                looked = now()
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
