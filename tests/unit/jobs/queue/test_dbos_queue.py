"""Properties of DBOS: one instance per process, workflows that cannot run, old data."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from dbos import _sys_db_sqlite
from dbos._migration import get_sqlite_timestamp_expr
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, StoreUnavailable
from agentic_rag_backend.jobs.base import Continuation, QueueName, Workflow
from agentic_rag_backend.jobs.coordination import membership
from agentic_rag_backend.jobs.coordination.crash_counter import forgive_kills
from agentic_rag_backend.jobs.coordination.membership import Others
from agentic_rag_backend.jobs.coordination.recovery import GIVEN_UP_AFTER
from agentic_rag_backend.jobs.coordination.running_journal import RunningJournal
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue import dbos_client
from agentic_rag_backend.jobs.queue import dbos_queue as module
from agentic_rag_backend.jobs.queue.dbos_queue import DbosQueue
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.database import parse_url

TENANT = TenantId.new()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    opened = create_engine(parse_url(f"sqlite:///{tmp_path / 'catalogue.db'}"))
    yield opened
    opened.dispose()


class _Ended:
    """Records the calls of `on_failed`."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, str]] = []

    async def __call__(self, tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        assert tenant == TENANT
        self.told.append((job_id, attempt, str(error)))


def _queue(engine: Engine, workflow: Workflow, *, name: str = "work_v1", ended: _Ended | None = None) -> DbosQueue:
    queue = DbosQueue(engine, executor_id="test", prepare_concurrency=1, polling_interval_s=0.02, on_failed=ended)
    queue.register(name, QueueName.COMMIT, workflow)
    return queue


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def _nothing(tenant: TenantId, job_id: str, attempt: int) -> None: ...


async def test_a_process_launches_one_queue_at_a_time(engine: Engine) -> None:
    first, second = _queue(engine, _nothing), _queue(engine, _nothing)
    await first.launch()
    with pytest.raises(ConfigurationError, match="in this process already"):
        await second.launch()
    await first.ping()
    await first.shutdown()
    await second.launch()
    await second.ping()
    await second.shutdown()
    await second.shutdown()


async def test_a_database_that_does_not_open_is_named_unavailable(tmp_path: Path) -> None:
    missing = create_engine(f"sqlite:///{tmp_path / 'no' / 'folder' / 'catalogue.db'}")
    queue = _queue(missing, _nothing)
    with pytest.raises(StoreUnavailable):
        await queue.launch()
    queue = _queue(missing, _nothing)
    with pytest.raises(StoreUnavailable):
        await queue.migrate()
    await queue.shutdown()
    missing.dispose()


@pytest.mark.parametrize("expression", ["(unixepoch('subsec') * 1000)", "(strftime('%s','now') * 1000)"])
async def test_tables_made_on_any_python_are_written_by_this_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    own = get_sqlite_timestamp_expr()
    made = [statement.replace(own, expression) for statement in _sys_db_sqlite.sqlite_migrations]  # type: ignore[attr-defined]
    monkeypatch.setattr(_sys_db_sqlite, "sqlite_migrations", made)
    ran: list[str] = []

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
        ran.append(job_id)

    queue = _queue(engine, work)
    await queue.launch()
    await queue.enqueue("work_v1", TENANT, "job", 1)
    await _until(lambda: ran == ["job"])
    await queue.shutdown()
    with engine.connect() as connection:
        schema = connection.execute(text("SELECT sql FROM sqlite_master WHERE name = 'queues'")).scalar_one()
    assert expression in schema


async def test_a_refused_statement_does_not_read_like_an_outage(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    own = get_sqlite_timestamp_expr()
    made = [statement.replace(own, "(NULL)") for statement in _sys_db_sqlite.sqlite_migrations]  # type: ignore[attr-defined]
    monkeypatch.setattr(_sys_db_sqlite, "sqlite_migrations", made)
    queue = _queue(engine, _nothing)
    with pytest.raises(AgenticRagError) as raised:
        await queue.launch()
    assert not isinstance(raised.value, StoreUnavailable)
    assert raised.value.message == (
        "the job queue's database refused a statement: IntegrityError: NOT NULL constraint failed: queues.created_at"
    )


async def test_a_process_may_enqueue_without_working(engine: Engine) -> None:
    ran: list[str] = []

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
        ran.append(job_id)

    outside = _queue(engine, work)
    await outside.migrate()
    await outside.enqueue("work_v1", TENANT, "job", 1)
    await outside.shutdown()
    inside = _queue(engine, work)
    await inside.launch()
    await _until(lambda: ran == ["job"])
    await inside.shutdown()


async def test_an_unexpected_error_is_reported(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(tenant: TenantId, job_id: str, attempt: int) -> None:
        raise ValueError("on purpose")

    ended = _Ended()
    queue = _queue(engine, fails, ended=ended)
    await queue.launch()
    await queue.enqueue("work_v1", TENANT, "job", 2)
    await _until(lambda: bool(ended.told))
    await queue.shutdown()
    assert ended.told == [("job", 2, "on purpose")]
    assert all(record.levelno >= logging.WARNING for record in caplog.records if record.name == "dbos")


async def test_a_workflow_of_another_release_is_given_up_and_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "POLL_INTERVAL_S", 0.05)
    old = _queue(engine, _nothing, name="gone_v1")
    await old.migrate()
    await old.enqueue("gone_v1", TENANT, "lost", 4)
    await old.shutdown()
    ended = _Ended()
    queue = _queue(engine, _nothing, ended=ended)
    await queue.launch()
    await _until(lambda: bool(ended.told))
    assert ended.told == [("lost", 4, "workflow 'gone_v1' is not known to this release")]
    await asyncio.sleep(0.2)
    assert len(ended.told) == 1
    await queue.shutdown()


async def test_a_claim_whose_answer_was_lost_is_queued_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "POLL_INTERVAL_S", 1.0)  # less than what runs takes, more than it takes to begin
    ran: list[str] = []

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
        ran.append(job_id)
        await asyncio.sleep(2.5)  # running workflows are not claimed again, however long they take

    queue = _queue(engine, work)
    await queue.launch()
    lost = "UPDATE workflow_status SET status = 'PENDING', executor_id = 'test' WHERE workflow_uuid = 'work_v1:lost:1'"

    def claim() -> None:
        with engine.begin() as connection:
            options = dbos_client.options_of("work_v1", QueueName.COMMIT, TENANT, "lost", 1)
            queue._dbos_client.enqueue_within(connection, options, TENANT, "lost", 1)
            assert connection.exec_driver_sql(lost).rowcount == 1

    await asyncio.to_thread(claim)
    await _until(lambda: ran == ["lost"])
    await _until(lambda: bool(queue._dbos_client._client.list_workflows(status="SUCCESS")))
    assert ran == ["lost"]
    await queue.shutdown()


async def _left_as_it_is(self: membership.SoleProcess) -> None: ...


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a shutdown leave the same state as a kill."""
    monkeypatch.setattr(module, "_DRAIN_S", 0.01)
    monkeypatch.setattr(membership.SoleProcess, "leave", _left_as_it_is)
    monkeypatch.setattr(RunningJournal, "ended", lambda self, workflow: None)


def _kills(queue: DbosQueue) -> dict[str, int]:
    assert isinstance(queue._membership, membership.SoleProcess)
    return dict(queue._membership._journal.kills)


class _Hangs:
    def __init__(self) -> None:
        self.started: list[str] = []

    async def __call__(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        self.started.append(job_id)
        await asyncio.sleep(60)


@pytest.mark.usefixtures("killed")
async def test_a_workflow_that_kills_its_process_is_given_up(engine: Engine) -> None:
    hangs, ended = _Hangs(), _Ended()
    for run in range(GIVEN_UP_AFTER):
        queue = _queue(engine, hangs, ended=ended)
        await queue.launch()
        if run == 0:
            await queue.enqueue("work_v1", TENANT, "poison", 1)
        await _until(lambda run=run: len(hangs.started) == run + 1)  # type: ignore[misc]
        if run == GIVEN_UP_AFTER - 1:  # earlier, either of the two could be the first to run after a kill
            await queue.enqueue("work_v1", TENANT, "behind", 1)
        await queue.shutdown()
    assert (ended.told, set(hangs.started)) == ([], {"poison"})
    queue = _queue(engine, hangs, ended=ended)
    await queue.launch()
    assert [(job, attempt) for job, attempt, _ in ended.told] == [("poison", 1)]
    assert (
        "its process was killed 3 times while it ran and recorded nothing new, the last time while no other job ran"
        in ended.told[0][2]
    )
    await _until(lambda: hangs.started[-1] == "behind")
    await queue.shutdown()
    assert _kills(queue) == {"work_v1:poison:1": GIVEN_UP_AFTER}
    queue = _queue(engine, hangs, ended=ended)
    await queue.launch()
    await queue.shutdown()
    assert (len(ended.told), _kills(queue)) == (1, {"work_v1:behind:1": 1})


@pytest.mark.usefixtures("killed")
async def test_a_workflow_that_records_something_between_kills_is_not_given_up(engine: Engine) -> None:
    class _Progresses(_Hangs):
        async def __call__(self, tenant: TenantId, job_id: str, attempt: int) -> None:
            await forgive_kills()
            await super().__call__(tenant, job_id, attempt)

    hangs, ended = _Progresses(), _Ended()
    for run in range(GIVEN_UP_AFTER + 2):
        queue = _queue(engine, hangs, ended=ended)
        await queue.launch()
        if run == 0:
            await queue.enqueue("work_v1", TENANT, "long", 1)
        await _until(lambda run=run: len(hangs.started) == run + 1)  # type: ignore[misc]
        await queue.shutdown()
    assert ended.told == []


@pytest.mark.usefixtures("killed")
async def test_a_retry_by_hand_starts_with_a_clean_record(engine: Engine) -> None:
    hangs, ended = _Hangs(), _Ended()
    for run in range(GIVEN_UP_AFTER + 1):
        queue = _queue(engine, hangs, ended=ended)
        await queue.launch()
        if run == 0:
            await queue.enqueue("work_v1", TENANT, "poison", 1)
        if run == GIVEN_UP_AFTER:
            assert [(job, attempt) for job, attempt, _ in ended.told] == [("poison", 1)]
            await queue.enqueue("work_v1", TENANT, "poison", 2)
        await _until(lambda run=run: len(hangs.started) == run + 1)  # type: ignore[misc]
        await queue.shutdown()
    queue = _queue(engine, hangs, ended=ended)
    await queue.launch()
    await queue.shutdown()
    assert (len(ended.told), _kills(queue)) == (1, {"work_v1:poison:2": 1})


async def test_handing_back_does_not_count_as_killing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRAIN_S", 0.01)
    hangs, ended = _Hangs(), _Ended()
    for run in range(3):
        queue = _queue(engine, hangs, ended=ended)
        await queue.launch()
        await queue.enqueue("work_v1", TENANT, "long", 1)
        await _until(lambda run=run: len(hangs.started) == run + 1)  # type: ignore[misc]
        await queue.shutdown()
        assert _kills(queue) == {}


async def test_kills_count_in_the_second_part_of_a_workflow_but_not_while_it_waits(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_DRAIN_S", 0.01)
    monkeypatch.setattr(membership.SoleProcess, "leave", _left_as_it_is)
    note_end = RunningJournal.ended
    hangs, ended, prepared = _Hangs(), _Ended(), list[str]()

    async def prepare(tenant: TenantId, job_id: str, attempt: int) -> Continuation:
        prepared.append(job_id)
        return Continuation(QueueName.COMMIT, hangs, lambda: False)

    def make() -> DbosQueue:
        queue = DbosQueue(engine, executor_id="test", prepare_concurrency=1, polling_interval_s=0.02, on_failed=ended)
        queue.register("work_v1", QueueName.PREPARE, prepare)
        # A killed process records no end.
        monkeypatch.setattr(RunningJournal, "ended", lambda self, workflow: queue._execution.stopping or note_end(self, workflow))
        return queue

    for run in range(2 * GIVEN_UP_AFTER):
        queue = make()
        async with contextlib.AsyncExitStack() as stack:
            if run % 2 == 0:
                await stack.enter_async_context(queue.tenant_lock(TenantLock.COMMIT, TENANT))
            await queue.launch()
            await queue.enqueue("work_v1", TENANT, "poison", 1)
            await _until(lambda run=run: (len(prepared), len(hangs.started)) == (run + 1, (run + 1) // 2))  # type: ignore[misc]
            await queue.shutdown()
    assert ended.told == []
    queue = make()
    await queue.launch()
    await queue.shutdown()
    assert [(job, attempt) for job, attempt, _ in ended.told] == [("poison", 1)]


async def test_jobs_beyond_the_limit_of_claims_are_claimed_although_few_run_at_once(engine: Engine) -> None:
    """A long job of another tenant runs, and the others end faster than the queue starts them."""
    queue, long_job = _queue(engine, _nothing), asyncio.create_task(asyncio.sleep(60))
    queue._execution._working.add(long_job)
    events = queue._workers.poll_events
    for event in events.values():
        event._awake = False
    for _ in range(dbos_client.CLAIMED_AHEAD):
        queue._ended(QueueName.PREPARE)
    assert [queue_name for queue_name, event in events.items() if event._awake] == [QueueName.PREPARE]
    long_job.cancel()
    await queue.shutdown()


async def test_what_ended_long_ago_is_deleted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = _queue(engine, _nothing)
    await queue.launch()
    await queue.enqueue("work_v1", TENANT, "job", 1)
    listed = lambda: queue._dbos_client._client.list_workflows(status="SUCCESS")  # noqa: E731
    await _until(lambda: len(listed()) == 1)  # type: ignore[no-untyped-call]
    await asyncio.to_thread(queue._dbos_client.delete_old)
    assert len(listed()) == 1  # type: ignore[no-untyped-call]
    monkeypatch.setattr(dbos_client, "RETENTION", timedelta(seconds=-5))
    await asyncio.to_thread(queue._dbos_client.delete_old)
    assert listed() == []  # type: ignore[no-untyped-call]
    await queue.shutdown()


async def test_a_process_that_only_looks_may_hold_a_turn_beside_workers(tmp_path: Path) -> None:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    others = Others(directory=catalogue.workers, leases=catalogue.leases, silent_after_s=3)
    looks, works = (
        DbosQueue(
            catalogue.sync_engine, executor_id=name, prepare_concurrency=1, polling_interval_s=0.02, others=others, drain_s=0
        )
        for name in ("looks", "works")
    )
    await looks.migrate()
    await looks.ping()
    works.register("work_v1", QueueName.COMMIT, _nothing)
    await works.launch()
    async with looks.tenant_lock(TenantLock.COMMIT, TENANT):
        await works.enqueue("work_v1", TENANT, "job", 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), works.tenant_lock(TenantLock.COMMIT, TENANT):
                raise AssertionError("two held it")
        assert [each.executor_id for each in await catalogue.workers.workers()] == ["looks", "works"]
    async with asyncio.timeout(20), works.tenant_lock(TenantLock.COMMIT, TENANT):
        pass
    assert sorted([await looks.leads(), await works.leads()]) == [False, True]
    await looks.shutdown()
    await works.shutdown()
    assert await catalogue.workers.workers() == []
    await catalogue.close()


async def test_a_worker_that_could_not_begin_anew_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    others = Others(directory=catalogue.workers, leases=catalogue.leases, silent_after_s=0.6)
    queue = DbosQueue(
        catalogue.sync_engine, executor_id="works", prepare_concurrency=1, polling_interval_s=0.02, others=others, drain_s=0
    )
    ran = asyncio.Event()

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
        ran.set()

    queue.register("work_v1", QueueName.COMMIT, work)
    await queue.launch()
    launch, launches = module.DBOS.launch, 0  # type: ignore[attr-defined]

    def fails_once() -> None:
        nonlocal launches
        launches += 1
        if launches == 1:
            raise OperationalError("SELECT 1", None, Exception("the database went away"))
        launch()

    monkeypatch.setattr(module.DBOS, "launch", fails_once)  # type: ignore[attr-defined]
    for worker in await catalogue.workers.workers():
        await catalogue.workers.bury(worker)  # as other workers do after a long stop
    await _until(lambda: launches > 0)
    await queue.enqueue("work_v1", TENANT, "job", 1)
    async with asyncio.timeout(20):
        await ran.wait()
    assert launches == 2
    await queue.shutdown()
    await catalogue.close()
