"""Detects dead workers of a database that several processes share, and returns their claimed workflows to the queue.

No clock of another machine is used. Each worker counts its heartbeats, and an observer that sees an unchanged count for long
enough considers the worker silent. Time during which the observer itself did not check (stopped, suspended, without the
database) does not count, because the others may have been stopped too. Any observer may act. Removing a silent worker and
returning its workflows are compare-and-set operations, so several observers may act at once, or be killed in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from agentic_rag_backend.jobs.coordination.recovery import GIVEN_UP_AFTER
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow
from agentic_rag_backend.stores.catalogue.base import Worker, WorkerDirectory
from agentic_rag_backend.telemetry.logs import get_logger

SILENT_AFTER_S = 30.0
BEATS = 6
"""Number of heartbeats, and of checks of the others, within the time after which a worker counts as dead."""
UNKNOWN_AFTER_S = 600.0
"""Seconds without a worker that knows a workflow's name before it fails. A roll-out must be shorter."""

_log = get_logger(__name__)


class HeartbeatMonitor:
    """Measures the time since each worker's last heartbeat, counted from the first observation by this process."""

    def __init__(self, *, silent_after_s: float, longest_step_s: float) -> None:
        self._silent_after_s = silent_after_s
        self._longest_step_s = longest_step_s
        self._heard: dict[str, tuple[int, float]] = {}
        self._last: float | None = None

    def find_silent_workers(self, workers: Iterable[Worker], now_s: float) -> list[Worker]:
        """Return the workers that have been silent too long at ``now_s``, a monotonic time in seconds."""
        passed = 0.0 if self._last is None else min(now_s - self._last, self._longest_step_s)
        self._last = now_s
        heard: dict[str, tuple[int, float]] = {}
        silent: list[Worker] = []
        for worker in workers:
            beats, silent_s = self._heard.get(worker.executor_id, (-1, 0.0))
            silent_s = silent_s + passed if beats == worker.beats else 0.0
            heard[worker.executor_id] = (worker.beats, silent_s)
            if silent_s >= self._silent_after_s:
                silent.append(worker)
        self._heard = heard
        return silent


class UnknownWorkflows:
    """Measures how long no worker has known a workflow's name."""

    def __init__(self, *, failed_after_s: float) -> None:
        self._failed_after_s = failed_after_s
        self._since: dict[str, float] = {}

    def find_overdue(
        self, claimed: Iterable[ClaimedWorkflow], known_names: Collection[str], now_s: float
    ) -> list[ClaimedWorkflow]:
        """Return the workflows whose names no worker has ``known_names`` for too long."""
        strangers = [workflow for workflow in claimed if workflow.name not in known_names]
        self._since = {workflow.name: self._since.get(workflow.name, now_s) for workflow in strangers}
        return [workflow for workflow in strangers if now_s - self._since[workflow.name] >= self._failed_after_s]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryActions:
    """Actions that follow from one check of the workers and their claims."""

    handed_back: list[ClaimedWorkflow]
    killers: list[ClaimedWorkflow]
    unknown: list[ClaimedWorkflow]


class Watch:
    """Monitors the other workers of the database.

    Args:
        own_workflows: names of the workflows that this process knows.
        silent_after_s: seconds without a heartbeat after which a worker counts as dead.
    """

    def __init__(self, directory: WorkerDirectory, own_workflows: Collection[str], *, silent_after_s: float) -> None:
        self._directory = directory
        self._own = frozenset(own_workflows)
        self._heartbeats = HeartbeatMonitor(silent_after_s=silent_after_s, longest_step_s=2 * silent_after_s / BEATS)
        self._unknown = UnknownWorkflows(failed_after_s=UNKNOWN_AFTER_S)

    async def bury_silent_workers(self, now_s: float) -> None:
        """Remove the workers that have been silent too long."""
        for worker in self._heartbeats.find_silent_workers(await self._directory.workers(), now_s):
            if await self._directory.bury(worker):
                _log.warning("silent_worker_removed", worker=worker.executor_id)

    async def judge_claims(self, claimed: Iterable[ClaimedWorkflow], executor_id: str, now_s: float) -> RecoveryActions:
        """Decide about ``claimed``, which must be read before this call.

        A worker joins before its first claim. A claimant that is not among the workers is therefore dead.
        """
        workers = {worker.executor_id: worker for worker in await self._directory.workers()}
        kills = await self._directory.kills()
        abandoned, unknown_here = [], []
        for workflow in claimed:
            if workflow.executor_id not in workers:
                abandoned.append(workflow)
            elif workflow.executor_id == executor_id and workflow.name not in self._own:
                unknown_here.append(workflow)
        known_names = self._own.union(*(worker.workflows for worker in workers.values()))
        unknown = self._unknown.find_overdue(unknown_here, known_names, now_s)
        elsewhere = [workflow for workflow in unknown_here if workflow.name in known_names]
        return RecoveryActions(
            handed_back=[workflow for workflow in abandoned if not _is_given_up(workflow, kills)] + elsewhere,
            killers=[workflow for workflow in abandoned if _is_given_up(workflow, kills)],
            unknown=unknown,
        )


def _is_given_up(workflow: ClaimedWorkflow, kills: Mapping[str, int]) -> bool:
    return kills.get(workflow.id, 0) >= GIVEN_UP_AFTER
