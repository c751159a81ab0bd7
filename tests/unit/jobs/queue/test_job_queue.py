"""Properties of the durable queue: one launched queue per process, workflows that cannot run, old data."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, MutableMapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, insert, text
from structlog.testing import capture_logs

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, StoreUnavailable
from agentic_rag_backend.jobs.base import Continuation, QueueName, Workflow
from agentic_rag_backend.jobs.coordination import membership
from agentic_rag_backend.jobs.coordination.membership import Others
from agentic_rag_backend.jobs.coordination.recovery import GIVEN_UP_AFTER, RunningJournal, forgive_kills
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue import job_queue as module
from agentic_rag_backend.jobs.queue import workflow_table
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.queue.queue_database import queue_engine
from agentic_rag_backend.jobs.queue.workflow_table import WorkflowTable
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.database import parse_url
from agentic_rag_backend.stores.catalogue.tables import tenants

TENANT = TenantId.new()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    opened = create_engine(parse_url(f"sqlite:///{tmp_path / 'catalogue.db'}"))
    tenants.create(opened)
    yield opened
    opened.dispose()


class _Ended:
    """Records the calls of `on_failed`."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, str]] = []

    async def __call__(self, tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        assert tenant == TENANT
        self.told.append((job_id, attempt, str(error)))


def _queue(engine: Engine, workflow: Workflow, *, name: str = "work_v1", ended: _Ended | None = None) -> JobQueue:
    queue = JobQueue(engine, executor_id="test", prepare_concurrency=1, polling_interval_s=0.02, on_failed=ended)
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


async def test_a_refused_statement_does_not_read_like_an_outage(engine: Engine) -> None:
    queue = _queue(engine, _nothing)
    await queue.migrate()
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE workflows"))
        connection.execute(text("CREATE TABLE workflows (tenant_id, id, name, queue, enqueued_us, claimant TEXT NOT NULL)"))
    with pytest.raises(AgenticRagError) as raised:
        await queue.enqueue("work_v1", TENANT, "job", 1)
    assert not isinstance(raised.value, StoreUnavailable)
    assert raised.value.message == (
        "the job queue's database refused a statement: IntegrityError: NOT NULL constraint failed: workflows.claimant"
    )
    await queue.shutdown()


def _write_earlier_workflows(engine: Engine) -> None:
    """Write the table of a release that used DBOS, with a workflow that waits, one that runs and one that ended."""
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE workflow_status (workflow_uuid, name, status, queue_name, queue_partition_key, created_at)")
        )
        for job, status in (("waits", "ENQUEUED"), ("ran", "PENDING"), ("ended", "SUCCESS")):
            row = {"id": f"work_v1:{job}:1", "status": status, "tenant": TENANT.value}
            connection.execute(
                text("INSERT INTO workflow_status VALUES (:id, 'work_v1', :status, 'commit', :tenant, 1700000000000)"), row
            )


async def test_unfinished_workflows_of_an_earlier_release_are_taken_over(engine: Engine) -> None:
    _write_earlier_workflows(engine)
    ran: list[str] = []

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
        assert (tenant, attempt) == (TENANT, 1)
        ran.append(job_id)

    queue = _queue(engine, work)
    await queue.launch()
    await _until(lambda: len(ran) == 2)
    await queue.shutdown()
    assert sorted(ran) == ["ran", "waits"]


async def test_a_process_killed_while_it_takes_workflows_over_loses_none(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(connection: object) -> None:
        raise KeyboardInterrupt

    _write_earlier_workflows(engine)
    queue = _queue(engine, _nothing)
    with monkeypatch.context() as patched:
        patched.setattr(workflow_table, "_adopt_workflows", killed)
        with pytest.raises(KeyboardInterrupt):
            queue._table.create()
    queue._table.create()
    assert len(queue._table.list_unfinished_ids([f"work_v1:{job}:1" for job in ("waits", "ran", "ended")])) == 2
    await queue.shutdown()


def test_a_claim_reads_little_of_each_workflow_that_goes_on_waiting(tmp_path: Path) -> None:
    engine, _ = queue_engine(create_engine(parse_url(f"sqlite:///{tmp_path / 'catalogue.db'}")))
    tenants.create(engine)
    table, waiting, hundreds = WorkflowTable(engine), 3000, 0
    table.create()

    def count() -> None:
        nonlocal hundreds
        hundreds += 1

    with engine.begin() as connection:
        row = {"name": "work_v1", "queue": "commit", "tenant_id": TENANT.value}
        rows = [{**row, "id": f"work_v1:{number}:1", "enqueued_us": number} for number in range(waiting)]
        connection.execute(insert(workflow_table.workflows), rows)
    with engine.connect() as connection:
        connection.connection.set_progress_handler(count, 100)  # type: ignore[attr-defined]  # it is an SQLite connection
    claimed = table.claim(QueueName.COMMIT, "test", per_tenant=4, alone=True)
    engine.dispose()
    assert [workflow.job_id for workflow in claimed] == ["0", "1", "2", "3"]
    # Steps of SQLite's machine: 20 for each that waits. Numbering all of them takes 87.
    assert hundreds * 100 < 40 * waiting


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


async def test_an_unexpected_error_is_reported(engine: Engine) -> None:
    async def fails(tenant: TenantId, job_id: str, attempt: int) -> None:
        raise ValueError("on purpose")

    ended = _Ended()
    queue = _queue(engine, fails, ended=ended)
    await queue.launch()
    await queue.enqueue("work_v1", TENANT, "job", 2)
    await _until(lambda: bool(ended.told))
    await queue.shutdown()
    assert ended.told == [("job", 2, "on purpose")]


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
    lost = "UPDATE workflows SET claimant = 'test' WHERE id = 'work_v1:lost:1'"

    def claim() -> None:
        with engine.begin() as connection:
            queue._table.enqueue_within(connection, "work_v1", QueueName.COMMIT, TENANT, "lost", 1)
            assert connection.exec_driver_sql(lost).rowcount == 1

    await asyncio.to_thread(claim)
    await _until(lambda: ran == ["lost"])
    await _until(lambda: not queue._table.list_unfinished_ids(["work_v1:lost:1"]))
    assert ran == ["lost"]
    await queue.shutdown()


async def _left_as_it_is(self: membership.SoleProcess) -> None: ...


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a shutdown leave the same state as a kill."""
    monkeypatch.setattr(module, "_DRAIN_S", 0.01)
    monkeypatch.setattr(membership.SoleProcess, "leave", _left_as_it_is)
    monkeypatch.setattr(RunningJournal, "record_end", lambda self, workflow: None)


def _kills(queue: JobQueue) -> dict[str, int]:
    assert isinstance(queue._membership, membership.SoleProcess)
    return dict(queue._membership._journal.kills)


class _Hangs:
    def __init__(self) -> None:
        self.started: list[str] = []

    async def __call__(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        self.started.append(job_id)
        await asyncio.sleep(60)


@pytest.mark.usefixtures("killed")
async def test_the_start_after_a_kill_is_logged(engine: Engine) -> None:
    hangs = _Hangs()
    events: list[list[MutableMapping[str, Any]]] = []
    for run in range(2):
        queue = _queue(engine, hangs, ended=_Ended())
        with capture_logs() as logs:
            await queue.launch()
            if run == 0:
                await queue.enqueue("work_v1", TENANT, "slow", 1)
            await _until(lambda run=run: len(hangs.started) == run + 1)  # type: ignore[misc]
            await queue.shutdown()
        events.append([event for event in logs if event["event"] == "crash_recovered"])
    assert events[0] == []
    assert [(event["jobs_resumed"], event["jobs_given_up"]) for event in events[1]] == [(1, 0)]


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
    note_end = RunningJournal.record_end
    hangs, ended, prepared = _Hangs(), _Ended(), list[str]()

    async def prepare(tenant: TenantId, job_id: str, attempt: int) -> Continuation:
        prepared.append(job_id)
        return Continuation(QueueName.COMMIT, hangs, lambda: False)

    def make() -> JobQueue:
        queue = JobQueue(engine, executor_id="test", prepare_concurrency=1, polling_interval_s=0.02, on_failed=ended)
        queue.register("work_v1", QueueName.PREPARE, prepare)
        # A killed process records no end.
        monkeypatch.setattr(
            RunningJournal, "record_end", lambda self, workflow: queue._execution.stopping or note_end(self, workflow)
        )
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
    for _ in range(workflow_table.CLAIMED_AHEAD):
        queue._note_end(QueueName.PREPARE)
    assert [queue_name for queue_name, event in events.items() if event._awake] == [QueueName.PREPARE]
    long_job.cancel()
    await queue.shutdown()


async def test_what_ended_long_ago_is_deleted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = _queue(engine, _nothing)
    await queue.launch()
    await queue.enqueue("work_v1", TENANT, "job", 1)

    def count() -> int:
        with engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM workflows WHERE finished_us IS NOT NULL")).scalar_one())

    await _until(lambda: count() == 1)
    await asyncio.to_thread(queue._table.delete_old_workflows)
    assert count() == 1
    monkeypatch.setattr(workflow_table, "RETENTION", timedelta(seconds=-5))
    await asyncio.to_thread(queue._table.delete_old_workflows)
    assert count() == 0
    await queue.shutdown()


async def test_a_process_that_only_looks_may_hold_a_turn_beside_workers(tmp_path: Path) -> None:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    others = Others(directory=catalogue.workers, leases=catalogue.leases, silent_after_s=3)
    looks, works = (
        JobQueue(
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
    queue = JobQueue(
        catalogue.sync_engine, executor_id="works", prepare_concurrency=1, polling_interval_s=0.02, others=others, drain_s=0
    )
    ran = asyncio.Event()

    async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
        ran.set()

    queue.register("work_v1", QueueName.COMMIT, work)
    await queue.launch()
    enter, entries = queue._membership.enter, 0

    async def fails_once(workflows: Collection[str]) -> None:
        nonlocal entries
        entries += 1
        if entries == 1:
            raise StoreUnavailable("the database went away")
        await enter(workflows)

    monkeypatch.setattr(queue._membership, "enter", fails_once)
    for worker in await catalogue.workers.workers():
        await catalogue.workers.bury(worker)  # as other workers do after a long stop
    await _until(lambda: entries > 0)
    await queue.enqueue("work_v1", TENANT, "job", 1)
    async with asyncio.timeout(20):
        await ran.wait()
    assert entries == 2
    await queue.shutdown()
    await catalogue.close()


def test_a_table_of_an_earlier_release_gets_the_column_of_waits(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'catalogue.db'}")
    table = WorkflowTable(engine)
    table.create()
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE workflows DROP COLUMN waits_until_us"))
    table.create()
    table.create()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT waits_until_us FROM workflows")).all() == []
    engine.dispose()
