"""Execution of claimed workflows in this process: wait for a slot, count crashes, record failures, run again what was cut off."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.fairness import act_for
from agentic_rag_backend.jobs.base import Continuation, QueueName, Workflow
from agentic_rag_backend.jobs.coordination.crash_counter import mark_suspect
from agentic_rag_backend.jobs.coordination.membership import Membership
from agentic_rag_backend.jobs.coordination.recovery import choose_caution
from agentic_rag_backend.jobs.coordination.slots import Slots
from agentic_rag_backend.jobs.coordination.tenant_locks import lock_lost
from agentic_rag_backend.jobs.queue.claims import OwnClaims
from agentic_rag_backend.jobs.queue.workflow_table import workflow_id
from agentic_rag_backend.telemetry.logs import get_logger

Failed = Callable[[TenantId, str, int, Exception], Awaitable[None]]
"""Called with ``(tenant, job_id, attempt, error)`` when a workflow ended without recording its result. May be called twice."""

_CANCEL_S = 1.0

_log = get_logger(__name__)


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
        self.stopping = False

    def __len__(self) -> int:
        """Return the number of claimed workflows."""
        return len(self._waiting) + len(self._working)

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
        act_for(tenant, job=True)
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
        self._ended(queue)


def _cancel_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tuple(tasks):
        task.cancel()
