"""What this process has claimed, as it knows it and as the database does: where the two differ, it is queued again.

A claim is one transaction and what it claimed is told after it: a connection that breaks in between leaves workflows that are
this process's in the database and that nobody here has heard of.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Iterable

import structlog

from agentic_rag_backend.jobs.backlog import Backlog, Claimed
from agentic_rag_backend.jobs.database import as_unavailable

_log = structlog.get_logger(__name__)


class Unheard:
    """Measures for how long claimed workflows have not begun.

    Args:
        lost_after_s: seconds after which nobody is going to begin them.
    """

    def __init__(self, *, lost_after_s: float) -> None:
        self._lost_after_s = lost_after_s
        self._since: dict[str, float] = {}

    def lost(self, claimed: Iterable[Claimed], begun: Container[str], now_s: float) -> list[Claimed]:
        """Return those of ``claimed`` that have not begun for too long at ``now_s``, of a clock that only grows."""
        waiting = [workflow for workflow in claimed if workflow.id not in begun]
        self._since = {workflow.id: self._since.get(workflow.id, now_s) for workflow in waiting}
        return [workflow for workflow in waiting if now_s - self._since[workflow.id] >= self._lost_after_s]


class OwnClaims:
    """Told what begins here and what is to be run again.

    Args:
        lost_after_s: see `Unheard`; much longer than it takes to begin what was claimed.
    """

    def __init__(self, backlog: Backlog, *, lost_after_s: float) -> None:
        self._backlog = backlog
        self._unheard = Unheard(lost_after_s=lost_after_s)
        self._begun: dict[str, float] = {}
        self._again: set[str] = set()

    def begun(self, workflow_id: str) -> None:
        """Note that a workflow was heard of here; it may have ended before its end is in the database."""
        self._begun[workflow_id] = time.monotonic()

    def run_again(self, workflow_id: str) -> None:
        """Have a workflow queued again that stopped without an end."""
        self._again.add(workflow_id)

    def forget(self) -> None:
        """Forget everything: by now it is other processes'."""
        self._begun.clear()
        self._again.clear()

    async def queue_again(self, executor_id: str, known: Container[str]) -> None:
        """Queue what is to be run again, and what was claimed by this process and lost on the way here.

        Args:
            executor_id: this process.
            known: names of the workflows that can begin here.

        Raises:
            StoreUnavailable: the database does not answer; nothing is forgotten.
        """
        asked = time.monotonic()
        with as_unavailable():
            claimed = await asyncio.to_thread(self._backlog.claimed)
        ids = {workflow.id for workflow in claimed}
        self._begun = {id: at for id, at in self._begun.items() if id in ids or at >= asked}
        own = [workflow for workflow in claimed if workflow.executor_id == executor_id and workflow.name in known]
        lost = self._unheard.lost(own, self._begun, asked)
        for workflow in lost:
            _log.warning("unheard_workflow_queued_again", workflow=workflow.id)
        again = set(self._again)
        stopped = [workflow for workflow in own if workflow.id in again]
        for workflow in stopped:
            self._begun.pop(workflow.id, None)  # first: it may begin here again before this goes on
        with as_unavailable():
            await asyncio.to_thread(self._backlog.hand_back, [*stopped, *lost])
        self._again -= again
