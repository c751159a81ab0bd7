"""Mutual exclusion of a tenant's work over several processes, including stopped and resumed ones, and its cost."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs.coordination import tenant_locks as module
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock, TenantLocks, confirm_lock, current_fence, lock_lost
from agentic_rag_backend.stores.catalogue.base import Fence

A, B = TenantId.new(), TenantId.new()


class Table:
    """Leases as a database keeps them, with the current workers. Counts its calls."""

    def __init__(self) -> None:
        self.workers: set[str] = set()
        self.held: dict[tuple[TenantId, str], tuple[str | None, int, bool]] = {}
        self.asked: Counter[str] = Counter()
        self.away = False

    async def take(self, tenant: TenantId, name: str, executor_id: str) -> Fence | None:
        await self._answer("take")
        holder, number, _ = self.held.get((tenant, name), (None, 0, False))
        if executor_id not in self.workers:
            return None
        if holder not in (None, executor_id) and holder in self.workers:
            self.held[tenant, name] = (holder, number, True)
            return None
        self.held[tenant, name] = (executor_id, number + 1, False)
        return Fence(name, number + 1)

    async def give_up(self, tenant: TenantId, fence: Fence) -> bool:
        await self._answer("give_up")
        _, number, wanted = self.held[tenant, fence.name]
        if number != fence.number:
            return False
        self.held[tenant, fence.name] = (None, number, wanted)
        return wanted

    async def holds(self, tenant: TenantId, fence: Fence) -> bool:
        await self._answer("holds")
        holder, number, _ = self.held[tenant, fence.name]
        return number == fence.number and holder in self.workers

    async def lead(self, name: str, executor_id: str) -> bool:
        raise AssertionError("nobody asks")

    async def _answer(self, what: str) -> None:
        self.asked[what] += 1
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("away")


@dataclass
class Process:
    """A worker. A stopped worker does nothing, and another one takes over."""

    executor_id: str
    table: Table
    sure_until: float = field(default_factory=lambda: time.monotonic() + 1000)

    def __post_init__(self) -> None:
        self.table.workers.add(self.executor_id)
        self.tenant_locks = TenantLocks(self.table, self)

    def is_buried(self) -> None:
        """Count the worker as dead. It notices later."""
        self.table.workers.discard(self.executor_id)
        self.sure_until = time.monotonic()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_INTERVAL_S", "YIELD_S", "RETRY_S"):
        monkeypatch.setattr(module, name, 0.001)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_process_that_is_alone_asks_nobody() -> None:
    tenant_locks = TenantLocks()
    order: list[int] = []

    async def commit(number: int) -> None:
        async with tenant_locks.hold_lock(TenantLock.COMMIT, A):
            order.append(number)
            assert current_fence() is None
            await confirm_lock()
            await asyncio.sleep(0)

    await asyncio.gather(*(commit(number) for number in range(20)))
    assert order == list(range(20))


async def test_what_waits_in_one_process_shares_a_lease() -> None:
    process = Process("one", Table())
    order: list[int] = []

    async def commit(number: int) -> None:
        async with process.tenant_locks.hold_lock(TenantLock.COMMIT, A):
            order.append(number)
            await confirm_lock()
            await asyncio.sleep(0)

    await asyncio.gather(*(commit(number) for number in range(50)))
    await _until(lambda: process.table.asked["give_up"] == 1)
    assert order == list(range(50))
    assert process.table.asked == {"take": 1, "give_up": 1}
    assert process.table.held[A, "commit"][0] is None


async def test_a_lease_that_another_process_wants_is_let_go_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUANTUM_S", 0.02)
    monkeypatch.setattr(module, "YIELD_S", 0.05)
    table = Table()
    busy, other = Process("busy", table), Process("other", table)
    done: list[str] = []

    async def commit(process: Process) -> None:
        async with process.tenant_locks.hold_lock(TenantLock.COMMIT, A):
            done.append(process.executor_id)
            await asyncio.sleep(0.002)

    many = [asyncio.create_task(commit(busy)) for _ in range(200)]
    await _until(lambda: bool(done))
    await commit(other)
    assert 0 < done.count("busy") < 200
    await asyncio.gather(*many)
    assert done.count("busy") == 200


async def test_who_was_taken_for_dead_writes_nothing() -> None:
    table = Table()
    zombie, other = Process("zombie", table), Process("other", table)
    written: list[str] = []
    woken = asyncio.Event()

    async def stopped() -> None:
        async with zombie.tenant_locks.hold_lock(TenantLock.COMMIT, A):
            await confirm_lock()
            written.append("zombie")
            await woken.wait()
            try:
                await confirm_lock()
            finally:
                assert lock_lost()
            written.append("zombie again")

    task = asyncio.create_task(stopped())
    await _until(lambda: written == ["zombie"])
    zombie.is_buried()
    async with other.tenant_locks.hold_lock(TenantLock.COMMIT, A):
        woken.set()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        await confirm_lock()
        written.append("other")
    assert written == ["zombie", "other"]
    assert not lock_lost()


async def test_a_turn_that_is_not_awaited_any_more_is_given_up() -> None:
    table = Table()
    one, other = Process("one", table), Process("other", table)
    for _ in range(4):  # cancelled at any moment
        for steps in range(6):

            async def held() -> None:
                async with one.tenant_locks.hold_lock(TenantLock.COMMIT, A):
                    await asyncio.sleep(60)

            task = asyncio.create_task(held())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with asyncio.timeout(20), other.tenant_locks.hold_lock(TenantLock.COMMIT, A):
                pass


async def test_one_who_gives_up_waiting_leaves_no_lease_behind() -> None:
    table = Table()
    one, other = Process("one", table), Process("other", table)
    async with one.tenant_locks.hold_lock(TenantLock.COMMIT, A):
        waiting = asyncio.create_task(_pass(one))
        await asyncio.sleep(0.01)
    waiting.cancel()  # it was next: the lease was kept for it
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(20):
        await _pass(other)


async def _pass(process: Process) -> None:
    async with process.tenant_locks.hold_lock(TenantLock.COMMIT, A):
        pass


async def test_a_database_that_is_away_is_waited_for() -> None:
    table = Table()
    one, other = Process("one", table), Process("other", table)
    table.away = True
    waiting = asyncio.create_task(_pass(one))
    await _until(lambda: table.asked["take"] > 2)
    table.away = False
    await waiting
    async with one.tenant_locks.hold_lock(TenantLock.COMMIT, A):
        table.away = True
    await _until(lambda: table.asked["give_up"] > 2)
    table.away = False
    async with asyncio.timeout(20):
        await _pass(other)


class _NeverAsks(TenantLocks):
    """Continues with a turn without confirming it."""

    @contextlib.asynccontextmanager
    async def hold_lock(self, tenant_lock: TenantLock, tenant: TenantId) -> AsyncIterator[module.HeldLock]:
        async with super().hold_lock(tenant_lock, tenant) as holding:
            holding.fence = None
            yield holding


class _LetsGoEarly(TenantLocks):
    """Gives a lease up right after taking it."""

    async def _renew_lease(self, place: module._LockState, tenant_lock: TenantLock, tenant: TenantId) -> None:
        await super()._renew_lease(place, tenant_lock, tenant)
        assert place.fence is not None
        await self._give_up(tenant, place.fence)


class _Alone(TenantLocks):
    """Behaves like a sole process."""

    def __init__(self, leases: object, lessee: object) -> None:
        super().__init__()


@dataclass(frozen=True)
class Step:
    """The next step: a process begins a commit of a tenant, continues its work, is declared dead, or resumes."""

    what: str
    process: int
    tenant: int


STEPS = st.lists(
    st.builds(
        Step, st.sampled_from(["begin", "begin", "write", "write", "bury", "return"]), st.integers(0, 2), st.integers(0, 1)
    ),
    min_size=5,
    max_size=40,
)


async def _played(steps: list[Step], make: type[TenantLocks] = TenantLocks) -> list[tuple[TenantId, int, int]]:
    """Return the writes in order: tenant, and number and count of a holding.

    Every commit writes on request and confirms its turn first. No process stops between the confirmation and the write.
    """
    table = Table()
    processes = [Process(f"{number}", table) for number in range(3)]
    for process in processes:
        process.tenant_locks = make(table, process)
    written: list[tuple[TenantId, int, int]] = []
    goes: dict[tuple[int, int], asyncio.Queue[None]] = {}
    tasks: list[asyncio.Task[None]] = []

    async def commit(number: int, tenant: int, holding: int) -> None:
        of = (A, B)[tenant]
        told = goes.setdefault((number, tenant), asyncio.Queue())
        async with processes[number].tenant_locks.hold_lock(TenantLock.COMMIT, of):
            for count in range(3):
                await told.get()
                await confirm_lock()
                written.append((of, holding, count))

    for holding, step in enumerate(steps):
        process = processes[step.process]
        if step.what == "begin":
            tasks.append(asyncio.create_task(commit(step.process, step.tenant, holding)))
        elif step.what == "write":
            goes.setdefault((step.process, step.tenant), asyncio.Queue()).put_nowait(None)
        elif step.what == "bury":
            process.is_buried()
        elif process.executor_id not in table.workers:
            process.executor_id += "'"
            process.sure_until = time.monotonic() + 1000
            table.workers.add(process.executor_id)
        await asyncio.sleep(0.002)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for process in processes:
        await process.tenant_locks.close()
    return written


def _interleaved(written: list[tuple[TenantId, int, int]]) -> list[tuple[TenantId, int, int]]:
    """Return the writes of a holding after another holding of the same tenant had begun to write."""
    current: dict[TenantId, int] = {}
    over: set[int] = set()
    late = []
    for tenant, holding, count in written:
        if holding in over:
            late.append((tenant, holding, count))
        elif current.get(tenant, holding) != holding:
            over.add(current[tenant])
        current[tenant] = holding
    return late


@settings(max_examples=60)
@given(steps=STEPS)
def test_writes_of_a_tenant_never_mix(steps: list[Step]) -> None:
    assert _interleaved(asyncio.run(_played(steps))) == []


ZOMBIE = [
    Step("begin", 0, 0),
    Step("write", 0, 0),
    Step("bury", 0, 0),
    Step("begin", 1, 0),
    Step("write", 1, 0),
    Step("write", 0, 0),
    Step("write", 1, 0),
]
BESIDE = [step for step in ZOMBIE if step.what != "bury"]


@pytest.mark.parametrize(("faulty", "steps"), [(_NeverAsks, ZOMBIE), (_Alone, BESIDE), (_LetsGoEarly, BESIDE)])
async def test_faulty_turns_mix(faulty: type[TenantLocks], steps: list[Step]) -> None:
    assert _interleaved(await _played(steps)) == []
    assert _interleaved(await _played(steps, faulty))
