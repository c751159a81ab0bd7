"""What is running right now, kept where it outlives the process: in a file beside the database, or in the database.

The file costs microseconds and serves where one process owns the database; where several work on it, each of them must be
able to read what a killed one was running, whatever machine that was.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs.running import RunningNote
from agentic_rag_backend.stores.catalogue.ports.workers import WorkerDirectory


class Blame(Protocol):
    """Told when a workflow begins and ends in this process."""

    async def kills(self, workflow_id: str) -> int:
        """Return at how many kills a workflow was present."""

    async def began(self, tenant: TenantId, workflow_id: str) -> None:
        """Record that a workflow is running, before it does anything."""

    async def ended(self, tenant: TenantId, workflow_id: str, *, finished: bool) -> None:
        """Record that it is not running any more; ``finished`` where it is not to be run again."""


class NotedBlame:
    """Kept in the note of the one process there is."""

    def __init__(self, note: RunningNote) -> None:
        self._note = note

    async def kills(self, workflow_id: str) -> int:
        """Return at how many kills a workflow was present."""
        return self._note.kills.get(workflow_id, 0)

    async def began(self, tenant: TenantId, workflow_id: str) -> None:
        """Record that a workflow is running."""
        self._note.began(workflow_id)

    async def ended(self, tenant: TenantId, workflow_id: str, *, finished: bool) -> None:
        """Record that it is not running any more."""
        self._note.ended(workflow_id)


class SharedBlame:
    """Kept among the workers."""

    def __init__(self, directory: WorkerDirectory, executor_id: str) -> None:
        self._directory = directory
        self._executor_id = executor_id

    async def kills(self, workflow_id: str) -> int:
        """Return at how many kills a workflow was present."""
        return (await self._directory.kills()).get(workflow_id, 0)

    async def began(self, tenant: TenantId, workflow_id: str) -> None:
        """Record that a workflow is running."""
        await self._directory.began(tenant, workflow_id, self._executor_id)

    async def ended(self, tenant: TenantId, workflow_id: str, *, finished: bool) -> None:
        """Record that it is not running any more; without the database it seems to run until this worker leaves."""
        with contextlib.suppress(StoreUnavailable):
            await self._directory.ended(tenant, workflow_id, self._executor_id, finished=finished)
