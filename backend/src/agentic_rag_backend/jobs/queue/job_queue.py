"""The durable queue: workflows live in the catalogue's own database."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from sqlalchemy import Connection, Engine

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, NotFound, StoreUnavailable
from agentic_rag_backend.fairness import QuotaWait
from agentic_rag_backend.jobs.base import QueueName, Workflow
from agentic_rag_backend.jobs.coordination.dead_workers import BEATS
from agentic_rag_backend.jobs.coordination.membership import Membership, Others, SharedDatabase, SoleProcess
from agentic_rag_backend.jobs.coordination.recovery import RunningJournal
from agentic_rag_backend.jobs.coordination.slots import Slots
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock, TenantLocks
from agentic_rag_backend.jobs.queue.execution import DeclaredWorkflow, Execution, Failed, OwnClaims
from agentic_rag_backend.jobs.queue.interruptions import Interruptions
from agentic_rag_backend.jobs.queue.queue_database import (
    as_unavailable,
    notifications_on,
    ping_database,
    queue_engine,
    sidecar_path,
)
from agentic_rag_backend.jobs.queue.queue_workers import QueueWorkers
from agentic_rag_backend.jobs.queue.workflow_table import CLAIMED_AHEAD, ClaimedWorkflow, WorkflowTable, workflow_id
from agentic_rag_backend.stores.catalogue.base import Enqueue
from agentic_rag_backend.telemetry.logs import get_logger

Returned = Callable[..., Awaitable[None]]
"""Called with ``(tenant, job_id, attempt, message=…)`` when a job waits again. ``message`` None: its process has ended."""

_HOUSEKEEPING = "housekeeping"
"""Name of the lease for housekeeping, which runs in one process only."""
_CLAIMED_PER_PLACE = 2
"""Claimed jobs per tenant and preparation slot, with several processes. The surplus fills a free slot before the next poll."""
_RUNNING_AT_ONCE = 32
"""Limit of running workflows per queue in this process, over all tenants."""
_DRAIN_S = 3.0
_HOUSEKEEPING_S = 30.0
_log = get_logger(__name__)


class JobQueue:
    """Registers workflows and runs them as workers of this process; see `jobs.base`.

    Jobs are claimed in batches: claiming one job at a time would limit a tenant to one commit per polling interval. Slots in
    this process limit how many jobs of a tenant run at once, in claim order. A process launches one queue at a time.

    Args:
        executor_id: unique among all processes that ever work on the database.
        others: services to find other processes of the database. None: there are none, and workflows that are claimed at
            launch belonged to a killed process.
        drain_s: seconds that running jobs get to end at a shutdown; None: 3.
    """

    _launched: JobQueue | None = None

    def __init__(
        self,
        catalogue_engine: Engine,
        *,
        executor_id: str,
        prepare_concurrency: int,
        polling_interval_s: float,
        on_failed: Failed | None = None,
        on_returned: Returned | None = None,
        others: Others | None = None,
        drain_s: float | None = None,
    ) -> None:
        self._engine, self._owned = queue_engine(catalogue_engine)
        self._on_failed = on_failed
        self._on_returned = on_returned
        self._declared: dict[str, DeclaredWorkflow] = {}
        self._others = others
        self._drain_s = _DRAIN_S if drain_s is None else drain_s
        self._claims_per_tenant = None if others is None else _CLAIMED_PER_PLACE * prepare_concurrency
        self._workers = QueueWorkers(
            polling_interval_s,
            lambda: len(self._execution),
            lambda: others is None or (self._notifications is not None and self._notifications.listening),
        )
        self._notifications = notifications_on(self._engine, self._workers.wake)
        self._table = WorkflowTable(self._engine, self._workers.wake, self._notifications)
        self._membership = self._membership_of(executor_id)
        self._tenant_locks = TenantLocks() if others is None else TenantLocks(others.leases, self._membership)
        self._leading, self._lead_known_until = False, -math.inf
        self._claims = OwnClaims(self._table, lost_after_s=BEATS * self._membership.interval_s)
        slots = Slots(prepare_concurrency, _RUNNING_AT_ONCE, self._tenant_locks)
        # One more workflow can be claimed when one has ended.
        self._execution = Execution(slots, self._claims, self._membership, failed=self._report_failure, ended=self._note_end)
        self._ends: Counter[QueueName] = Counter()
        self._only_enqueues = False
        self._is_to_begin = False
        self._entered = False
        self._keeping: list[asyncio.Task[None]] = []
        self._running: dict[asyncio.Task[None], ClaimedWorkflow] = {}
        self._interruptions = Interruptions(self._table, self._execution, self._running, self._claims, self._give_back)

    def register(self, name: str, queue: QueueName, workflow: Workflow) -> None:
        """Declare a workflow before `launch`.

        Raises:
            ConfigurationError: the name is already registered, or the queue is already launched.
        """
        if name in self._declared:
            raise ConfigurationError(f"a workflow named {name!r} is registered already")
        if JobQueue._launched is self:
            raise ConfigurationError(f"workflow {name!r} was registered after the queue was launched")
        self._declared[name] = DeclaredWorkflow(name, queue, workflow)

    def enqueuer(self, name: str) -> Enqueue:
        """Return a function that enqueues a job for ``name`` inside an open catalogue transaction (see `Enqueue`).

        Raises:
            ConfigurationError: no workflow of that name is registered.
        """
        declared = self._find_workflow(name)

        def enqueue_job(connection: Connection, tenant: TenantId, job: Job) -> None:
            self._table.enqueue_within(connection, name, declared.queue, tenant, job.id, job.attempt)

        return enqueue_job

    async def enqueue(self, name: str, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Enqueue a job for ``name``. Idempotent for equal name, job and attempt."""
        queue = self._find_workflow(name).queue
        with as_unavailable():
            await asyncio.to_thread(self._table.enqueue, name, queue, tenant, job_id, attempt)

    async def find_unended_jobs(self, jobs: Sequence[Job]) -> frozenset[str]:
        """Return the ids of the tenant's jobs that have a queued or running workflow of their current attempt."""
        ids = {workflow_id(name, job.id, job.attempt): job.id for job in jobs for name in self._declared}
        with as_unavailable():
            open_ids = await asyncio.to_thread(self._table.list_unfinished_ids, ids)
        return frozenset(ids[id] for id in open_ids)

    def queue_of(self, name: str) -> QueueName:
        """Return the queue that a workflow was registered for."""
        return self._find_workflow(name).queue

    async def oldest_enqueued_s(self) -> Mapping[QueueName, float]:
        """Return, by queue, the seconds that the oldest unclaimed workflow has waited; 0 if none waits."""
        with as_unavailable():
            return await asyncio.to_thread(self._table.oldest_enqueued_s)

    def tenant_lock(self, tenant_lock: TenantLock, tenant: TenantId) -> AbstractAsyncContextManager[object]:
        """Wait for a tenant's lock and hold it. During ``commit``, none of its commits runs, in any process.

        For work outside of a workflow, or in a workflow of another queue. Do not hold ``commit`` longer than a commit takes.
        """
        return self._tenant_lock(tenant_lock, require_tenant(tenant))

    @contextlib.asynccontextmanager
    async def _tenant_lock(self, tenant_lock: TenantLock, tenant: TenantId) -> AsyncIterator[None]:
        if self._others is not None and not self._entered and self._only_enqueues:
            # A process that runs no jobs must also be registered, so that it can hold leases.
            await self._enter_membership(())
            self._keeping.append(asyncio.create_task(self._keep_watch(), name="job-queue-watch"))
        async with self._tenant_locks.hold_lock(tenant_lock, tenant):
            yield

    async def leads(self) -> bool:
        """Return whether this process does the work that only one of all processes may do, such as housekeeping."""
        if self._others is None:
            return True
        now = time.monotonic()
        if now >= self._lead_known_until:
            self._leading = await self._others.leases.lead(_HOUSEKEEPING, self._membership.executor_id)
            self._lead_known_until = now + self._membership.interval_s
        return self._leading

    async def migrate(self) -> None:
        """Migrate the queue's tables to this release, as `launch` does. For processes that only enqueue."""
        with as_unavailable():
            await asyncio.to_thread(self._table.create)
        self._only_enqueues = JobQueue._launched is not self

    async def launch(self) -> None:
        """Start working, and recover the jobs of an earlier process.

        Raises:
            ConfigurationError: another queue of this process is launched.
            StoreUnavailable: the database does not answer.
        """
        if JobQueue._launched is not None:
            raise ConfigurationError("a job queue is running in this process already; shut it down first")
        JobQueue._launched = self
        try:
            await self.migrate()
            await self._begin_claiming()
        except BaseException:
            await self._stop_workers()
            raise
        self._keeping = [
            asyncio.create_task(self._keep_house(), name="job-queue-housekeeping"),
            asyncio.create_task(self._keep_watch(), name="job-queue-watch"),
            asyncio.create_task(self._interruptions.run(), name="job-queue-suspensions"),
        ]
        if self._notifications is not None:
            self._keeping.append(asyncio.create_task(self._notifications.listen(), name="job-queue-notifications"))

    async def shutdown(self, *, drain: bool = True) -> None:
        """Stop claiming jobs, hand back running jobs, and release the queue.

        Args:
            drain: give running jobs a few seconds to end before they are handed back.
        """
        self._execution.stopping = True
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        self._keeping.clear()
        await self._execution.stop(self._drain_s if drain else 0)
        await self._stop_workers()

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the queue runs. If the process only enqueues, unless the database answers."""
        if self._execution.stopping or not (JobQueue._launched is self or self._only_enqueues):
            raise StoreUnavailable("the job queue is not running")
        with as_unavailable():
            await asyncio.to_thread(ping_database, self._engine)

    def _membership_of(self, executor_id: str) -> Membership:
        if self._others is not None:
            return SharedDatabase(executor_id, self._table, self._others, self._give_up_workflow, self._give_back)
        journal = RunningJournal(sidecar_path(self._engine, "-running"))
        return SoleProcess(executor_id, self._table, journal, self._give_up_workflow, self._give_back)

    def _find_workflow(self, name: str) -> DeclaredWorkflow:
        if name not in self._declared:
            raise ConfigurationError(f"no workflow named {name!r} is registered; there are {sorted(self._declared)}")
        return self._declared[name]

    async def _begin_claiming(self) -> None:
        """Join the workers, then start to claim jobs."""
        await self._enter_membership(self._declared)
        loop = asyncio.get_running_loop()
        self._workers.start(self._claim_workflows, lambda workflows: loop.call_soon_threadsafe(self._start_workflows, workflows))

    def _claim_workflows(self, queue: QueueName) -> list[ClaimedWorkflow]:
        """Claim workflows for this process. Blocks."""
        alone, limit = self._claims_per_tenant is None, self._claims_per_tenant or CLAIMED_AHEAD
        return self._table.claim(queue, self._membership.executor_id, per_tenant=limit, alone=alone)

    def _start_workflows(self, workflows: Iterable[ClaimedWorkflow]) -> None:
        """Start claimed workflows. One that this release does not know stays claimed; `Membership` decides about it."""
        for workflow in workflows:
            if (declared := self._declared.get(workflow.name)) is not None:
                task = asyncio.create_task(self._run_workflow(declared, workflow), name=workflow.id)
                self._running[task] = workflow
                task.add_done_callback(self._forget_running)

    def _forget_running(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)

    async def _run_workflow(self, declared: DeclaredWorkflow, workflow: ClaimedWorkflow) -> None:
        """Run a claimed workflow. It is finished unless it was cancelled: then it stays claimed, and is handed back."""
        try:
            await self._execution.run(declared, workflow.tenant, workflow.job_id, workflow.attempt)
        except Exception:  # noqa: BLE001 - the failure of a step is recorded on its job; any other one is only here
            _log.warning("workflow_raised", workflow=workflow.id, exc_info=True)
        try:
            with as_unavailable():
                await asyncio.shield(asyncio.to_thread(self._table.finish, workflow))
        except AgenticRagError:
            _log.warning("workflow_end_not_recorded", workflow=workflow.id, consequence="it runs again", exc_info=True)
            self._claims.run_again(workflow.id)

    async def _enter_membership(self, workflows: Collection[str]) -> None:
        await self._membership.enter(workflows)
        self._entered = True

    async def _begin_anew(self) -> None:
        """Release everything that other processes took over, and rejoin as a new worker."""
        if JobQueue._launched is not self:
            await self._enter_membership(())
            return
        if not self._is_to_begin:
            _log.error("worker_was_silent", consequence="other workers took its jobs; it rejoins as a new worker")
        self._is_to_begin = True  # until done: the database may become unavailable meanwhile
        self._execution.stopping = True
        await self._execution.stop(0)
        await asyncio.to_thread(self._workers.stop)
        self._claims.forget_claims()
        self._execution.stopping = False
        await self._begin_claiming()
        self._is_to_begin = False

    def _note_end(self, queue: QueueName) -> None:
        """Claim more jobs if the limit of claimed jobs may have left some unclaimed. The poll may read old rows.

        A tenant at its limit has claimed twice as many jobs as are counted here. Some of them may not have started yet.
        """
        self._ends[queue] += 1
        claimed, enough = len(self._execution), (self._claims_per_tenant or CLAIMED_AHEAD) // 2
        if not claimed or claimed >= enough or self._ends[queue] >= enough:
            self._ends[queue] = 0
            self._workers.wake(queue)

    async def _report_failure(self, tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        if self._on_failed is not None:
            await self._on_failed(tenant, job_id, attempt, error)

    async def _give_up_workflow(self, workflow: ClaimedWorkflow, error: AgenticRagError) -> None:
        _log.error("job_given_up", job=workflow.job_id, tenant=workflow.tenant.value, code=error.code, reason=error.message)
        with contextlib.suppress(NotFound):  # the tenant was deleted meanwhile
            await self._report_failure(workflow.tenant, workflow.job_id, workflow.attempt, error)
        with as_unavailable():
            await asyncio.to_thread(self._table.end, workflow)

    async def _give_back(self, workflows: Iterable[ClaimedWorkflow], wait: QuotaWait | None = None) -> None:
        """Enqueue abandoned workflows again. The job rows are updated first, so that they show the new state."""
        given_back, until = list(workflows), None if wait is None else wait.until
        message = None if wait is None or until is None else f"waiting until {until:%Y-%m-%dT%H:%M:%SZ}: {wait.reason}"
        for workflow in given_back:
            if self._on_returned is not None:
                with contextlib.suppress(NotFound):  # the tenant was deleted meanwhile
                    await self._on_returned(workflow.tenant, workflow.job_id, workflow.attempt, message=message)
        with as_unavailable():
            await asyncio.to_thread(partial(self._table.hand_back, given_back, until=until))

    async def end_waits(self, tenant: TenantId, job_id: str | None = None) -> None:
        """Let jobs of a tenant that wait for a quota start now. They wait again if it is still used up."""
        with as_unavailable():
            await asyncio.to_thread(self._table.end_waits, tenant, job_id)

    async def _keep_house(self) -> None:
        while True:
            try:
                if await self.leads():
                    with as_unavailable():
                        await asyncio.to_thread(self._table.delete_old_workflows)
                    await self._membership.tidy()
            except AgenticRagError:
                _log.warning("queue_housekeeping_failed", consequence="it is retried", exc_info=True)
            await asyncio.sleep(_HOUSEKEEPING_S)

    async def _keep_watch(self) -> None:
        while True:
            await asyncio.sleep(self._membership.interval_s)
            try:
                if self._is_to_begin or not await self._membership.refresh():
                    await self._begin_anew()
                await self._claims.queue_again(self._membership.executor_id, self._declared)
            except AgenticRagError:
                _log.warning("queue_watch_failed", consequence="it is retried", exc_info=True)

    async def _stop_workers(self) -> None:
        await self._tenant_locks.close()
        if JobQueue._launched is self:
            await asyncio.to_thread(self._workers.stop)
            JobQueue._launched = None
        if self._entered:
            self._entered = False
            with contextlib.suppress(AgenticRagError):  # on failure, it is recovered like the work of a killed process
                await self._membership.leave()
        self._membership.close()
        if self._owned:
            self._engine.dispose()
