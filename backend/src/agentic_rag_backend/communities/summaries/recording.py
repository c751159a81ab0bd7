"""Save each summary as soon as it is written, so that paid model output survives the end of the process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentic_rag_backend.communities.summaries.summary_writing import WrittenSummary
from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.usage import Usage, calls_and_tokens
from agentic_rag_backend.errors import ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.jobs.base import is_transient

_RECHECK_INTERVAL_S = 0.5


@dataclass(slots=True)
class SummaryTally:
    """The totals of writing summaries, for a job's result; ``failed`` and ``rewritten`` name the new summaries."""

    written: int = 0
    reused: int = 0
    failed: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def count_summary(self, id: str, written_summary: WrittenSummary) -> None:
        """Count a summary that was written, or replaced by an extractive one."""
        self.usage += written_summary.usage
        self.rewritten.append(id)
        if written_summary.failure is None:
            self.written += 1
        else:
            self.failed.append(id)

    def make_details(self) -> dict[str, Any]:
        """Return the totals for a generation's details."""
        return {
            "summaries_written": self.written,
            "summaries_reused": self.reused,
            "summaries_failed": self.failed,
            **calls_and_tokens(self.usage),
        }


Save = Callable[[list[CommunitySummary]], Awaitable[None]]


def count_levels(levels: Iterable[int]) -> dict[str, int]:
    """Return the number of items of each level, the lowest level first."""
    return {str(level): count for level, count in sorted(Counter(levels).items())}


async def write_summaries(
    writers: Sequence[Callable[[], Awaitable[WrittenSummary]]],
    save: Save,
    recheck: Callable[[], Awaitable[None]],
    wait_for_model: Callable[[ModelUnavailable], Awaitable[bool]],
) -> list[WrittenSummary]:
    """Return every writer's result; each summary is saved as soon as it is written. An unavailable model is asked again.

    Args:
        recheck: called twice a second; an exception from it ends the writers.
        wait_for_model: pauses before the next attempt; returns False once extractive summaries have to do.
    """
    summaries: dict[int, WrittenSummary] = {}
    remaining = list(range(len(writers)))
    while remaining:
        written_summaries = await _gather_summaries(
            [asyncio.ensure_future(writers[number]()) for number in remaining], save, recheck
        )
        for number, written_summary in zip(remaining, written_summaries, strict=True):
            spent = summaries[number].usage if number in summaries else Usage()
            summaries[number] = replace(written_summary, usage=spent + written_summary.usage)
        remaining = [number for number in remaining if _model_away(summaries[number])]
        reason = summaries[remaining[0]].failure if remaining else None
        if reason is None or not await wait_for_model(reason):
            break
    if remaining:
        await save([summaries[number].summary for number in remaining])
    return [summaries[number] for number in range(len(writers))]


def _model_away(written_summary: WrittenSummary) -> bool:
    """Return whether the model may write the summary later. An invalid reply is not repeated: each one costs."""
    failure = written_summary.failure
    return failure is not None and is_transient(failure) and not isinstance(failure, ModelReplyInvalid)


async def _gather_summaries(
    tasks: Sequence[asyncio.Future[WrittenSummary]], save: Save, recheck: Callable[[], Awaitable[None]]
) -> list[WrittenSummary]:
    """Return every task's result. Any exception during the wait cancels the tasks."""
    now = asyncio.get_running_loop().time
    looked = now()
    try:
        pending = set(tasks)
        while pending:
            done_tasks, pending = await asyncio.wait(pending, timeout=_RECHECK_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            # A failed task must not lose the results of tasks that ended in the same wait.
            results = [task.result() for task in done_tasks if task.exception() is None]
            saved = [result.summary for result in results if not _model_away(result)]
            if saved:
                await save(saved)
            if pending and now() - looked >= _RECHECK_INTERVAL_S:
                await recheck()
                looked = now()
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
