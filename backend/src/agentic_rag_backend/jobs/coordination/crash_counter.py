"""Record of running workflows that survives a kill: in a file next to the database, or in the database.

The file costs microseconds and is used if one process owns the database. If several processes share it, each must be able to
read what a killed process was running, on any machine.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs.coordination.running_journal import RunningJournal
from agentic_rag_backend.stores.catalogue.base import WorkerDirectory


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
