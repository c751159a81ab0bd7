"""Claims of workflows by this process and their execution: wait for a slot, count crashes, record failures.

The database commits a claim before it returns it. If the connection breaks in between, workflows are claimed for this
process that it does not know about.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.fairness import QuotaWait, act_for
from agentic_rag_backend.jobs.base import Continuation, QueueName, Workflow
from agentic_rag_backend.jobs.coordination.membership import Membership
from agentic_rag_backend.jobs.coordination.recovery import choose_caution, mark_suspect
from agentic_rag_backend.jobs.coordination.slots import Slots
from agentic_rag_backend.jobs.coordination.tenant_locks import lock_lost
from agentic_rag_backend.jobs.queue.queue_database import as_unavailable
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow, WorkflowTable, workflow_id
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.tracing import start_span

_log = get_logger(__name__)


class UnstartedClaims:
    """Measures how long claimed workflows have not started.

    Args:
        lost_after_s: seconds after which a workflow that has not started counts as lost.
    """

    def __init__(self, *, lost_after_s: float) -> None:
        self._lost_after_s = lost_after_s
        self._since: dict[str, float] = {}

    def find_lost(self, claimed: Iterable[ClaimedWorkflow], started_ids: Container[str], now_s: float) -> list[ClaimedWorkflow]:
        """Return the workflows of ``claimed`` that have waited too long at ``now_s``, a monotonic time in seconds."""
        waiting = [workflow for workflow in claimed if workflow.id not in started_ids]
        self._since = {workflow.id: self._since.get(workflow.id, now_s) for workflow in waiting}
        return [workflow for workflow in waiting if now_s - self._since[workflow.id] >= self._lost_after_s]


class OwnClaims:
    """Records which workflows started here, and which must run again.

    Args:
        lost_after_s: see `UnstartedClaims`; much longer than the start of a claimed workflow takes.
    """

    def __init__(self, table: WorkflowTable, *, lost_after_s: float) -> None:
        self._table = table
        self._unstarted = UnstartedClaims(lost_after_s=lost_after_s)
        self._begun: dict[str, float] = {}
        self._again: set[str] = set()

    def note_start(self, workflow_id: str) -> None:
        """Note that a workflow started here. It may end here before the database records its end."""
        self._begun[workflow_id] = time.monotonic()

    def run_again(self, workflow_id: str) -> None:
        """Mark a workflow that stopped without an end, to be enqueued again."""
        self._again.add(workflow_id)

    def forget_claims(self) -> None:
        """Forget all claims: they belong to other processes now."""
        self._begun.clear()
        self._again.clear()

    async def queue_again(self, executor_id: str, known_names: Container[str]) -> None:
        """Enqueue the workflows that are marked to run again, and claims of this process that were lost.

        Args:
            executor_id: this process.
            known_names: names of the workflows that can run here.

        Raises:
            StoreUnavailable: the database does not answer; no mark is lost.
        """
        asked_s = time.monotonic()
        with as_unavailable():
            claimed = await asyncio.to_thread(self._table.list_claims)
        ids = {workflow.id for workflow in claimed}
        self._begun = {id: at for id, at in self._begun.items() if id in ids or at >= asked_s}
        own_claims = [workflow for workflow in claimed if workflow.executor_id == executor_id and workflow.name in known_names]
        lost = self._unstarted.find_lost(own_claims, self._begun, asked_s)
        for workflow in lost:
            _log.warning("unheard_workflow_queued_again", workflow=workflow.id)
        again = set(self._again)
        stopped = [workflow for workflow in own_claims if workflow.id in again]
        for workflow in stopped:
            self._begun.pop(workflow.id, None)  # first: the workflow may start here again before the next line
        with as_unavailable():
            await asyncio.to_thread(self._table.hand_back, [*stopped, *lost])
        self._again -= again


Failed = Callable[[TenantId, str, int, Exception], Awaitable[None]]
"""Called with ``(tenant, job_id, attempt, error)`` when a workflow ended without recording its result. May be called twice."""

_CANCEL_S = 1.0


@dataclass(frozen=True, slots=True)
class DeclaredWorkflow:
    """A workflow that was registered with the queue."""

    name: str
    queue: QueueName
    workflow: Workflow


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A claimed workflow. ``kills``: number of kills of its process that it was present at."""

    id: str
    tenant: TenantId
    job_id: str
    attempt: int
    kills: int


class Execution:
    """The workflows that this process has claimed: those that wait for a slot, and those that run.

    Attributes:
        stopping: True if no more workflows start.

    Args:
        failed: called if a workflow raises an exception.
        ended: called with the queue of a workflow that has ended, so that another one can be claimed.
    """

    def __init__(
        self, slots: Slots, claims: OwnClaims, membership: Membership, *, failed: Failed, ended: Callable[[QueueName], None]
    ) -> None:
        self._slots = slots
        self._claims = claims
        self._membership = membership
        self._failed = failed
        self._ended = ended
        self._waiting: set[asyncio.Task[Any]] = set()
        self._working: set[asyncio.Task[Any]] = set()
        self._quota_waits: dict[asyncio.Task[Any], QuotaWait] = {}
        self.stopping = False

    def __len__(self) -> int:
        """Return the number of claimed workflows."""
        return len(self._waiting) + len(self._working)

    def quota_wait_of(self, task: asyncio.Task[Any]) -> QuotaWait | None:
        """Return how long a workflow waits for a quota. None: it does not wait."""
        wait = self._quota_waits.get(task)
        return wait if wait is not None and wait.until is not None else None

    async def stop(self, drain_s: float) -> None:
        """Cancel waiting workflows now, and running workflows after ``drain_s`` seconds."""
        _cancel_tasks(self._waiting)
        if self._working and drain_s:
            await asyncio.wait(set(self._working), timeout=drain_s)
        unfinished = self._working | self._waiting
        _cancel_tasks(unfinished)
        if unfinished:
            await asyncio.wait(unfinished, timeout=_CANCEL_S)

    async def run(self, declared: DeclaredWorkflow, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Run a workflow when its tenant and the process have a free slot. A cancelled workflow remains to be run again."""
        task = asyncio.current_task()
        if task is None or self.stopping:
            raise asyncio.CancelledError
        if (quota_wait := act_for(tenant, job=True).quota_wait) is not None:
            self._quota_waits[task] = quota_wait
        id, crash_counter = workflow_id(declared.name, job_id, attempt), self._membership.crash_counter
        self._claims.note_start(id)
        self._waiting.add(task)
        task.add_done_callback(partial(self._forget_task, declared.queue))
        with self._again_without_database(id):
            kills = await crash_counter.count_kills(id)
        claimed = _Claimed(id, tenant, job_id, attempt, kills)
        part: Continuation | None = Continuation(declared.queue, declared.workflow, lambda: False)
        while part is not None:
            async with self._slots.hold_place(part.queue, tenant, choose_caution(kills)):
                if part.is_done():
                    return
                self._waiting.discard(task)
                self._working.add(task)
                with start_span(f"job {declared.name}", "consumer", tenant=tenant.value, job=job_id, attempt=attempt):
                    part = await self._run_part(part.workflow, claimed)
            self._working.discard(task)
            self._waiting.add(task)

    async def _run_part(self, workflow: Workflow, claimed: _Claimed) -> Continuation | None:
        crash_counter = self._membership.crash_counter
        with self._again_without_database(claimed.id):
            await crash_counter.record_start(claimed.tenant, claimed.id)
        if claimed.kills:
            mark_suspect(crash_counter, claimed.tenant, claimed.id)
        finished = True
        try:
            part = await self._run_workflow(workflow, claimed)
            finished = part is None
            return part
        except asyncio.CancelledError:
            finished = False
            if lock_lost():
                self._claims.run_again(claimed.id)
            raise
        finally:
            await crash_counter.record_end(claimed.tenant, claimed.id, finished=finished)

    async def _run_workflow(self, workflow: Workflow, claimed: _Claimed) -> Continuation | None:
        job = (claimed.tenant, claimed.job_id, claimed.attempt)
        try:
            return await workflow(*job)
        except Exception as error:  # whatever it is, the job ends with it
            (problem,) = await asyncio.gather(self._failed(*job, error), return_exceptions=True)
            if problem is not None:
                # If the workflow ended now, its job would stay in the state ``running`` for ever.
                _log.error("job_failure_not_recorded", job=claimed.job_id, consequence="the job runs again", exc_info=problem)
                self._claims.run_again(claimed.id)
                raise asyncio.CancelledError from problem
            raise

    @contextlib.contextmanager
    def _again_without_database(self, workflow: str) -> Iterator[None]:
        """If the database fails, run a workflow again that has not done anything yet."""
        try:
            yield
        except AgenticRagError as error:
            self._claims.run_again(workflow)
            raise asyncio.CancelledError from error

    def _forget_task(self, queue: QueueName, task: asyncio.Task[Any]) -> None:
        self._waiting.discard(task)
        self._working.discard(task)
        self._quota_waits.pop(task, None)
        self._ended(queue)


def _cancel_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tuple(tasks):
        task.cancel()
