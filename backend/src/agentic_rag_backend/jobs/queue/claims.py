"""Claims of this process, in memory and in the database. Workflows on which the two differ are enqueued again.

The database commits a claim before it returns it. If the connection breaks in between, workflows are claimed for this
process that it does not know about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Iterable

from agentic_rag_backend.jobs.queue.queue_database import as_unavailable
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow, WorkflowTable
from agentic_rag_backend.telemetry.logs import get_logger

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
