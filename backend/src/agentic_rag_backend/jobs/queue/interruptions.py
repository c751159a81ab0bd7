"""Stops running workflows that have to wait: those of suspended tenants, and those that wait long for a quota."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.fairness import QuotaWait
from agentic_rag_backend.jobs.queue.execution import Execution, OwnClaims
from agentic_rag_backend.jobs.queue.queue_database import as_unavailable
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow, WorkflowTable
from agentic_rag_backend.telemetry.logs import get_logger

CHECK_INTERVAL_S = 1.0
"""Seconds for which such jobs may run on. A process without running jobs checks nothing."""
LONG_WAIT = timedelta(seconds=60)
"""A job that waits longer for a quota gives its place to other jobs."""

GiveBack = Callable[[Iterable[ClaimedWorkflow], QuotaWait | None], Awaitable[None]]
"""Enqueues workflows again. With a wait, they start after it."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Watches the running workflows of a process."""

    _table: WorkflowTable
    _execution: Execution
    _running: Mapping[asyncio.Task[None], ClaimedWorkflow]
    _claims: OwnClaims
    _give_back: GiveBack

    async def run(self) -> None:
        """Stop the workflows of tenants that are suspended, and those that wait long for a quota, until cancelled.

        They start again after the resumption, or when the quota does.
        """
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            try:
                await self._stop_suspended()
                await self._delay_quota_waits()
            except AgenticRagError:
                _log.warning("suspensions_not_checked", consequence="they are checked again", exc_info=True)

    async def _stop_suspended(self) -> None:
        if not self._running:
            return
        tenants = frozenset(workflow.tenant for workflow in self._running.values())
        with as_unavailable():
            suspended = await asyncio.to_thread(self._table.list_suspended, tenants)
        stopping = {task: workflow for task, workflow in self._running.items() if workflow.tenant in suspended}
        if not stopping:
            return
        _log.info("jobs_suspended", jobs=len(stopping), tenants=len(suspended))
        await self._stop_tasks(stopping)

    async def _delay_quota_waits(self) -> None:
        latest = datetime.now(UTC) + LONG_WAIT
        waits = {task: wait for task in self._running if (wait := self._execution.quota_wait_of(task)) is not None}
        for task, wait in waits.items():
            if wait.until is not None and wait.until > latest and task in self._running:
                await self._delay_task(task, self._running[task], replace(wait))

    async def _delay_task(self, task: asyncio.Task[None], workflow: ClaimedWorkflow, wait: QuotaWait) -> None:
        """Enqueue a workflow again, to start after its wait.

        The quota may have changed since the workflow read it, before the workflow was among those whose wait a change ends.
        """
        await self._stop_tasks({task: workflow}, wait)
        if wait.is_still_full is not None and not await wait.is_still_full():
            with as_unavailable():
                await asyncio.to_thread(self._table.end_waits, workflow.tenant, workflow.job_id)

    async def _stop_tasks(self, stopping: Mapping[asyncio.Task[None], ClaimedWorkflow], wait: QuotaWait | None = None) -> None:
        """Stop running workflows, and enqueue them again."""
        for task in stopping:
            task.cancel()
        await asyncio.wait(stopping)
        stopped = [workflow for task, workflow in stopping.items() if task.cancelled()]
        try:
            await self._give_back(stopped, wait)
        except AgenticRagError:
            for workflow in stopped:
                self._claims.run_again(workflow.id)
            raise
