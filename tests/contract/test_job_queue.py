"""The job queue's contract on the table of workflows, on queues with planted faults, and through a killed process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from job_checks import job_queue as contract
from sqlalchemy import Connection, Engine, create_engine

from agentic_rag_backend.jobs.coordination.slots import Slots
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLocks
from agentic_rag_backend.jobs.queue import job_queue as module
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.database import parse_url, take_commit_calls
from agentic_rag_backend.stores.catalogue.tables import tenants


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = create_engine(parse_url(f"sqlite:///{tmp_path / 'catalogue.db'}"))
    tenants.create(opened)
    yield opened
    opened.dispose()


def _workplace(engine: Engine, adapter: type[JobQueue] = JobQueue) -> contract.Workplace:
    def make() -> JobQueue:
        return adapter(
            engine,
            executor_id=uuid.uuid4().hex,
            prepare_concurrency=contract.PREPARE_CONCURRENCY,
            polling_interval_s=0.02,
        )

    async def transact(work: Callable[[Connection], None], commit: bool) -> None:
        def run() -> None:
            with engine.connect() as connection:
                work(connection)
                calls = take_commit_calls(connection)
                connection.commit() if commit else connection.rollback()
            for call in calls if commit else ():
                call()

        await asyncio.to_thread(run)

    return contract.Workplace(make, transact)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRAIN_S", 0.1)


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_durable_queue(engine: Engine, check: contract.Check) -> None:
    await check(_workplace(engine))


class _OwnTransaction(JobQueue):
    """Enqueues outside the caller's transaction."""

    def enqueuer(self, name):  # type: ignore[no-untyped-def]
        inner = super().enqueuer(name)

        def enqueue(_connection, tenant, job):  # type: ignore[no-untyped-def]
            with self._engine.begin() as own:
                inner(own, tenant, job)

        return enqueue


class _Everybodys(TenantLocks):
    def hold_lock(self, tenant_lock, tenant):  # type: ignore[no-untyped-def]
        return contextlib.nullcontext()


class _AllAtOnce(JobQueue):
    """Runs several commits of a tenant at once."""

    def register(self, name, queue, workflow):  # type: ignore[no-untyped-def]
        self._execution._slots = Slots(contract.PREPARE_CONCURRENCY, 32, _Everybodys())
        super().register(name, queue, workflow)


class _OneForAll(JobQueue):
    """Has one slot for all tenants."""

    async def launch(self) -> None:
        self._execution._slots = Slots(1, 1, TenantLocks())
        await super().launch()


class _Forgets(JobQueue):
    """Ends running workflows instead of handing them back."""

    async def launch(self) -> None:
        run = self._execution.run

        async def forget(*workflow: Any) -> None:
            try:
                await run(*workflow)
            except asyncio.CancelledError:
                return

        self._execution.run = forget  # type: ignore[assignment, method-assign]
        await super().launch()


class _NewNames(JobQueue):
    """Treats every enqueueing as a new job."""

    async def enqueue(self, name, tenant, job_id, attempt):  # type: ignore[no-untyped-def]
        await asyncio.to_thread(self._table.enqueue, name, self._find_workflow(name).queue, tenant, job_id, time.time_ns())


class _KnowsAll(JobQueue):
    """Reports every job as having a workflow."""

    async def find_unended_jobs(self, jobs):  # type: ignore[no-untyped-def]
        return frozenset(job.id for job in jobs)


class _RunsOn(JobQueue):
    """Lets running workflows of a suspended tenant go on."""

    async def _stop_suspended(self) -> None:
        """Stop nothing."""


class _TurnForAll(JobQueue):
    """Grants a turn to every caller."""

    def tenant_lock(self, queue, tenant):  # type: ignore[no-untyped-def]
        return contextlib.nullcontext()


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (_OwnTransaction, contract.row_and_job_are_committed_together),
        (_AllAtOnce, contract.commits_of_a_tenant_run_one_at_a_time),
        (_OneForAll, contract.tenants_do_not_wait_for_each_other),
        (_Forgets, contract.interrupted_jobs_run_again),
        (_NewNames, contract.a_job_runs_once),
        (_KnowsAll, contract.jobs_without_a_workflow_are_reported),
        (_TurnForAll, contract.a_lock_excludes_commits),
        (_RunsOn, contract.jobs_of_a_suspended_tenant_wait),
    ],
)
async def test_faulty_queues_fail(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, faulty: type[JobQueue], check: contract.Check
) -> None:
    monkeypatch.setattr(contract, "_WAIT_S", 1.5)
    with pytest.raises(AssertionError):
        await check(_workplace(engine, faulty))


WORKER = """
import asyncio, sys, uuid
from pathlib import Path
from sqlalchemy import create_engine
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.database import parse_url
from agentic_rag_backend.stores.catalogue.tables import tenants

folder, jobs, hangs = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "hangs"
tenant = TenantId("t_" + "a" * 32)

def note(what):
    with (folder / "log").open("a") as log:
        log.write(what + "\\n")

async def prepare(tenant, job_id, attempt):
    note(f"prepare {job_id}")
    await queue.enqueue("commit_v1", tenant, job_id, attempt)

async def commit(tenant, job_id, attempt):
    note(f"start {job_id}")
    if hangs and job_id == "3":
        await asyncio.sleep(60)
    note(f"end {job_id}")

async def main():
    global queue
    engine = create_engine(parse_url(f"sqlite:///{folder / 'catalogue.db'}"))
    tenants.create(engine, checkfirst=True)
    queue = JobQueue(engine, executor_id=uuid.uuid4().hex, prepare_concurrency=2, polling_interval_s=0.05)
    queue.register("prepare_v1", QueueName.PREPARE, prepare)
    queue.register("commit_v1", QueueName.COMMIT, commit)
    await queue.launch()
    for number in range(jobs):
        await queue.enqueue("prepare_v1", tenant, str(number), 1)
    while not (folder / "stop").exists():
        await asyncio.sleep(0.05)
    await queue.shutdown()

asyncio.run(main())
"""


def _wait_for(log: Path, condition: Callable[[list[str]], bool], process: subprocess.Popen[str]) -> list[str]:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        lines = log.read_text().splitlines() if log.exists() else []
        if condition(lines):
            return lines
        time.sleep(0.05)
    pytest.fail(f"the worker did not get there: {log.read_text() if log.exists() else ''}{process.poll()}")


def test_a_killed_process_is_finished_by_the_next(tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), "6", "hangs"], text=True)
    _wait_for(log, lambda lines: "start 3" in lines, first)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    ended = Counter(line for line in log.read_text().splitlines() if line.startswith("end"))
    # Two are prepared at a time, so some that were submitted later may have ended.
    assert "end 3" not in ended
    assert set(ended.values()) <= {1}
    second = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), "0", "works"], text=True)
    _wait_for(log, lambda lines: sum(line.startswith("end") for line in lines) >= 6, second)
    time.sleep(0.3)
    (tmp_path / "stop").touch()
    assert second.wait(timeout=60) == 0
    again = Counter(line for line in log.read_text().splitlines() if line.startswith("end")) - ended
    # A workflow that ended, but was killed before its end was recorded, ends once more.
    assert set(again.values()) <= {1}
    assert set(again) | set(ended) == {f"end {number}" for number in range(6)}
