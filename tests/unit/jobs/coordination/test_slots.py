"""The order in which workflows get slots."""

from __future__ import annotations

import asyncio

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.recovery import Caution
from agentic_rag_backend.jobs.coordination.slots import Slots, lend_places
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLocks

A, B = TenantId.new(), TenantId.new()
PREPARE, COMMIT = QueueName.PREPARE, QueueName.COMMIT


class _LockState:
    """Workflows that keep their slot until released."""

    def __init__(self) -> None:
        self.slots = Slots(2, 8, TenantLocks())
        self.inside: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leave: dict[str, asyncio.Event] = {}

    async def asks(self, name: str, caution: Caution = Caution.NONE, *, queue: QueueName = PREPARE, tenant: TenantId = A) -> None:
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._stay(name, queue, tenant, caution))
        await _settled()

    async def leaves(self, name: str) -> None:
        self._leave[name].set()
        await self._tasks[name]
        await _settled()

    async def is_cancelled(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await _settled()

    async def steps_aside(self, name: str, *, tenant: TenantId = A) -> None:
        """Make a workflow take a slot and lend it to others until released."""
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._stand_aside(name, tenant))
        await _settled()

    async def comes_back(self, name: str) -> None:
        self._leave[name].set()
        await _settled()

    async def _stand_aside(self, name: str, tenant: TenantId) -> None:
        async with self.slots.hold_place(PREPARE, tenant, Caution.NONE):
            async with lend_places():
                await self._leave[name].wait()
            self._leave[name].clear()
            await self._be_inside(name)

    async def _stay(self, name: str, queue: QueueName, tenant: TenantId, caution: Caution) -> None:
        async with self.slots.hold_place(queue, tenant, caution):
            await self._be_inside(name)

    async def _be_inside(self, name: str) -> None:
        self.inside.append(name)
        try:
            await self._leave[name].wait()
        finally:
            self.inside.remove(name)


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_places_of_a_tenant_are_given_in_order() -> None:
    place = _LockState()
    for name in "abcd":
        await place.asks(name)
    await place.asks("other", tenant=B)
    assert place.inside == ["a", "b", "other"]
    await place.leaves("b")
    assert place.inside == ["a", "other", "c"]


async def test_suspects_go_one_at_a_time_beside_the_others() -> None:
    place = _LockState()
    await place.asks("first", Caution.NO_OTHER_SUSPECT, queue=COMMIT)
    await place.asks("second", Caution.NO_OTHER_SUSPECT, queue=COMMIT, tenant=B)
    await place.asks("plain", queue=COMMIT, tenant=B)  # not blocked by a waiting suspect of its tenant
    assert place.inside == ["first", "plain"]
    await place.leaves("plain")
    assert place.inside == ["first"]
    await place.leaves("first")
    assert place.inside == ["second"]


async def test_what_must_be_alone_is_alone() -> None:
    place = _LockState()
    await place.asks("before")
    await place.asks("alone", Caution.ALONE, tenant=B)
    await place.asks("after")
    await place.asks("suspect", Caution.NO_OTHER_SUSPECT)
    assert place.inside == ["before"]
    await place.leaves("before")
    assert place.inside == ["alone"]
    await place.leaves("alone")
    assert place.inside == ["after", "suspect"]


async def test_a_waiting_one_that_is_cancelled_holds_nobody_up() -> None:
    place = _LockState()
    await place.asks("before")
    await place.asks("alone", Caution.ALONE)
    await place.asks("after", tenant=B)
    assert place.inside == ["before"]
    await place.is_cancelled("alone")
    assert place.inside == ["before", "after"]
    await place.asks("alone again", Caution.ALONE)
    await place.leaves("before")
    await place.leaves("after")
    assert place.inside == ["alone again"]
    await place.is_cancelled("alone again")
    await place.asks("last")
    assert place.inside == ["last"]


async def test_one_that_steps_aside_leaves_its_place_and_takes_it_again() -> None:
    place = _LockState()
    await place.steps_aside("rebuild")
    for name in "abc":
        await place.asks(name)
    assert place.inside == ["a", "b"]
    await place.comes_back("rebuild")
    assert place.inside == ["a", "b"], "it waits for a place like any other"
    await place.leaves("a")
    await place.leaves("c")
    assert place.inside == ["b", "rebuild"]
    await place.leaves("rebuild")
    await place.leaves("b")


async def test_one_that_is_cancelled_aside_ends_at_once_and_gives_no_place_back_that_it_left() -> None:
    place = _LockState()
    await place.steps_aside("rebuild")
    for name in "abc":
        await place.asks(name)
    await place.is_cancelled("rebuild")
    assert place.inside == ["a", "b"]
    await place.leaves("a")
    assert place.inside == ["b", "c"]


async def test_one_that_is_cancelled_on_its_way_back_gives_no_place_back_that_it_left() -> None:
    place = _LockState()
    await place.steps_aside("rebuild")
    for name in "abc":
        await place.asks(name)
    await place.comes_back("rebuild")
    await place.is_cancelled("rebuild")
    assert place.inside == ["a", "b"]
    await place.leaves("a")
    assert place.inside == ["b", "c"]
