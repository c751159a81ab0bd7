"""Places at a model: questions before jobs, tenants in turn, and nothing lost when a caller leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.fairness import act_for
from agentic_rag_backend.models.pace import ModelSlots

A, B = (TenantId("t_" + letter * 32) for letter in "ab")


class Callers:
    """Callers of a model. ``started`` lists their names in the order in which they got a place."""

    def __init__(self, places: int) -> None:
        self._slots = ModelSlots(places)
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.started: list[str] = []

    async def call(self, name: str, tenant: TenantId = A, *, job: bool = False) -> None:
        """Start a caller, and let everything run that can."""
        self._ends[name] = asyncio.Event()

        async def work() -> None:
            act_for(tenant, job=job)
            async with self._slots.hold_slot():
                self.started.append(name)
                await self._ends[name].wait()

        self.tasks[name] = asyncio.create_task(work())
        await settled()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self.tasks[name]
        await settled()

    async def leave(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.gather(self.tasks[name], return_exceptions=True)
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@asynccontextmanager
async def opened(places: int) -> AsyncIterator[Callers]:
    callers = Callers(places)
    yield callers
    for name in callers.tasks:
        await callers.leave(name)


async def test_with_one_place_a_question_waits_for_at_most_one_call_of_a_job() -> None:
    async with opened(1) as callers:
        for number in range(5):
            await callers.call(f"job {number}", job=True)
        await callers.call("question", B)
        await callers.end("job 0")
        assert callers.started == ["job 0", "question"]
        await callers.end("question")
        assert callers.started[2:] == ["job 1"]


@pytest.mark.parametrize("places", [2, 3, 8])
async def test_jobs_leave_the_last_free_place_to_questions(places: int) -> None:
    async with opened(places) as callers:
        for number in range(2 * places):
            await callers.call(f"job {number}", (A, B)[number % 2], job=True)
        assert len(callers.started) == places - 1
        await callers.call("question")
        assert callers.started[-1] == "question"
        await callers.end("job 0")
        assert len(callers.started) == places, "the free place is the last one"


async def test_a_tenants_jobs_leave_a_place_of_its_share_to_its_questions_and_others_get_the_rest() -> None:
    async with opened(8) as callers:
        for number in range(8):
            await callers.call(f"a job {number}", job=True)
        assert len(callers.started) == 5
        for number in range(8):
            await callers.call(f"a question {number}")
        assert callers.started[5:] == ["a question 0"]
        await callers.call("b question", B)
        await callers.call("b job", B, job=True)
        assert callers.started[6:] == ["b question"], "a job leaves the last free place"
        await callers.end("a job 0")
        assert callers.started[7:] == ["a question 1"]


async def test_a_caller_that_leaves_the_queue_or_its_place_frees_it() -> None:
    async with opened(1) as callers:
        await callers.call("first")
        await callers.call("second")
        await callers.call("third", B)
        await callers.leave("second")
        await callers.leave("first")
        assert callers.started == ["first", "third"]
