"""Contract of every job queue: run `CHECKS` against an adapter, each on a new, empty database.

A check is an async function of a `Workplace` that raises `AssertionError`. ``tests/contract/test_job_queue.py`` shows how to run
them, and that queues with planted faults fail them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, InvalidScope, StoreUnavailable
from agentic_rag_backend.jobs.base import Continuation, QueueName, Workflow
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue

A = TenantId("t_" + "a" * 32)
B = TenantId("t_" + "b" * 32)

PREPARE_CONCURRENCY = 3
_WAIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Workplace:
    """Creates queues on one database, one after another, and opens transactions of that database.

    ``make`` returns a queue that is not launched and runs `PREPARE_CONCURRENCY` jobs of a tenant at once on ``prepare``.
    ``transact`` runs a function in a transaction and commits if its flag is true.
    """

    make: Callable[[], JobQueue]
    transact: Callable[[Callable[[Connection], None], bool], Awaitable[None]]


Check = Callable[[Workplace], Awaitable[None]]


class _Log:
    """A workflow that records its runs. It waits while ``gate`` is closed."""

    def __init__(self) -> None:
        self.runs: list[tuple[TenantId, str, int]] = []
        self.started: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.at_once: Counter[TenantId] = Counter()
        self.most: Counter[TenantId] = Counter()

    async def __call__(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        self.started.append(job_id)
        self.at_once[tenant] += 1
        self.most[tenant] = max(self.most[tenant], self.at_once[tenant])
        try:
            await self.gate.wait()
            await asyncio.sleep(0.002)
            self.runs.append((tenant, job_id, attempt))
        finally:
            self.at_once[tenant] -= 1

    async def until(self, runs: int) -> None:
        """Wait for that many runs, and a moment longer to detect one too many."""
        await _until(lambda: len(self.runs) >= runs, f"{runs} runs; there were {self.runs}")
        await asyncio.sleep(0.1)


async def a_job_runs_once(place: Workplace) -> None:
    """An attempt of a job runs once, however often it is enqueued. The next attempt runs again."""
    log = _Log()
    async with _launched(place, log) as queue:
        for attempt in (1, 1, 2, 1):
            await queue.enqueue("work_v1", A, "job", attempt)
        await log.until(2)
        await queue.enqueue("work_v1", A, "job", 1)
        await asyncio.sleep(0.3)
    _equal(sorted(log.runs), [(A, "job", 1), (A, "job", 2)])


async def row_and_job_are_committed_together(place: Workplace) -> None:
    """A job enqueued in a transaction runs if it is committed, and never if it is rolled back."""
    log = _Log()
    async with _launched(place, log) as queue:
        enqueue = queue.enqueuer("work_v1")
        await place.transact(lambda connection: enqueue(connection, A, _job("rolled-back")), False)
        await place.transact(lambda connection: enqueue(connection, A, _job("committed", attempt=3)), True)
        await log.until(1)
        await asyncio.sleep(0.3)
    _equal(log.runs, [(A, "committed", 3)])


async def jobs_enqueued_before_launch_run_after_it(place: Workplace) -> None:
    """Jobs wait for a process that runs them."""
    log = _Log()
    async with _launched(place, log):
        pass
    queue = _registered(place, log)
    await queue.enqueue("work_v1", A, "waiting", 1)
    await queue.shutdown()
    _equal(log.runs, [])
    async with _launched(place, log):
        await log.until(1)
    _equal(log.runs, [(A, "waiting", 1)])


async def waiting_jobs_report_their_waiting_time(place: Workplace) -> None:
    """The age of the oldest unclaimed workflow is measured in its own queue."""
    log = _Log()
    async with _launched(place, log):
        pass
    queue = _registered(place, log)
    _equal(queue.queue_of("commit_v1"), QueueName.COMMIT)
    _equal(await queue.oldest_enqueued_s(), {QueueName.PREPARE: 0.0, QueueName.COMMIT: 0.0})
    await queue.enqueue("commit_v1", A, "waiting", 1)
    await asyncio.sleep(0.1)
    first = (await queue.oldest_enqueued_s())[QueueName.COMMIT]
    await queue.enqueue("commit_v1", A, "younger", 1)
    waited = await queue.oldest_enqueued_s()
    await queue.shutdown()
    if not (0 < first <= waited[QueueName.COMMIT] and waited[QueueName.PREPARE] == 0):
        raise AssertionError(f"the older of two waited {first!r} s at first, then {waited!r}")


async def commits_of_a_tenant_run_one_at_a_time(place: Workplace) -> None:
    """``commit`` runs one job of a tenant at once, in order. ``prepare`` runs several, up to its limit."""
    log, commits = _Log(), _Log()
    async with _launched(place, log, commits) as queue:
        log.gate.clear()
        commits.gate.clear()
        for number in range(12):
            await queue.enqueue("work_v1", A, f"{number:02}", 1)
            await queue.enqueue("commit_v1", A, f"{number:02}", 1)
            await asyncio.sleep(0.002)  # the order of enqueueing is recorded in milliseconds
        await _until(lambda: bool(commits.started), "a commit")
        await asyncio.sleep(0.2)  # to detect a second run
        commits.gate.set()
        await commits.until(12)
        await _until(lambda: log.most[A] >= PREPARE_CONCURRENCY, "as many at once as allowed")
        log.gate.set()
        await log.until(12)
    _equal((commits.most[A], log.most[A]), (1, PREPARE_CONCURRENCY))
    _equal([job for _, job, _ in commits.runs], [f"{number:02}" for number in range(12)])


async def a_workflow_continues_on_another_queue(place: Workplace) -> None:
    """Its second part waits for the commits of the tenant, unless another workflow has done it meanwhile."""
    commits = _Log()
    done: set[str] = set()

    async def work(tenant: TenantId, job_id: str, attempt: int) -> Continuation:
        return Continuation(QueueName.COMMIT, commits, lambda: job_id in done)

    commits.gate.clear()
    async with _launched(place, work, commits) as queue:
        await queue.enqueue("commit_v1", A, "first", 1)
        await _until(lambda: commits.started == ["first"], "a commit")
        for job_id in ("second", "third"):
            await queue.enqueue("work_v1", A, job_id, 1)
        await asyncio.sleep(0.2)
        _equal(commits.started, ["first"])
        done.add("second")
        commits.gate.set()
        await commits.until(2)
    _equal([job_id for _, job_id, _ in commits.runs], ["first", "third"])


async def tenants_do_not_wait_for_each_other(place: Workplace) -> None:
    """While one tenant's job blocks many behind it, another tenant's job runs."""
    stuck, log = _Log(), _Log()
    stuck.gate.clear()

    async def by_tenant(tenant: TenantId, job_id: str, attempt: int) -> None:
        await (stuck if tenant == A else log)(tenant, job_id, attempt)

    async with _launched(place, _Log(), by_tenant) as queue:
        for number in range(30):
            await queue.enqueue("commit_v1", A, f"{number}", 1)
        await _until(lambda: bool(stuck.started), "a start")
        await queue.enqueue("commit_v1", B, "small", 1)
        await log.until(1)
        _equal(stuck.runs, [])
        stuck.gate.set()
        await stuck.until(30)


async def a_failure_frees_the_tenant(place: Workplace) -> None:
    """A workflow that raises does not run again, and the workflows behind it run."""
    log = _Log()
    failed: list[str] = []

    async def fails_first(tenant: TenantId, job_id: str, attempt: int) -> None:
        if job_id == "bad":
            failed.append(job_id)
            raise ValueError("on purpose")
        await log(tenant, job_id, attempt)

    async with _launched(place, _Log(), fails_first) as queue:
        await queue.enqueue("commit_v1", A, "bad", 1)
        await queue.enqueue("commit_v1", A, "good", 1)
        await log.until(1)
    async with _launched(place, _Log(), fails_first):
        await asyncio.sleep(0.3)
    _equal((failed, log.runs), (["bad"], [(A, "good", 1)]))


async def workflows_enqueue_workflows(place: Workplace) -> None:
    """A workflow may enqueue its job on another queue."""
    log = _Log()
    queues: list[JobQueue] = []

    async def first(tenant: TenantId, job_id: str, attempt: int) -> None:
        await queues[0].enqueue("commit_v1", tenant, job_id, attempt)

    async with _launched(place, first, log) as queue:
        queues.append(queue)
        await queue.enqueue("work_v1", A, "job", 1)
        await log.until(1)
    _equal(log.runs, [(A, "job", 1)])


async def interrupted_jobs_run_again(place: Workplace) -> None:
    """The next queue finishes all jobs that were queued or running at a shutdown, each once."""
    log = _Log()
    async with _launched(place, log) as queue:
        log.gate.clear()
        for number in range(PREPARE_CONCURRENCY + 2):
            await queue.enqueue("work_v1", A, f"{number}", 1)
        await _until(lambda: len(log.started) == PREPARE_CONCURRENCY, "as many at once as allowed")
    _equal(log.runs, [])
    log.gate.set()
    async with _launched(place, log):
        await log.until(PREPARE_CONCURRENCY + 2)
        await asyncio.sleep(0.3)
    _equal(sorted(job for _, job, _ in log.runs), [f"{number}" for number in range(PREPARE_CONCURRENCY + 2)])


async def ping_requires_a_running_queue(place: Workplace) -> None:
    """`ping` raises `StoreUnavailable` before the launch and after the shutdown."""
    queue = _registered(place, _Log())
    await _raises(StoreUnavailable, queue.ping())
    await queue.launch()
    await queue.ping()
    await queue.shutdown()
    await _raises(StoreUnavailable, queue.ping())


async def names_and_scopes_are_checked(place: Workplace) -> None:
    """Unknown and duplicate names, late registrations and empty scopes are refused."""
    async with _launched(place, _Log()) as queue:
        await _raises(ConfigurationError, queue.enqueue("unknown_v1", A, "job", 1))
        for scope in (None, "", str(A)):
            await _raises(InvalidScope, queue.enqueue("work_v1", scope, "job", 1))  # type: ignore[arg-type]
        for name in ("work_v1", "late_v1"):
            try:
                queue.register(name, QueueName.COMMIT, _Log())
            except ConfigurationError:
                continue
            raise AssertionError(f"{name} was registered")


async def jobs_without_a_workflow_are_reported(place: Workplace) -> None:
    """Queued and running jobs have a workflow of their current attempt. Ended and unknown jobs have none."""
    log = _Log()
    log.gate.clear()
    async with _launched(place, log) as queue:
        await queue.enqueue("work_v1", A, "running", 1)
        await queue.enqueue("work_v1", A, "again", 1)
        asked = [_job("running"), _job("again", 2), _job("unknown")]
        _equal(await queue.unended(asked), frozenset({"running"}))
        await _until(lambda: len(log.started) == 2, "both to run")
        await queue.enqueue("commit_v1", A, "again", 2)
        _equal(await queue.unended([_job("running"), _job("unknown")]), frozenset({"running"}))
        log.gate.set()
        await log.until(2)
        _equal(await queue.unended([]), frozenset())
        await _until_equal(lambda: queue.unended([_job("running"), _job("again")]), frozenset())


async def a_lock_excludes_commits(place: Workplace) -> None:
    """While the tenant's lock is held, none of its commits runs. A commit takes the lock. Others continue."""
    commits = _Log()
    async with _launched(place, _Log(), commits) as queue:
        async with queue.tenant_lock(TenantLock.COMMIT, A):
            await queue.enqueue("commit_v1", A, "held up", 1)
            await queue.enqueue("commit_v1", B, "goes on", 1)
            await commits.until(1)
            _equal(commits.started, ["goes on"])
        await commits.until(2)
        commits.gate.clear()
        await queue.enqueue("commit_v1", A, "runs", 1)
        await _until(lambda: "runs" in commits.started, "the commit to run")
        try:
            async with asyncio.timeout(0.2):
                async with queue.tenant_lock(TenantLock.COMMIT, A):
                    raise AssertionError("the turn was given while a commit was running")
        except TimeoutError:
            pass
        commits.gate.set()
        async with queue.tenant_lock(TenantLock.COMMIT, A):
            _equal(len(commits.runs), 3)
    try:
        queue.tenant_lock(TenantLock.COMMIT, A.value)  # type: ignore[arg-type]
    except InvalidScope:
        return
    raise AssertionError("a turn was given without a tenant")


CHECKS: tuple[Check, ...] = (
    a_job_runs_once,
    row_and_job_are_committed_together,
    jobs_enqueued_before_launch_run_after_it,
    waiting_jobs_report_their_waiting_time,
    commits_of_a_tenant_run_one_at_a_time,
    a_workflow_continues_on_another_queue,
    tenants_do_not_wait_for_each_other,
    a_failure_frees_the_tenant,
    workflows_enqueue_workflows,
    interrupted_jobs_run_again,
    ping_requires_a_running_queue,
    names_and_scopes_are_checked,
    jobs_without_a_workflow_are_reported,
    a_lock_excludes_commits,
)


def _registered(place: Workplace, prepare: Workflow, commit: Workflow | None = None) -> JobQueue:
    queue = place.make()
    queue.register("work_v1", QueueName.PREPARE, prepare)
    queue.register("commit_v1", QueueName.COMMIT, commit or _Log())
    return queue


@asynccontextmanager
async def _launched(place: Workplace, prepare: Workflow, commit: Workflow | None = None) -> AsyncIterator[JobQueue]:
    queue = _registered(place, prepare, commit)
    await queue.launch()
    try:
        yield queue
    finally:
        await queue.shutdown()


def _job(identifier: str, attempt: int = 1) -> Job:
    now = datetime.now(UTC)
    return Job(
        id=identifier,
        kind=JobKind.INGEST,
        state=JobState.QUEUED,
        document_id=None,
        version=None,
        stage="",
        done=0,
        total=0,
        attempt=attempt,
        cancel_requested=False,
        created_at=now,
        updated_at=now,
    )


async def _until(condition: Callable[[], bool], expected: str) -> None:
    try:
        async with asyncio.timeout(_WAIT_S):
            while not condition():  # noqa: ASYNC110 - conditions are of many kinds
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited {_WAIT_S} s for {expected}") from None


async def _until_equal(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    try:
        async with asyncio.timeout(_WAIT_S):
            while await ask() != expected:  # noqa: ASYNC110 - the queue has no notification
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited {_WAIT_S} s for {expected!r}; it is {await ask()!r}") from None


async def _raises(error: type[Exception], call: Awaitable[None]) -> None:
    try:
        await call
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")


def _equal(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"found {found!r}\nexpected {expected!r}")
