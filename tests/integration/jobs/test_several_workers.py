"""Several worker processes on one database, SQLite or PostgreSQL: killed, stopped, continued, of two releases."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import Program
from sqlalchemy import NullPool, create_engine, text

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.recovery import GIVEN_UP_AFTER
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.database import parse_url

TENANT = TenantId("t_" + "a" * 32)
WITHIN_S = 90


class Site:
    """A database with worker processes, and the records of their jobs."""

    def __init__(self, folder: Path, url: str, catalogue: Catalogue, queue: JobQueue) -> None:
        self.folder = folder
        self.url = url
        self.engine = create_engine(parse_url(url), poolclass=NullPool)
        self.queue = queue
        self.processes: list[Program] = []

    def start(self, name: str, *workflows: str) -> Program:
        """Start a worker process."""
        command: list[str | Path] = [Path(__file__).with_name("worker.py"), self.url, self.folder, name]
        process = Program([*command, *(workflows or ("work_v1",))], cwd=self.folder, env=os.environ)
        self.processes.append(process)
        return process

    def effects(self) -> list[tuple[str, str, str]]:
        """Return the records: job, event, and worker."""
        connection = sqlite3.connect(self.folder / "effects.db", timeout=30)
        found = connection.execute("SELECT job, what, worker FROM effects ORDER BY rowid").fetchall()
        connection.close()
        return found

    def count(self, what: str) -> Counter[str]:
        """Return the counts by job."""
        return Counter(job for job, noted, _ in self.effects() if noted == what)

    def workers(self) -> list[str]:
        """Return the current workers."""
        return [name for (name,) in self.rows("SELECT executor_id FROM workers")]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return rows of the database."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement))]

    def until(self, condition: Callable[[], bool], expected: str) -> None:
        """Wait until a condition is true."""
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {WITHIN_S} s for {expected}: {self.effects()} {self.workers()}")
            time.sleep(0.05)

    def stop(self, process: Program) -> None:
        """Stop a process outside of transactions: otherwise it would hold locks that others need."""
        os.kill(process.pid, signal.SIGSTOP)
        while not self.quiet():
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.01)
            os.kill(process.pid, signal.SIGSTOP)

    def quiet(self) -> bool:
        """Return whether no process is in a transaction."""
        files = [self.folder / "effects.db"]
        if self.engine.dialect.name == "postgresql":
            beside = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ((open_ones,),) = self.rows(f"SELECT count(xact_start) FROM pg_stat_activity WHERE {beside}")
            if open_ones:
                return False
        else:
            files.append(self.folder / "catalogue.db")
        for file in files:
            connection = sqlite3.connect(file, timeout=2)
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            finally:
                connection.close()
        return True

    def statuses(self) -> dict[str, str]:
        """Return the state of every workflow by its job."""
        rows = self.rows("SELECT id, claimant, finished_us FROM workflows")
        return {id.split(":")[1]: "finished" if end else "claimed" if claimant else "waiting" for id, claimant, end in rows}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=[pytest.mark.services, pytest.mark.timeout(600)])])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalogue.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
async def site(tmp_path: Path, url: str) -> AsyncIterator[Site]:
    catalogue = await Catalogue.open(url)
    await catalogue.migrate()
    queue = JobQueue(catalogue.sync_engine, executor_id="enqueues", prepare_concurrency=1, polling_interval_s=1)

    async def elsewhere(tenant: TenantId, job_id: str, attempt: int) -> None: ...

    for name in ("work_v1", "new_v2"):
        queue.register(name, QueueName.PREPARE, elsewhere)
    queue.register("commit_v1", QueueName.COMMIT, elsewhere)
    await queue.migrate()
    with sqlite3.connect(tmp_path / "effects.db") as connection:
        connection.execute("CREATE TABLE effects (job TEXT, what TEXT, worker TEXT)")
    connection.close()
    made = Site(tmp_path, url, catalogue, queue)
    yield made
    (tmp_path / "stop").touch()
    for process in made.processes:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    await queue.shutdown()
    await catalogue.close()


async def test_a_killed_workers_jobs_are_taken_up_by_another(site: Site) -> None:
    first = site.start("first")
    site.until(lambda: bool(site.workers()), "the first worker")
    for number in range(3):
        await site.queue.enqueue("work_v1", TENANT, f"hold-{number}", 1)
    site.until(lambda: site.count("start").total() == 3, "three starts")
    site.start("second")
    site.until(lambda: len(site.workers()) == 2, "the second worker")
    (site.folder / "go-second").touch()
    first.kill()
    first.wait()
    site.until(lambda: site.count("end").total() == 3, "three ends")
    site.until(lambda: set(site.statuses().values()) == {"finished"}, "three endings")
    assert site.count("end") == {f"hold-{number}": 1 for number in range(3)}
    assert site.count("start") == {f"hold-{number}": 2 for number in range(3)}
    assert [name.split("-")[0] for name in site.workers()] == ["second"]


async def test_a_stopping_worker_hands_back_its_jobs_immediately(site: Site) -> None:
    first = site.start("first")
    site.until(lambda: bool(site.workers()), "the first worker")
    await site.queue.enqueue("work_v1", TENANT, "hold-1", 1)
    site.until(lambda: site.count("start").total() == 1, "a start")
    (site.folder / "stop").touch()
    first.wait(timeout=60)
    assert (site.count("cancelled"), site.workers(), site.statuses()) == ({"hold-1": 1}, [], {"hold-1": "waiting"})


async def test_a_stopped_worker_that_comes_back_has_no_effect(site: Site) -> None:
    zombie = site.start("zombie")
    site.until(lambda: bool(site.workers()), "the first worker")
    await site.queue.enqueue("work_v1", TENANT, "hold-1", 1)
    site.until(lambda: site.count("start").total() == 1, "a start")
    site.start("second")
    site.until(lambda: len(site.workers()) == 2, "the second worker")
    site.stop(zombie)
    site.until(lambda: ("hold-1", "start", "second") in site.effects(), "a start in the second")
    os.kill(zombie.pid, signal.SIGCONT)  # while the second one runs it
    site.until(lambda: ("hold-1", "cancelled", "zombie") in site.effects(), "the zombie letting go")
    site.until(lambda: any(name.startswith("zombie") and name.endswith("-2") for name in site.workers()), "its coming back")
    (site.folder / "go-zombie").touch()
    (site.folder / "go-second").touch()
    site.until(lambda: site.statuses() == {"hold-1": "finished"}, "the ending")
    assert site.effects() == [
        ("hold-1", "start", "zombie"),
        ("hold-1", "start", "second"),
        ("hold-1", "cancelled", "zombie"),
        ("hold-1", "end", "second"),
    ]
    await site.queue.enqueue("work_v1", TENANT, "after-1", 1)
    site.until(lambda: site.count("end") == {"hold-1": 1, "after-1": 1}, "work after it")


async def test_a_stopped_worker_has_lost_its_turn_before_it_writes(site: Site) -> None:
    zombie = site.start("zombie", "commit_v1")
    site.until(lambda: bool(site.workers()), "the first worker")
    await site.queue.enqueue("commit_v1", TENANT, "hold-1", 1)
    site.until(lambda: site.count("start").total() == 1, "a start")
    await site.queue.enqueue("commit_v1", TENANT, "behind-1", 1)
    site.start("second", "commit_v1")
    site.until(lambda: len(site.workers()) == 2, "the second worker")
    site.stop(zombie)
    site.until(lambda: any(worker == "second" for _, _, worker in site.effects()), "the second's turn")
    (site.folder / "go-zombie").touch()
    os.kill(zombie.pid, signal.SIGCONT)  # it continues right before it writes
    site.until(lambda: ("hold-1", "cancelled", "zombie") in site.effects(), "the zombie letting go")
    (site.folder / "go-second").touch()
    site.until(lambda: set(site.statuses().values()) == {"finished"}, "two endings")
    effects = site.effects()
    assert [what for job, what, worker in effects if worker == "zombie" and job == "hold-1"][:2] == ["start", "cancelled"]
    assert site.count("end") == {"hold-1": 1, "behind-1": 1}
    # One at a time: each other one began after the zombie ended or lost its turn.
    later = effects[effects.index(("hold-1", "cancelled", "zombie")) + 1 :]
    running: set[str] = set()
    for _, what, worker in later:
        if what == "start":
            assert not running, effects
            running.add(worker)
        else:
            running.discard(worker)


async def test_a_job_that_kills_its_worker_is_given_up_and_no_other(site: Site) -> None:
    started = [site.start("one"), site.start("two")]
    site.until(lambda: len(site.workers()) == 2, "two workers")
    for job_id in ("plain-0", "poison-1", "plain-1"):
        await site.queue.enqueue("work_v1", TENANT, job_id, 1)

    def over() -> bool:
        for number, process in enumerate(started):
            if process.poll() is not None:  # as a supervisor would
                started[number] = site.start("one" if number == 0 else "two")
        return any(what.startswith("failed") for _, what, _ in site.effects())

    site.until(over, "the poison given up")
    # Possibly more than once: a job that ended in a killed process without a record runs again.
    done = {"plain-0": "finished", "plain-1": "finished", "poison-1": "finished"}
    site.until(lambda: site.statuses() == done, "the neighbours, and its end")
    (why,) = {what for _, what, _ in site.effects() if what.startswith("failed")}
    assert f"its process was killed {GIVEN_UP_AFTER} times" in why
    assert site.count("start")["poison-1"] == GIVEN_UP_AFTER


async def test_a_newer_releases_workflow_waits_for_a_worker_of_that_release(site: Site) -> None:
    site.start("old", "work_v1")
    site.until(lambda: bool(site.workers()), "the old worker")
    await site.queue.enqueue("new_v2", TENANT, "new-1", 1)
    site.until(lambda: site.statuses() == {"new-1": "claimed"}, "the old worker's claim")
    site.start("new", "work_v1", "new_v2")
    site.until(lambda: site.count("end") == {"new-1": 1}, "its end in the new one")
    assert site.effects() == [("new-1", "start", "new"), ("new-1", "end", "new")]


@pytest.fixture(autouse=True)
def _no_stray_processes(site: Site) -> Iterator[None]:
    yield
    for process in site.processes:
        if process.poll() is not None and process.returncode not in (0, -signal.SIGKILL):
            pytest.fail(f"a worker ended with {process.returncode}")
