"""On PostgreSQL, notifications of other processes wake queue workers. They poll only if no notifications arrive."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url, text
from structlog.testing import capture_logs
from structlog.typing import EventDict

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.membership import Others
from agentic_rag_backend.jobs.queue import queue_database, queue_workers
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow
from agentic_rag_backend.stores.catalogue.base import Catalogue

TENANT = TenantId("t_" + "a" * 32)
NEVER_S = 100_000.0
SLACK = 2
"""Maximum number of polls on a busy machine. With polling, there would be forty in the time of a test."""

ENQUEUE = """
import asyncio, sys
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import Catalogue

async def elsewhere(tenant, job_id, attempt): ...

async def main():
    catalogue = await Catalogue.open(sys.argv[1])
    queue = JobQueue(catalogue.sync_engine, executor_id="enqueues", prepare_concurrency=1, polling_interval_s=1)
    queue.register("work_v1", QueueName.PREPARE, elsewhere)
    for job_id in sys.argv[2:]:
        await queue.enqueue("work_v1", TenantId("t_" + "a" * 32), job_id, 1)
    await queue.shutdown()
    await catalogue.close()

asyncio.run(main())
"""


async def enqueue_elsewhere(url: str, *job_ids: str) -> None:
    """Enqueue jobs in a separate process."""
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", ENQUEUE, url, *job_ids], check=True)


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    """Return the log entries about queue_database."""
    with capture_logs() as events:
        yield events


class Worker:
    """This process as one of several that run jobs."""

    def __init__(self, queue: JobQueue, catalogue: Catalogue) -> None:
        self.queue = queue
        self.catalogue = catalogue
        self.ran: list[str] = []

    async def work(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        self.ran.append(job_id)

    @property
    def notifications(self) -> queue_database.Notifications:
        assert self.queue._notifications is not None
        return self.queue._notifications

    def polls(self) -> int:
        return sum(poll_event.polls for poll_event in self.queue._workers.poll_events.values())

    async def settled_looks(self) -> int:
        """Return the number of polls of the queues once they have stopped."""
        before = -1
        while before != (before := self.polls()):
            await asyncio.sleep(0.3)
        return before

    def listeners(self) -> list[int]:
        """Return the server's processes that listen."""
        with self.catalogue.sync_engine.connect() as connection:
            listens = "datname = current_database() AND query LIKE 'LISTEN%'"
            return [pid for (pid,) in connection.execute(text(f"SELECT pid FROM pg_stat_activity WHERE {listens}"))]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(90):
            while not condition():
                await asyncio.sleep(0.02)

    async def listening(self) -> None:
        await self.until(lambda: self.notifications.listening)


@asynccontextmanager
async def worker_on(url: str) -> AsyncIterator[Worker]:
    catalogue = await Catalogue.open(url)
    queue = JobQueue(
        catalogue.sync_engine,
        executor_id="works",
        prepare_concurrency=4,
        polling_interval_s=0.05,
        others=Others(directory=catalogue.workers, leases=catalogue.leases, silent_after_s=60.0),
        drain_s=0,
    )
    worker = Worker(queue, catalogue)
    queue.register("work_v1", QueueName.PREPARE, worker.work)
    await queue.launch()
    try:
        yield worker
    finally:
        async with asyncio.timeout(60):
            await queue.shutdown()
        await catalogue.close()


@pytest.fixture(autouse=True)
def _without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """With notifications there are no other polls, so a test cannot pass by polling."""
    monkeypatch.setattr(queue_workers, "IDLE_S", NEVER_S)
    monkeypatch.setattr(queue_database, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(queue_database, "LONGEST_PAUSE_S", 0.2)


@pytest.fixture
async def worker(postgres_url: str) -> AsyncIterator[Worker]:
    async with worker_on(postgres_url) as running:
        yield running


async def test_a_job_of_another_process_is_claimed_by_its_notification(worker: Worker, postgres_url: str) -> None:
    await worker.listening()
    idle = await worker.settled_looks()
    await asyncio.sleep(1.0)  # twenty polling intervals
    assert worker.polls() - idle <= SLACK, "an idle process does not look"
    await enqueue_elsewhere(postgres_url, "one", "two")
    await worker.until(lambda: sorted(worker.ran) == ["one", "two"])
    assert worker.notifications.received == 2
    # Each notification causes a poll of both queues, and so does the end of each job.
    assert await worker.settled_looks() - idle <= 2 * (2 + 2) + SLACK


async def test_jobs_enqueued_again_notify_other_workers(worker: Worker, postgres_url: str) -> None:
    """Workflows of a dead process are enqueued again in a transaction of their own."""
    await worker.listening()
    async with another(postgres_url) as elsewhere:
        workflow_table = elsewhere._table
        await elsewhere.enqueue("work_v1", TENANT, "job", 1)
        await worker.until(lambda: worker.ran == ["job"])
        mark = "UPDATE workflows SET claimant = 'gone', finished_us = NULL"
        with worker.catalogue.sync_engine.begin() as connection:
            connection.execute(text(mark))
        left = ClaimedWorkflow(id="work_v1:job:1", name="work_v1", queue="prepare", tenant=TENANT, executor_id="gone")
        assert await asyncio.to_thread(workflow_table.hand_back, [left]) == 1
        await worker.until(lambda: worker.ran == ["job", "job"])
        assert worker.notifications.received == 2


@asynccontextmanager
async def another(url: str) -> AsyncIterator[JobQueue]:
    """Open a queue that only enqueues."""
    catalogue = await Catalogue.open(url)
    queue = JobQueue(catalogue.sync_engine, executor_id="enqueues", prepare_concurrency=1, polling_interval_s=1)

    async def never(tenant: TenantId, job_id: str, attempt: int) -> None: ...

    queue.register("work_v1", QueueName.PREPARE, never)
    yield queue
    await queue.shutdown()
    await catalogue.close()


async def test_a_transaction_notifies_when_it_is_committed_and_only_then(worker: Worker, postgres_url: str) -> None:
    await worker.listening()
    async with another(postgres_url) as elsewhere:
        enqueue = partial(
            elsewhere._table.enqueue_within, name="work_v1", queue=QueueName.PREPARE, tenant=TENANT, job_id="job", attempt=1
        )
        with elsewhere._engine.connect() as connection:
            enqueue(connection)
            connection.rollback()
            enqueue(connection)
            assert (worker.notifications.received, worker.ran) == (0, [])
            connection.commit()
        await worker.until(lambda: worker.ran == ["job"])
    assert worker.notifications.received == 1


async def test_a_process_is_not_woken_by_its_own_notifications(worker: Worker, postgres_url: str) -> None:
    await worker.listening()
    await worker.queue.enqueue("work_v1", TENANT, "own", 1)
    await worker.until(lambda: worker.ran == ["own"])
    await enqueue_elsewhere(postgres_url, "other")
    await worker.until(lambda: worker.ran == ["own", "other"])
    assert worker.notifications.received == 1


async def test_deployments_on_one_server_do_not_wake_each_other(worker: Worker, postgres_url: str, empty_postgres: str) -> None:
    await worker.listening()
    catalogue = await Catalogue.open(empty_postgres)
    beside = queue_database.Notifications(catalogue.sync_engine, lambda: None)
    await asyncio.to_thread(beside.send_now)
    await catalogue.close()
    await enqueue_elsewhere(postgres_url, "here")
    await worker.until(lambda: worker.ran == ["here"])
    assert worker.notifications.received == 1


async def test_a_lost_connection_is_opened_again(worker: Worker, postgres_url: str, logged: list[EventDict]) -> None:
    await worker.listening()
    (first,) = worker.listeners()
    for _ in range(3):
        (pid,) = worker.listeners()
        with worker.catalogue.sync_engine.connect() as connection:
            connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        await worker.until(lambda pid=pid: worker.notifications.listening and worker.listeners() not in ([], [pid]))  # type: ignore[misc]
    assert worker.listeners() != [first]
    lost = [each for each in logged if each["log_level"] == "warning"]
    assert [each["event"] for each in lost] == ["job_notifications_lost"] * 3
    assert "polled instead" in lost[0]["consequence"]
    before = worker.notifications.received
    await enqueue_elsewhere(postgres_url, "after")
    await worker.until(lambda: worker.ran == ["after"])
    assert worker.notifications.received == before + 1


@pytest.mark.parametrize("problem", [psycopg.OperationalError("refused"), RuntimeError("a mistake in the code")])
async def test_while_no_notifications_arrive_the_queues_are_polled(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict], problem: Exception
) -> None:
    opened, away, tries = queue_database.open_listener, True, 0  # type: ignore[attr-defined]

    async def fails(engine: Any) -> Any:
        nonlocal tries
        if away:
            tries += 1
            raise problem
        return await opened(engine)

    monkeypatch.setattr(queue_database, "open_listener", fails)
    async with worker_on(postgres_url) as worker:
        await worker.until(lambda: tries > 2)
        await enqueue_elsewhere(postgres_url, "polled")
        await worker.until(lambda: worker.ran == ["polled"])
        assert (worker.notifications.listening, worker.notifications.received) == (False, 0)
        warnings = [each for each in logged if each["log_level"] == "warning"]
        assert [each["reason"] for each in warnings] == [str(problem)], "one line however often it is tried"
        away = False
        await worker.listening()
        idle = await worker.settled_looks()
        await asyncio.sleep(1.0)
        assert worker.polls() - idle <= SLACK, "it does not poll any more"


async def test_a_pooler_that_delivers_nothing_is_not_relied_on(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    async def elsewhere(engine: Any) -> psycopg.AsyncConnection[Any]:
        # LISTEN succeeds there, and notifications never arrive, as behind a pooler in transaction mode.
        return await psycopg.AsyncConnection.connect(
            make_url(postgres_url).set(database="postgres").render_as_string(hide_password=False), autocommit=True
        )

    monkeypatch.setattr(queue_database, "open_listener", elsewhere)
    monkeypatch.setattr(queue_database, "PROOF_S", 0.3)
    async with worker_on(postgres_url) as worker:
        await worker.until(lambda: any(each.get("error") == "TimeoutError" for each in logged))
        await enqueue_elsewhere(postgres_url, "polled")
        await worker.until(lambda: worker.ran == ["polled"])
        assert not worker.notifications.listening
