"""Polling of the queues: at once after an enqueue, and rarely otherwise."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import event

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.queue import queue_workers
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.queue.queue_workers import IDLE_S, PollEvent
from agentic_rag_backend.stores.catalogue.base import Catalogue

TENANT = TenantId.new()


class Looker:
    """A worker that counts its polls."""

    def __init__(self, pause_s: float) -> None:
        self.poll_event = PollEvent(lambda: pause_s)
        self._last_poll = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def looked(self, *, within_s: float) -> bool:
        return self._last_poll.acquire(timeout=within_s)

    def end(self) -> None:
        self.poll_event.set()
        self._thread.join()

    def _look(self) -> None:
        while not self.poll_event.wait():
            self._last_poll.release()


def test_a_worker_looks_when_it_is_rung_and_not_otherwise() -> None:
    looker = Looker(0.001)
    assert looker.looked(within_s=30), "what was there before is claimed"
    assert not looker.looked(within_s=0.3)
    for _ in range(3):
        looker.poll_event.wake()
        assert looker.looked(within_s=30)
    assert not looker.looked(within_s=0.3)
    looker.end()
    assert looker.poll_event.polls == 5, "with the one that told it to end"


def test_many_rings_are_one_look() -> None:
    looker = Looker(3.0)
    assert looker.looked(within_s=30)
    for _ in range(100):
        looker.poll_event.wake()
    assert looker.looked(within_s=30)
    assert not looker.looked(within_s=0.5)
    looker.end()


async def test_an_idle_queue_is_not_looked_at_and_a_job_is_claimed_at_once(tmp_path: Path) -> None:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    ran = asyncio.Event()

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
        ran.set()

    queue = JobQueue(catalogue.sync_engine, executor_id="test", prepare_concurrency=1, polling_interval_s=0.01)
    queue.register("work_v1", QueueName.PREPARE, work)
    await queue.launch()
    poll_events = queue._workers.poll_events
    async with asyncio.timeout(60):
        while not all(poll_event.polls for poll_event in poll_events.values()):
            await asyncio.sleep(0.01)
    before = sum(poll_event.polls for poll_event in poll_events.values())
    await asyncio.sleep(1.0)  # a hundred polling intervals
    assert sum(poll_event.polls for poll_event in poll_events.values()) - before <= 2 * (1 + 1.0 / IDLE_S)
    before = poll_events[QueueName.PREPARE].polls
    await queue.enqueue("work_v1", TENANT, "one", 1)
    await asyncio.wait_for(ran.wait(), 60)
    assert poll_events[QueueName.PREPARE].polls - before <= 3
    await queue.shutdown()
    await catalogue.close()


async def test_an_idle_process_asks_its_database_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_workers, "IDLE_S", 1000.0)
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None: ...

    queue = JobQueue(catalogue.sync_engine, executor_id="test", prepare_concurrency=1, polling_interval_s=0.01)
    statements: list[str] = []
    event.listen(queue._engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    queue.register("work_v1", QueueName.PREPARE, work)
    await queue.launch()
    quiet_s, asked = 0.0, -1
    async with asyncio.timeout(60):
        while quiet_s < 1.0:
            quiet_s = quiet_s + 0.25 if len(statements) == asked else 0.0
            asked = len(statements)
            await asyncio.sleep(0.25)
    assert asked > 0
    await queue.shutdown()
    await catalogue.close()
