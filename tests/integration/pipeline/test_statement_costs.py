"""No statement for one document reads more in a larger corpus, by SQLite's own step counts, which load does not affect."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.stores.catalogue.base import Matching
from agentic_rag_testing.tracing import TraceCounts

FEW, MANY = 3, 60
MAX_RATIO = 1.3
"""Trees grow deeper and pages split. A scan of a table of documents would be 20 times as much."""
LOOKING = ("SELECT jobs.", "UPDATE workflows SET finished_us")
"""Statements of the test's own waiting, and ends of the workflows of earlier documents. Their number depends on the load."""
Steps = dict[str, Counter[str]]


def text_of(number: int, *, more: str = "") -> str:
    return (
        f"# Mill {number:04}\n\nThe Mill{number:04} Works were founded by Anna Weir{number:04} in the town of Ford{number:04}. "
        f"Anna Weir{number:04} sold the Mill{number:04} Works to the Ford{number:04} Council.{more}\n"
    )


async def fill(application: Any, numbers: range) -> None:
    submitted = [await application.submit(text_of(number), key=f"mill-{number}") for number in numbers]
    for each in submitted:
        assert (await application.ended(each.job)).state == "succeeded"


async def steps_of_one(application: Any, trace: TraceCounts, number: int) -> Steps:
    """Add, update and delete a document. Return the steps of each by statement."""

    async def add() -> Job | None:
        return (await application.submit(text_of(number), key="one")).job  # type: ignore[no-any-return]

    async def update() -> Job | None:
        return (await application.submit(text_of(number, more=" The wheel was broken."), key="one")).job  # type: ignore[no-any-return]

    async def delete() -> Job | None:
        (held,) = (
            await application.container.catalogue.documents.documents(application.tenant, Matching(key="one"), limit=1)
        ).items
        return await application.container.ingestion.delete(application.tenant, held.id)  # type: ignore[no-any-return]

    found: Steps = {}
    for do in (add, update, delete):
        trace.take()
        assert (await ended(application, do)).state == "succeeded"
        counts = trace.take()
        found[do.__name__] = Counter({name: count for name, count in counts["steps"].items() if not name.startswith(LOOKING)})
    return found


async def ended(application: Any, do: Callable[[], Awaitable[Job | None]]) -> Job:
    """Wait for the end of the job that ``do`` enqueues."""
    job = await do()
    assert job is not None
    async with asyncio.timeout(120):
        while not (held := await application.job(job)).state.ended:
            await asyncio.sleep(0.05)
    return held  # type: ignore[no-any-return]


@pytest.mark.slow
async def test_one_document_costs_the_same_among_many(opens: Callable[..., Any]) -> None:
    trace = TraceCounts()
    with trace.watching_sqlite():
        async with opens() as application:
            await fill(application, range(FEW))
            few = await steps_of_one(application, trace, 9001)
            await fill(application, range(FEW, MANY))
            many = await steps_of_one(application, trace, 9001)
    for operation, steps in many.items():
        before = few[operation]
        grown = {statement: (before[statement], count) for statement, count in steps.items() if count > before[statement] + 200}
        assert not grown, f"{operation}: {grown}"
        assert steps.total() <= MAX_RATIO * before.total(), operation
        assert before.total() > 500, "steps are counted"


async def test_a_scan_is_noticed(opens: Callable[..., Any]) -> None:
    trace = TraceCounts()
    with trace.watching_sqlite():
        async with opens() as application:
            counts = []
            for numbers in (range(2), range(2, 40)):
                await fill(application, numbers)
                trace.take()
                await application.container.catalogue.documents.visible_versions(application.tenant)
                counts.append(sum(trace.take()["steps"].values()))
    assert counts[1] > counts[0] + 100
