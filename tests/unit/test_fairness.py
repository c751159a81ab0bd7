"""A tenant has at most its share, and waiting tenants are served in rotation. Counted with calls that end on request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.fairness import Actor, FairSlots, FairThreadPool, Rotation, act_for, current_actor, share_of

A, B, C = (TenantId("t_" + letter * 32) for letter in "abc")


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.sampled_from([A, B, None])), max_size=60),
)
def test_rotation(of_tenant: int, steps: list[tuple[str, TenantId | None]]) -> None:
    rotation: Rotation[int] = Rotation(of_tenant)
    waiting: dict[TenantId | None, list[int]] = {A: [], B: [], None: []}
    running: dict[TenantId | None, int] = dict.fromkeys(waiting, 0)
    for number, (step, tenant) in enumerate(steps):
        if step == "add":
            rotation.add(tenant, number)
            waiting[tenant].append(number)
        elif step == "done" and running[tenant]:
            rotation.done(tenant)
            running[tenant] -= 1
        elif step == "take":
            free = {each for each in waiting if waiting[each] and (each is None or running[each] < of_tenant)}
            taken = rotation.take()
            if taken is None:
                assert not free
            else:
                assert taken[0] in free
                assert waiting[taken[0]].pop(0) == taken[1]  # first come, first served within a tenant
                running[taken[0]] += 1
    assert sorted(rotation.drain()) == sorted(number for items in waiting.values() for number in items)


def test_a_tenant_that_arrives_waits_for_one_of_each() -> None:
    rotation: Rotation[str] = Rotation(1_000)
    for number in range(1_000):
        rotation.add(A, f"a{number}")
    assert [rotation.take() for _ in range(2)] == [(A, "a0"), (A, "a1")]
    rotation.add(B, "b0")
    rotation.add(C, "c0")
    rotation.add(B, "b1")
    assert [taken[1] for _ in range(5) if (taken := rotation.take())] == ["a2", "b0", "c0", "a3", "b1"]


def test_shares() -> None:
    assert [share_of(places) for places in (1, 2, 3, 4, 6, 8, 16)] == [1, 2, 3, 3, 5, 6, 12]


class Held:
    """Calls that record their start, and end on request."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._told: dict[str, threading.Event] = {}
        self._changed = threading.Condition()

    def call(self, name: str) -> Callable[[], str]:
        self._told[name] = threading.Event()

        def work() -> str:
            with self._changed:
                self.begun.append(name)
                self._changed.notify_all()
            self._told[name].wait()
            return name

        return work

    def end(self, *names: str) -> None:
        for name in names:
            self._told[name].set()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, timeout=60)


@pytest.fixture
def pool() -> Iterator[FairThreadPool]:
    made = FairThreadPool(4, "fair")
    yield made
    made.shutdown(cancel_futures=True)


async def submitted(pool: FairThreadPool, tenant: TenantId, *calls: Callable[[], str]) -> list[Future[str]]:
    """Submit as a task on behalf of the tenant."""

    async def submit() -> list[Future[str]]:
        act_for(tenant)
        return [pool.submit(each) for each in calls]

    return await asyncio.create_task(submit())


async def test_one_tenant_never_has_every_thread(pool: FairThreadPool) -> None:
    held = Held()
    futures = await submitted(pool, A, *(held.call(f"a{number}") for number in range(10)))
    held.wait_for(3)
    futures += await submitted(pool, B, held.call("b0"))
    held.wait_for(4)  # with none of A's ended
    assert sorted(held.begun) == ["a0", "a1", "a2", "b0"]
    held.end("b0")
    assert await asyncio.wrap_future(futures[-1]) == "b0"
    assert len(held.begun) == 4  # A does not get the thread that B left
    for number in range(10):
        held.end(f"a{number}")
    assert await asyncio.gather(*map(asyncio.wrap_future, futures)) == [*(f"a{number}" for number in range(10)), "b0"]


async def test_calls_fail_end_and_are_cancelled_as_in_any_pool(pool: FairThreadPool) -> None:
    held = Held()
    running = await submitted(pool, A, *(held.call(f"a{number}") for number in range(3)))
    held.wait_for(3)
    (waits,) = await submitted(pool, A, held.call("a3"))
    assert waits.cancel()
    held.end("a0", "a1", "a2")
    await asyncio.gather(*map(asyncio.wrap_future, running))
    (failed,) = await submitted(pool, A, partial(int, "x"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="invalid literal"):
        await asyncio.wrap_future(failed)
    pool.shutdown(cancel_futures=True)
    assert held.begun == ["a0", "a1", "a2"]
    with pytest.raises(RuntimeError):
        pool.submit(int)


async def test_a_closed_pool_leaves_nobody_waiting(pool: FairThreadPool) -> None:
    held = Held()
    futures = await submitted(pool, A, *(held.call(f"a{number}") for number in range(6)))
    held.wait_for(3)
    closing = asyncio.create_task(asyncio.to_thread(pool.shutdown, cancel_futures=True))
    while not futures[-1].cancelled():
        await asyncio.sleep(0)
    held.end("a0", "a1", "a2")
    await closing
    assert [future.cancelled() for future in futures] == [False] * 3 + [True] * 3


async def test_slots() -> None:
    slots, begun = FairSlots(4), list[str]()
    told: dict[str, asyncio.Event] = {}

    async def hold(tenant: TenantId, name: str) -> None:
        act_for(tenant)
        told[name] = asyncio.Event()
        async with slots.hold_slot():
            begun.append(name)
            await told[name].wait()

    def start(tenant: TenantId, *names: str) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(hold(tenant, name)) for name in names]

    tasks = start(A, *(f"a{number}" for number in range(8)))
    await _settled()
    assert begun == ["a0", "a1", "a2"]
    tasks += start(B, "b0", "b1")
    await _settled()
    assert begun[3:] == ["b0"]
    tasks[3].cancel()  # while it waits
    tasks[0].cancel()  # while it holds a place
    await _settled()
    assert begun[4:] == ["b1"]  # the turn of a3, which was cancelled, was A's
    told["a1"].set()
    told["a2"].set()
    await _settled()
    assert begun[5:] == ["a4", "a5"]
    for event in (*told.values(),):
        event.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in ended] == [number in (0, 3) for number in range(10)]
    async with slots.hold_slot(A), slots.hold_slot(A), slots.hold_slot(A), slots.hold_slot(B):
        pass


async def test_who_acts_is_inherited_by_tasks_and_threads() -> None:
    async def request() -> tuple[Actor, Actor]:
        act_for(A, job=True)
        return await asyncio.create_task(_asked()), await asyncio.to_thread(current_actor)

    in_task, in_thread = await asyncio.create_task(request())
    assert in_task is in_thread
    assert (in_task.tenant, in_task.job) == (A, True)
    assert current_actor() == Actor()


async def _asked() -> Actor:
    return current_actor()


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
