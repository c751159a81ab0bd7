"""Recovery after a killed process: the record of running workflows, and the policy that retries or isolates suspects.

A process that is killed (a parser crashes the interpreter, a document uses all the memory) leaves no error. Only the list
of running workflows is known. A workflow that was running at a kill becomes a suspect. The more kills it was present at, the
fewer workflows run at the same time. Only a workflow that ran alone is failed, so an innocent workflow never is. Each kill counts
against its cause: ``k`` causes kill the process at most ``k * GIVEN_UP_AFTER`` times.

Administrators and deployments kill processes, too. A workflow that has recorded a new result since a kill did not cause that
kill, so its kills are forgotten (`forgive_kills`): only kills without progress in between add up.

It is written at every start and end of a workflow. It is a file, not a table: an appended line costs microseconds and outlives
the process. A power loss may lose lines, but no workflow causes a power loss.

The file costs microseconds and is used if one process owns the database. If several processes share it, each must be able to
read what a killed process was running, on any machine.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.catalogue.jobs.workers import WorkerDirectory
from agentic_rag_backend.telemetry.logs import get_logger

SUSPECT_AFTER = 1
"""Number of kills after which a workflow runs without other suspects."""
ALONE_AFTER = 2
"""Number of kills after which a workflow runs alone in its process."""
GIVEN_UP_AFTER = 3
"""Number of kills without progress, the last one while it ran alone, after which a workflow fails."""


class Caution(IntEnum):
    """Isolation of a workflow from other workflows."""

    NONE = 0
    NO_OTHER_SUSPECT = 1
    ALONE = 2


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """Decision about the workflows of a killed process. Keep ``kills`` for the next start."""

    resumed: frozenset[str]
    given_up: frozenset[str]
    kills: Mapping[str, int]


def plan_recovery(claimed: Collection[str], running: Collection[str], kills: Mapping[str, int]) -> RecoveryPlan:
    """Decide about ``claimed``, the workflows that the killed process had claimed.

    Args:
        claimed: ids of the workflows that the process had claimed and not ended.
        running: ids of the workflows that were running at the kill. Ids that are not in ``claimed`` had ended.
        kills: number of earlier kills by workflow id; 0 for absent ids.
    """
    kill_counts = dict(kills)
    for workflow in set(claimed).intersection(running):
        kill_counts[workflow] = kill_counts.get(workflow, 0) + 1
    given_up = frozenset(workflow for workflow in claimed if kill_counts.get(workflow, 0) >= GIVEN_UP_AFTER)
    return RecoveryPlan(frozenset(claimed) - given_up, given_up, kill_counts)


def choose_caution(kills: int) -> Caution:
    """Return the isolation of a workflow that was present at ``kills`` kills."""
    if kills >= ALONE_AFTER:
        return Caution.ALONE
    return Caution.NO_OTHER_SUSPECT if kills >= SUSPECT_AFTER else Caution.NONE


_LONGEST_BYTES = 256 * 1024

_log = get_logger(__name__)


class RunningJournal:
    """Lines of JSON: ``{"kills": {id: n}}`` first, then ``["+", id]`` (began), ``["-", id]`` (ended), ``["0", id]`` (forgiven).

    Args:
        path: None if no journal is needed. Then nothing is written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None
        self._written = 0
        self._running: set[str] = set()
        self._kills: dict[str, int] = {}

    @property
    def kills(self) -> Mapping[str, int]:
        """Number of kills that each workflow was present at."""
        return self._kills

    def read_earlier(self) -> frozenset[str]:
        """Read the journal of an earlier process, and return the workflows that ran at its end. Also sets `kills`."""
        running: set[str] = set()
        for line in self._read_lines():
            with contextlib.suppress(ValueError, TypeError, AttributeError, LookupError):  # the last line may be incomplete
                entry = json.loads(line)
                if isinstance(entry, dict):
                    self._kills = {str(workflow): int(kills) for workflow, kills in entry["kills"].items()}
                elif entry[0] == "+":
                    running.add(str(entry[1]))
                elif entry[0] == "0":
                    self._kills.pop(str(entry[1]), None)
                else:
                    running.discard(str(entry[1]))
        return frozenset(running)

    def begin_process(self, kills: Mapping[str, int]) -> None:
        """Start the journal of a new process, in which no workflow runs yet."""
        self._kills = dict(kills)
        self._running.clear()
        self._rewrite_file()

    def record_start(self, workflow: str) -> None:
        """Record that a workflow is running."""
        self._running.add(workflow)
        self._append_line("+", workflow)

    def record_end(self, workflow: str) -> None:
        """Record that a workflow has stopped."""
        self._running.discard(workflow)
        self._append_line("-", workflow)

    def forgive_kills(self, workflow: str) -> None:
        """Forget the kills of a workflow."""
        self._kills.pop(workflow, None)
        self._append_line("0", workflow)

    def close(self) -> None:
        """Close the file and keep its content."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read_lines(self) -> list[str]:
        if self._path is None or not self._path.exists():
            return []
        return self._path.read_text(encoding="utf-8", errors="replace").splitlines()

    def _append_line(self, what: str, workflow: str) -> None:
        if self._file is None:
            return
        line = (json.dumps([what, workflow]) + "\n").encode()
        with self._as_warning():
            os.write(self._file, line)
        self._written += len(line)
        if self._written > _LONGEST_BYTES:
            self._rewrite_file()

    def _rewrite_file(self) -> None:
        if self._path is None:
            return
        lines = [json.dumps({"kills": self._kills}), *(json.dumps(["+", workflow]) for workflow in sorted(self._running))]
        text = "".join(f"{line}\n" for line in lines)
        fresh = self._path.with_name(f"{self._path.name}.new")
        self._written = 0
        with self._as_warning():
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self._path)
            self.close()
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    @contextlib.contextmanager
    def _as_warning(self) -> Iterator[None]:
        """Log an error of the file and continue: the journal only helps to recover from a crash."""
        try:
            yield
        except OSError as error:
            _log.warning("running_journal_not_written", path=str(self._path), reason=str(error))


class CrashCounter(Protocol):
    """Records the start and the end of workflows in this process."""

    async def count_kills(self, workflow_id: str) -> int:
        """Return the number of kills that a workflow was present at."""

    async def record_start(self, tenant: TenantId, workflow_id: str) -> None:
        """Record that a workflow is running, before it does anything."""

    async def forgive_kills(self, tenant: TenantId, workflow_id: str) -> None:
        """Forget the kills of a running workflow."""

    async def record_end(self, tenant: TenantId, workflow_id: str, *, finished: bool) -> None:
        """Record that a workflow has stopped. ``finished`` if it will not run again."""


@dataclass(slots=True)
class _Suspect:
    """A running workflow that was present at kills."""

    crash_counter: CrashCounter
    tenant: TenantId
    workflow_id: str
    forgiven: bool = False


_SUSPECT: ContextVar[_Suspect | None] = ContextVar("suspect", default=None)


def mark_suspect(crash_counter: CrashCounter, tenant: TenantId, workflow_id: str) -> None:
    """State that the calling task runs a workflow that was present at kills."""
    _SUSPECT.set(_Suspect(crash_counter, tenant, workflow_id))


async def forgive_kills() -> None:
    """Forget the kills of the calling workflow, which has recorded a new result. Without kills, nothing is written."""
    suspect = _SUSPECT.get()
    if suspect is not None and not suspect.forgiven:
        suspect.forgiven = True
        await suspect.crash_counter.forgive_kills(suspect.tenant, suspect.workflow_id)


class FileCrashCounter:
    """Record in the journal file of a sole process."""

    def __init__(self, journal: RunningJournal) -> None:
        self._journal = journal

    async def count_kills(self, workflow_id: str) -> int:
        """Return the number of kills that a workflow was present at."""
        return self._journal.kills.get(workflow_id, 0)

    async def record_start(self, tenant: TenantId, workflow_id: str) -> None:
        """Record that a workflow is running."""
        self._journal.record_start(workflow_id)

    async def forgive_kills(self, tenant: TenantId, workflow_id: str) -> None:
        """Forget the kills of a running workflow."""
        self._journal.forgive_kills(workflow_id)

    async def record_end(self, tenant: TenantId, workflow_id: str, *, finished: bool) -> None:
        """Record that a workflow has stopped."""
        self._journal.record_end(workflow_id)


class DatabaseCrashCounter:
    """Record in the workers' directory, which is in the database."""

    def __init__(self, directory: WorkerDirectory, executor_id: str) -> None:
        self._directory = directory
        self._executor_id = executor_id

    async def count_kills(self, workflow_id: str) -> int:
        """Return the number of kills that a workflow was present at."""
        return (await self._directory.kills()).get(workflow_id, 0)

    async def record_start(self, tenant: TenantId, workflow_id: str) -> None:
        """Record that a workflow is running."""
        await self._directory.began(tenant, workflow_id, self._executor_id)

    async def forgive_kills(self, tenant: TenantId, workflow_id: str) -> None:
        """Forget the kills of a running workflow. If the database fails, they stay counted."""
        with contextlib.suppress(StoreUnavailable):
            await self._directory.forgive(tenant, workflow_id, self._executor_id)

    async def record_end(self, tenant: TenantId, workflow_id: str, *, finished: bool) -> None:
        """Record that a workflow has stopped. If the database fails, it counts as running until this worker leaves."""
        with contextlib.suppress(StoreUnavailable):
            await self._directory.ended(tenant, workflow_id, self._executor_id, finished=finished)
