from __future__ import annotations

import asyncio

import pytest

from agentic_rag_backend.retrieval.caching import SingleFlight


class Work:
    """Counts its runs, waits for its release, and knows whether it was cancelled."""

    def __init__(self) -> None:
        self.runs = 0
        self.cancelled = 0
        self.release = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.runs += 1
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return self.runs


async def begun(flights: SingleFlight[int], work: Work, count: int) -> list[asyncio.Task[tuple[int, bool]]]:
    tasks = [asyncio.create_task(flights.run("key", work)) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_equal_calls_share_one_run() -> None:
    flights, work = SingleFlight[int](), Work()
    tasks = await begun(flights, work, 3)
    work.release.set()
    assert await asyncio.gather(*tasks) == [(1, False), (1, True), (1, True)]
    assert await flights.run("key", work) == (2, False), "nothing is kept"


@pytest.mark.parametrize("gone", [0, 1])
async def test_a_cancelled_caller_leaves_the_work_to_the_others(gone: int) -> None:
    flights, work = SingleFlight[int](), Work()
    tasks = await begun(flights, work, 2)
    tasks[gone].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[gone]
    work.release.set()
    assert (await tasks[1 - gone])[0] == 1
    assert (work.runs, work.cancelled) == (1, 0)


async def test_the_last_caller_cancels_the_work() -> None:
    flights, work = SingleFlight[int](), Work()
    for task in (tasks := await begun(flights, work, 2)):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    (later,) = await begun(flights, work, 1)
    assert (work.runs, work.cancelled) == (2, 1)
    work.release.set()
    assert await later == (2, False)


async def test_an_error_reaches_every_caller() -> None:
    flights, work = SingleFlight[int](), Work()
    work.error = ValueError("broken")
    tasks = await begun(flights, work, 2)
    work.release.set()
    assert [type(each) for each in await asyncio.gather(*tasks, return_exceptions=True)] == [ValueError, ValueError]
