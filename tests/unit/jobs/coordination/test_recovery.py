"""Workflows that kill their process are found, and innocent ones are spared, in any combination."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.recovery import (
    ALONE_AFTER,
    GIVEN_UP_AFTER,
    SUSPECT_AFTER,
    Caution,
    choose_caution,
    plan_recovery,
)
from agentic_rag_backend.jobs.coordination.slots import Slots
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLocks

TENANTS = (TenantId.new(), TenantId.new())


def test_what_did_not_run_is_not_blamed() -> None:
    planned = plan_recovery({"a", "b"}, {"a", "ended"}, {"b": 1})
    assert (planned.resumed, planned.given_up, planned.kills) == ({"a", "b"}, frozenset(), {"a": 1, "b": 1})


def test_it_is_given_up_once_it_was_there_too_often() -> None:
    planned = plan_recovery({"a", "b"}, {"a", "b"}, {"a": GIVEN_UP_AFTER - 1, "b": GIVEN_UP_AFTER - 2})
    assert (planned.resumed, planned.given_up) == ({"b"}, {"a"})
    again = plan_recovery({"a"}, set(), planned.kills)  # the process ended before it was reported
    assert again.given_up == {"a"}


def test_the_more_often_the_less_beside_it() -> None:
    assert [choose_caution(kills) for kills in (0, SUSPECT_AFTER - 1, SUSPECT_AFTER, ALONE_AFTER - 1, ALONE_AFTER, 99)] == [
        Caution.NONE,
        Caution.NONE,
        Caution.NO_OTHER_SUSPECT,
        Caution.NO_OTHER_SUSPECT,
        Caution.ALONE,
        Caution.ALONE,
    ]


@dataclass
class _World:
    """Workflows in processes that end when a killer has run long enough. `kills` and the ended workflows survive."""

    workflows: int
    killers: frozenset[int]
    slots: int
    random: random.Random
    kills: dict[str, int] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    restarts: int = 0

    def live(self) -> None:
        """Start processes until one has no work left."""
        while not asyncio.run(self._process()):
            self.restarts += 1
            assert self.restarts <= len(self.killers) * GIVEN_UP_AFTER

    async def _process(self) -> bool:
        slots = Slots(self.slots, self.slots + 1, TenantLocks())
        left = [str(number) for number in range(self.workflows) if str(number) not in self.ended | self.given_up]
        running: set[str] = set()
        at_the_end: set[str] = set()
        over = asyncio.Event()

        async def work(workflow: str) -> None:
            number = int(workflow)
            queue, tenant = (QueueName.COMMIT if number % 5 == 0 else QueueName.PREPARE), TENANTS[number % 2]
            careful = choose_caution(self.kills.get(workflow, 0))
            async with slots.hold_place(queue, tenant, careful):
                running.add(workflow)
                for _ in range(self.random.randrange(4)):
                    await asyncio.sleep(0)
                    if careful is Caution.ALONE:
                        assert running == {workflow}
                if number in self.killers:
                    at_the_end.update(running)
                    over.set()
                if over.is_set():
                    await asyncio.Event().wait()  # nothing happens in a dead process
                running.discard(workflow)
                self.ended.add(workflow)
            if len(self.ended | self.given_up) == self.workflows:
                over.set()

        self.random.shuffle(left)
        tasks = [asyncio.create_task(work(workflow)) for workflow in left]
        if tasks:
            async with asyncio.timeout(10):
                await over.wait()
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(outcome is None or isinstance(outcome, asyncio.CancelledError) for outcome in outcomes), outcomes
        if not at_the_end:
            return True
        planned = plan_recovery([workflow for workflow in left if workflow not in self.ended], at_the_end, self.kills)
        self.kills = dict(planned.kills)
        self.given_up |= planned.given_up
        return False


@settings(max_examples=150)
@given(data=st.data(), workflows=st.integers(1, 20), slots=st.integers(1, 8), seed=st.integers(0, 2**32))
def test_killers_are_given_up_and_nobody_else(data: st.DataObject, workflows: int, slots: int, seed: int) -> None:
    killers = data.draw(st.frozensets(st.integers(0, workflows - 1), max_size=8))
    world = _World(workflows, killers, slots, random.Random(seed))
    world.live()
    assert world.given_up == {str(number) for number in killers}
    assert world.ended == {str(number) for number in range(workflows)} - world.given_up
