"""Put summaries on record as they are written: what a model was paid for is not lost with the process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.communities.writing import Written
from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.domain.graph import CommunitySummary

_LOOK_AGAIN_S = 0.5


@dataclass(slots=True)
class Tally:
    """What writing summaries came to, for a job's result; ``failed`` and ``rewritten`` name those that are new."""

    written: int = 0
    reused: int = 0
    failed: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def count(self, id: str, written: Written) -> None:
        """Count one that was written, or that the extractive one took the place of."""
        self.usage += written.usage
        self.rewritten.append(id)
        if written.failure is None:
            self.written += 1
        else:
            self.failed.append(id)

    def details(self) -> dict[str, Any]:
        """Return what a generation's details say of it."""
        return {
            "summaries_written": self.written,
            "summaries_reused": self.reused,
            "summaries_failed": self.failed,
            **calls_and_tokens(self.usage),
        }


def calls_and_tokens(usage: Usage) -> dict[str, int]:
    """Return what a rebuild took of a model, or would."""
    return {
        "model_calls": usage.calls,
        "model_calls_failed": usage.failed_calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


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
