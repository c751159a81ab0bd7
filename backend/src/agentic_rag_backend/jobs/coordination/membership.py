"""Membership of a process among the workers of a database, alone or with other processes, and recovery of killed jobs."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, ResourceLimit
from agentic_rag_backend.jobs.coordination.dead_workers import BEATS, SILENT_AFTER_S, Watch
from agentic_rag_backend.jobs.coordination.recovery import (
    GIVEN_UP_AFTER,
    CrashCounter,
    DatabaseCrashCounter,
    FileCrashCounter,
    RunningJournal,
    plan_recovery,
)
from agentic_rag_backend.jobs.queue.queue_database import as_unavailable
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow, WorkflowTable, by_id
from agentic_rag_backend.stores.catalogue.base import Leases, WorkerDirectory
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Services through which a process finds the other processes of its database.

    Args:
        silent_after_s: seconds without a heartbeat after which a worker counts as dead; equal in every process.
    """

    directory: WorkerDirectory
    leases: Leases
    silent_after_s: float = SILENT_AFTER_S


POLL_INTERVAL_S = 30.0
"""Seconds between two checks of a sole process for workflows that it cannot run."""

End = Callable[[ClaimedWorkflow, AgenticRagError], Awaitable[None]]
"""Records that a workflow's job has failed, and removes the workflow."""
Return = Callable[[Iterable[ClaimedWorkflow]], Awaitable[None]]
"""Records that the jobs of workflows are waiting again, and enqueues the workflows."""


class Membership(Protocol):
    """Membership of a process among the workers of the database. All methods raise `StoreUnavailable`."""

    interval_s: float
    executor_id: str
    sure_until: float
    """Time by `time.monotonic` until which no other process can have declared this process dead."""
    crash_counter: CrashCounter

    async def enter(self, workflows: Collection[str]) -> None:
        """Join the workers. Call this before claiming jobs."""

    async def refresh(self) -> bool:
        """Recover workflows that no live worker runs. Return False if this process was declared dead and must rejoin."""

    async def tidy(self) -> None:
        """Remove records of workflows that have ended."""

    async def leave(self) -> None:
        """Give back the workflows that this process claimed and did not end, and leave the workers."""

    def close(self) -> None:
        """Close open resources."""


class SoleProcess:
    """Membership for a sole process. Workflows that are claimed at its start belonged to a process that was killed."""

    def __init__(self, executor_id: str, table: WorkflowTable, journal: RunningJournal, end: End, give_back: Return) -> None:
        self.executor_id = executor_id
        self.interval_s = POLL_INTERVAL_S
        self.sure_until = math.inf
        self.crash_counter: CrashCounter = FileCrashCounter(journal)
        self._table = table
        self._journal = journal
        self._end = end
        self._give_back = give_back
        self._known: frozenset[str] = frozenset()

    async def enter(self, workflows: Collection[str]) -> None:
        """Enqueue the workflows of the previous process again. Fail workflows that killed the process too often."""
        self._known = frozenset(workflows)
        for killer in await asyncio.to_thread(self._take_up):
            await self._end(killer, kill_limit_error(killer))

    async def refresh(self) -> bool:
        """End workflows that this release does not know. They would otherwise occupy their tenant's slot for ever."""
        with as_unavailable():
            claimed = await asyncio.to_thread(self._table.list_claims)
        for workflow in claimed:
            if workflow.name not in self._known:
                await self._end(workflow, unknown_workflow_error(workflow))
        return True

    async def tidy(self) -> None:
        """Do nothing: the journal is rewritten at every start."""

    async def leave(self) -> None:
        """Give back the workflows that this process claimed and did not end."""
        await self._give_back(await _claimed_by(self._table, self.executor_id))

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _take_up(self) -> list[ClaimedWorkflow]:
        """Hand back the workflows to run again, and return the workflows to fail."""
        with as_unavailable():
            claims = by_id(self._table.list_claims())
            running = self._journal.read_earlier()
            unended = self._table.list_unfinished_ids(self._journal.kills)
            planned = plan_recovery(claims, running, {workflow: self._journal.kills[workflow] for workflow in unended})
            self._journal.begin_process(planned.kills)
            self._table.hand_back(claims[workflow] for workflow in planned.resumed)
            if claims:
                _log.warning("crash_recovered", jobs_resumed=len(planned.resumed), jobs_given_up=len(planned.given_up))
            return [claims[workflow] for workflow in planned.given_up]


class SharedDatabase:
    """Membership for several processes. Each process joins the workers, sends heartbeats and watches the others.

    A workflow that kills a process affects this process only. It is therefore blamed if it ran alone in its process.
    """

    def __init__(self, executor_id: str, table: WorkflowTable, others: Others, end: End, give_back: Return) -> None:
        directory, silent_after_s = others.directory, others.silent_after_s
        self.executor_id = executor_id
        self.interval_s = silent_after_s / BEATS
        self.sure_until = -math.inf
        self._silent_after_s = silent_after_s
        self.crash_counter: CrashCounter = DatabaseCrashCounter(directory, executor_id)
        self._first_id = executor_id
        self._lives = 0
        self._table = table
        self._directory = directory
        self._end = end
        self._give_back = give_back
        self._watch = Watch(directory, (), silent_after_s=silent_after_s)

    async def enter(self, workflows: Collection[str]) -> None:
        """Join the workers under a new id each time, so that writes of an earlier membership are not taken for current."""
        self._lives += 1
        self.executor_id = self._first_id if self._lives == 1 else f"{self._first_id}-{self._lives}"
        self.crash_counter = DatabaseCrashCounter(self._directory, self.executor_id)
        self._watch = Watch(self._directory, workflows, silent_after_s=self._silent_after_s)
        begun_s = time.monotonic()
        await self._directory.join(self.executor_id, workflows)
        self._note_heartbeat(begun_s)

    async def refresh(self) -> bool:
        """Send a heartbeat, bury silent workers, and hand back or fail the workflows that no live worker runs."""
        now_s = time.monotonic()
        if not await self._directory.heartbeat(self.executor_id):
            self.sure_until = -math.inf
            return False
        self._note_heartbeat(now_s)
        await self._watch.bury_silent_workers(now_s)
        with as_unavailable():
            claimed = await asyncio.to_thread(self._table.list_claims)
        verdict = await self._watch.judge_claims(claimed, self.executor_id, now_s)
        for workflow in verdict.unknown:
            await self._end(workflow, unknown_workflow_error(workflow))
        for workflow in verdict.killers:
            await self._end(workflow, kill_limit_error(workflow))
        await self._give_back(verdict.handed_back)
        if verdict.handed_back or verdict.killers:
            _log.warning("crash_recovered", jobs_resumed=len(verdict.handed_back), jobs_given_up=len(verdict.killers))
        return True

    async def tidy(self) -> None:
        """Remove the kill counts of workflows that have ended."""
        kills = await self._directory.kills()
        with as_unavailable():
            unended = await asyncio.to_thread(self._table.list_unfinished_ids, kills)
        await self._directory.forget(kills.keys() - unended)

    async def leave(self) -> None:
        """Give back the workflows that this process claimed and did not end, and leave the workers."""
        await self._give_back(await _claimed_by(self._table, self.executor_id))
        await self._directory.leave(self.executor_id)

    def close(self) -> None:
        """Do nothing."""

    def _note_heartbeat(self, begun_s: float) -> None:
        """Use half of the silence limit only, because clocks of other processes may run at another speed."""
        self.sure_until = begun_s + self._silent_after_s / 2


async def _claimed_by(table: WorkflowTable, executor_id: str) -> list[ClaimedWorkflow]:
    with as_unavailable():
        claimed = await asyncio.to_thread(table.list_claims)
    return [workflow for workflow in claimed if workflow.executor_id == executor_id]


def kill_limit_error(workflow: ClaimedWorkflow) -> AgenticRagError:
    """Return the error of a workflow that is not run again because it killed its process too often."""
    return ResourceLimit(
        f"its process was killed {GIVEN_UP_AFTER} times while it ran and recorded nothing new, the last time while no other job "
        f"ran; it may need more memory than there is (workflow {workflow.name!r})"
    )


def unknown_workflow_error(workflow: ClaimedWorkflow) -> AgenticRagError:
    """Return the error of a workflow that this release does not know."""
    return ConfigurationError(f"workflow {workflow.name!r} is not known to this release")
