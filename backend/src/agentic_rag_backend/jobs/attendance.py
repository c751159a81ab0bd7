"""Who works on the jobs, as any process can tell: for people and probes, not for the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.jobs.membership import Others
from agentic_rag_backend.stores.catalogue.liveness import Worker, WorkerDirectory

_THIS = Worker(executor_id="this process", beats=0, workflows=frozenset())


class Attendance:
    """Looks at the workers.

    Args:
        here: whether this process runs jobs.
        others: None where no other process may.
    """

    def __init__(self, directory: WorkerDirectory, *, here: bool, others: Others | None) -> None:
        self._directory = directory
        self._others = others
        self.here = here

    @property
    def shared(self) -> bool:
        """Whether other processes may work on the same jobs."""
        return self._others is not None

    async def workers(self) -> Sequence[Worker]:
        """Return those that run jobs and have beaten lately."""
        if self._others is None:
            return [_THIS] if self.here else []
        silent_after_s = self._others.silent_after_s
        # One that knows no workflow only holds leases, such as a command that looks for differences.
        return [each for each in await self._directory.workers() if each.workflows and each.silent_s < silent_after_s]

    async def open_jobs(self) -> Mapping[str, int]:
        """Count the jobs of all tenants that are ``queued`` and ``running``."""
        return await self._directory.open_jobs()
